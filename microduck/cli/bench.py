"""`microduck bench`."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from microduck.cli.console import console
from microduck.cli.progress import Bar
from microduck.learning.config import TrainConfig

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from microduck.bench.rates import Rate

Flag = Annotated[bool, tyro.conf.FlagCreatePairsOff]


def bench(
    config: tyro.conf.OmitArgPrefixes[TrainConfig] = TrainConfig(),
    rounds: int = 8,
    against_torchrl: Flag = False,
    scaling: Flag = False,
    markdown: Path | None = None,
) -> None:
    """Time bare physics, the environment and training in one run, and print the ratios.

    Args:
        config: ducks, steps and physics of the measurement.
        rounds: rounds to take the median of.
        against_torchrl: also time TorchRL's own MicroDuckEnv, at its best number of processes.
        scaling: also time 64 to 8,192 ducks, with the memory they take.
        markdown: file for the tables.
    """
    tables = [_rates(config, rounds)]
    if against_torchrl:
        tables.append(_against_torchrl(rounds))
    if scaling:
        tables.append(_scaling(rounds))
    for table in tables:
        console.print(_drawn(*table))
    if markdown is not None:
        _write(markdown, tables)


Contents = tuple[str, list[str], list[list[str]]]
"""Title, heads and rows of a table."""


def _rates(config: TrainConfig, rounds: int) -> Contents:
    from microduck.bench.rates import bench as measure

    with Bar("measuring", rounds) as bar:
        rates = measure(config, rounds, bar.show)
    cpus = config.physics_options.worker_threads()
    title = f"{config.num_envs} ducks, {config.substeps} substeps, {cpus} threads"
    return title, ["what", "control steps/s", "of bare physics"], _lines(rates, "{:.2f}")


def _against_torchrl(rounds: int) -> Contents:
    from microduck.bench.against_torchrl import against_torchrl

    with Bar("against TorchRL", rounds) as bar:
        rates = against_torchrl(rounds, bar.show)
    return (
        "against TorchRL's MicroDuckEnv",
        ["what", "control steps/s", "times as fast"],
        _lines(rates, "{:.1f}"),
    )


def _lines(rates: Sequence[Rate], ratio: str) -> list[list[str]]:
    return [[rate.name, f"{rate.steps_per_s:,.0f}", ratio.format(rate.of_reference)] for rate in rates]


def _scaling(rounds: int) -> Contents:
    from microduck.bench.scaling import scaling

    with Bar("scaling", rounds) as bar:
        scales = scaling(rounds, bar.show)
    rows = [
        [
            f"{scale.count:,}",
            f"{1e3 * scale.step_s:.1f}",
            f"{1e6 * scale.step_s / scale.count:.1f}",
            f"{scale.memory / 2**20:.0f}",
        ]
        for scale in scales
    ]
    return "growth", ["ducks", "ms a control step", "us a duck", "MiB beyond an idle process"], rows


def _drawn(title: str, heads: list[str], rows: list[list[str]]) -> Table:
    from rich.table import Table

    out = Table(title=title)
    for column, head in enumerate(heads):
        out.add_column(head, justify="right" if column else "left")
    for row in rows:
        out.add_row(*row)
    return out


def _write(path: Path, tables: Sequence[Contents]) -> None:
    from hardware.files import replacing
    from microduck.physics.threads import usable_cpus

    text = f"Measured on {platform.machine()}, {usable_cpus()} CPUs.\n"
    for title, heads, rows in tables:
        rule = ["---"] + ["---:"] * (len(heads) - 1)
        body = "\n".join(f"| {' | '.join(row)} |" for row in [heads, rule, *rows])
        text += f"\n**{title[0].upper()}{title[1:]}**\n\n{body}\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
