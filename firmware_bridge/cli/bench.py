"""`duck bench`: whether this machine and its bus keep up with the duck."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from firmware_bridge.cli.parsing import Commands, add_bundle, add_command, positive_number
from firmware_bridge.cli.robot import add_robot, port_of, settings_of
from firmware_bridge.cli.tables import aligned

if TYPE_CHECKING:
    from firmware_bridge.doctor.bench import Measurement
    from firmware_bridge.drive.summary import Tick
    from firmware_bridge.robot.body import RealBody
    from firmware_bridge.skills.bundle import Bundle

SECONDS = 10.0
"""How long is measured by default [s]: 500 ticks, so that the 99th percentile rests on five."""
_EPILOG = """Torque is never switched on, and a duck whose torque is on is left alone.

exit codes:
  0  it keeps up
  1  too many ticks take longer than their time, too many reads fail, or an error
  2  the command line is not valid
"""
_STAGES = {
    "late": "waking up late",
    "read": "bus read",
    "policy": "inference",
    "write": "bus write, handed over",
    "work": "whole tick",
    "record": "recording, handed over",
}


def add(commands: Commands) -> None:
    """Add the command."""
    text = "measure bus, inference and punctuality on this machine against a tick's 20 ms"
    parser = add_command(commands, "bench", bench_command, text)
    parser.epilog = _EPILOG
    add_bundle(parser)
    add_robot(parser)
    parser.add_argument("--no-bus", action="store_true", help="measure the machine alone, without a duck")
    parser.add_argument(
        "--seconds",
        type=positive_number,
        default=SECONDS,
        metavar="S",
        help=f"how long; without it {SECONDS:g}",
    )
    parser.add_argument(
        "--realtime",
        action="store_true",
        help="with real-time priority and locked memory, as `duck run` has it",
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON in place of a table")


def bench_command(options: argparse.Namespace) -> int:
    """Measure, print and return the exit code.

    Raises:
        DuckError: the bundle, the settings, the port or the duck is not in order.
    """
    from firmware_bridge.doctor.bench import Subject, measure
    from firmware_bridge.drive.realtime import quiet_collector, realtime
    from firmware_bridge.drive.signals import StopSignals
    from firmware_bridge.skills.bundle import find_bundle, load_bundle

    bundle = load_bundle(find_bundle(options.bundle))
    with StopSignals() as signals, _opened(options, signals.reason) as body:
        before = body.stats.totals() if body else {}
        with (
            _recording(bundle) as record,
            quiet_collector(),
            realtime() if options.realtime else nullcontext(),
        ):
            result = measure(Subject(bundle, body, record), options.seconds, signals.reason)
        errors = _difference(body.stats.totals(), before) if body else None
    print(json.dumps(_data(result, errors), indent=2) if options.json else _text(result, errors))
    return 0 if result.fits else 1


@contextmanager
def _opened(options: argparse.Namespace, stopped: Callable[[], str | None]) -> Iterator[RealBody | None]:
    """Open the limp duck that is to be measured; none with `--no-bus`."""
    if options.no_bus:
        yield None
        return
    from firmware_bridge.doctor.bench import refuse_torque
    from firmware_bridge.doctor.survey import bus_on
    from firmware_bridge.robot.body import RealBody, powered_bus
    from firmware_bridge.robot.imu.opening import open_imu
    from hardware.calibration import Calibration

    config = settings_of(options)
    port = port_of(options, config)
    with bus_on(port)(config.bus.baud) as bus:
        refuse_torque(bus)
    with (
        open_imu(config.imu, Calibration()) as imu,
        powered_bus(port, baud=config.bus.baud, stop=stopped) as bus,
    ):
        yield RealBody(bus, Calibration(), imu)


@contextmanager
def _recording(bundle: Bundle) -> Iterator[Callable[[Tick], None]]:
    """Give what takes ticks into a recording that is thrown away."""
    from firmware_bridge.recording.description import describe
    from firmware_bridge.recording.recorder import Recorder
    from hardware.calibration import Calibration

    meta = describe(bundle, "bench", None, Calibration())
    with TemporaryDirectory() as folder, Recorder(Path(folder) / "bench.tdz", meta) as recorder:
        yield recorder.add


def _difference(after: Mapping[str, int], before: Mapping[str, int]) -> dict[str, int]:
    """Return by how much counters grew, without those that did not."""
    grown = {kind: count - before.get(kind, 0) for kind, count in after.items()}
    return {kind: count for kind, count in grown.items() if count}


def _data(result: Measurement, errors: Mapping[str, int] | None) -> dict[str, Any]:
    stages = {
        name: dict(zip(("p50", "p99", "max"), (round(s * 1e3, 3) for s in spread), strict=True))
        for name, spread in result.stages.items()
    }
    return {
        "ticks": result.ticks,
        "stages_ms": stages,
        "ticks_over_budget": result.over,
        "failed_reads": result.failed_reads,
        "bus_errors": errors,
        "fits": result.fits,
        "verdict": result.verdict,
    }


def _text(result: Measurement, errors: Mapping[str, int] | None) -> str:
    rows: list[tuple[str, ...]] = [(f"[ms] of {result.ticks} ticks", "p50", "p99", "max")]
    for name, label in _STAGES.items():
        if spread := result.stages.get(name):
            rows.append((label, *(f"{value * 1e3:.3f}" for value in spread)))
    lines = aligned(rows, right=(1, 2, 3))
    if errors is not None:
        counts = ", ".join(f"{kind} {count}" for kind, count in errors.items()) or "none"
        lines.append(f"failed reads: {result.failed_reads}; bus errors: {counts}")
    return "\n".join([*lines, result.verdict])
