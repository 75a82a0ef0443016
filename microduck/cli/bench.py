"""`microduck bench`."""

from __future__ import annotations

import os

import tyro

from microduck.cli.console import console
from microduck.cli.progress import Bar
from microduck.learning.config import TrainConfig


def bench(config: tyro.conf.OmitArgPrefixes[TrainConfig] = TrainConfig(), rounds: int = 8) -> None:
    """Time bare physics, the environment alone and training in one run, and print the ratios.

    Args:
        config: ducks, steps and physics of the measurement.
        rounds: rounds to take the median of.
    """
    from rich.table import Table

    from microduck import bench as measure

    with Bar("measuring", rounds) as bar:
        rates = measure.bench(config, rounds, bar.show)
    cpus = len(os.sched_getaffinity(0))
    out = Table(
        title=f"{config.num_envs} ducks, {config.substeps} substeps, {config.threads or cpus} threads"
    )
    out.add_column("what")
    out.add_column("control steps/s", justify="right")
    out.add_column("of bare physics", justify="right")
    for rate in rates:
        out.add_row(rate.name, f"{rate.steps_per_s:,.0f}", f"{rate.of_bare:.2f}")
    console.print(out)
