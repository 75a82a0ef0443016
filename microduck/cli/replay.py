"""`microduck replay`."""

from __future__ import annotations

import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import tyro
from rich.markup import escape
from rich.table import Table

from microduck.cli.console import console
from microduck.cli.progress import Bar
from microduck.replay import GAP_FILE, PAGE_FILE, TWIN_FILE

if TYPE_CHECKING:
    from microduck.replay.study import Study


def replay(
    log: tyro.conf.Positional[Path],
    out: Path | None = None,
    twin: Path | None = None,
    actuator: Literal["auto", "position", "xl330"] = "auto",
) -> None:
    """Put a recording's targets into the simulator; leaves the gap, its likely cause and the nearest duck.

    Args:
        log: recorded by `duck run --record`.
        out: folder for gap.html, gap.json and twin.toml; else one beside the log, by its name and the twin's.
        twin: TOML file of the duck to compare with; else the modelled one.
        actuator: servos of the simulated duck; auto takes the kind that comes nearer.
    """
    from firmware_bridge.recording import read_log
    from microduck.randomization import load_twin
    from microduck.replay.document import Source
    from microduck.replay.study import ReplayOptions, study
    from microduck.replay.verdict import judge
    from microduck.replay.write import folder_for, write

    options = ReplayOptions(actuator, load_twin(twin) if twin else None)
    recorded = read_log(log)
    target = out or _beside(log, twin)
    if recorded.problem:
        console.print(f"the log is not whole: {escape(recorded.problem)}", soft_wrap=True)
    with folder_for(target, twin):
        with Bar("replaying", 1.0) as bar:
            found = study(recorded, options, bar.show)
            bar.show(1.0)
        verdict = judge(found)
        made = datetime.now(UTC).isoformat(timespec="seconds")
        source = Source(_text(log.name), _text(shlex.join(["microduck", *sys.argv[1:]])), made)
        write(target, source, recorded, found, verdict)
    console.print(_table(found))
    console.print(f"[bold]{escape(verdict.title)}[/]", soft_wrap=True)
    for sentence in verdict.sentences:
        console.print(escape(sentence), soft_wrap=True)
    console.print(f"{PAGE_FILE}, {GAP_FILE} and {TWIN_FILE} -> {escape(_text(str(target)))}", soft_wrap=True)


def _beside(log: Path, twin: Path | None) -> Path:
    """Return the folder for what comes out, beside the log."""
    name = log.name.removesuffix(".part").removesuffix(".tdz")
    return log.with_name(f"{name}-gap-{twin.stem}" if twin else f"{name}-gap")


def _text(name: str) -> str:
    """Return a name as text; it may hold bytes that are none."""
    return name.encode(errors="backslashreplace").decode()


def _table(found: Study) -> Table:
    before, after = found.gaps
    out = Table(title=f"{found.driven.seconds:.0f} s replayed, {escape(found.servos.actuator)} servos")
    for head in ("robot minus simulation", "simulation", "nearest duck"):
        out.add_column(escape(head), justify="left" if head.startswith("robot") else "right")
    rows = (
        ("joint angles, RMS [mrad]", 1e3 * before.position_rms, 1e3 * after.position_rms),
        ("later by [ms]", 1e3 * before.delay, 1e3 * after.delay),
        ("joint speeds, RMS [rad/s]", before.velocity_rms, after.velocity_rms),
        ("gravity, RMS [mrad]", 1e3 * before.gravity_rms, 1e3 * after.gravity_rms),
    )
    for name, *values in rows:
        out.add_row(escape(name), *(f"{value:.2f}" for value in values))
    return out
