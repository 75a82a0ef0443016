"""What is drawn of a log: chapters of panels with their lines, as numbers that any tool may draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from firmware_bridge.drive.summary import STAGES
from firmware_bridge.recording.fields import AXES, BY_NAME
from firmware_bridge.recording.log import Log
from hardware.contract import COMMAND_NAMES, CONTROL_PERIOD_S, HEAD_NAMES
from hardware.errors import ConfigError
from hardware.joints import JOINT_NAMES

TRACKING, TIMING, IMU, COMMAND, POWER = "Joints", "Timing", "IMU", "Command", "Power"


class Line(NamedTuple):
    """A line: its label and its values, (ticks,)."""

    label: str
    values: np.ndarray


class Panel(NamedTuple):
    """A plot over time.

    Attributes:
        title: what it shows.
        unit: of its values.
        lines: from back to front.
    """

    title: str
    unit: str
    lines: tuple[Line, ...]


class Band(NamedTuple):
    """A stretch in one mode [s]."""

    mode: str
    begin: float
    end: float


def chapters(log: Log) -> Mapping[str, Sequence[Panel]]:
    """Return the panels of a log by chapter."""
    return {
        TRACKING: [_joint(log, place, name) for place, name in enumerate(JOINT_NAMES)],
        TIMING: [_stages(log), _periods(log), _errors(log)],
        IMU: [_parts(log, "gravity", AXES), _parts(log, "angular_velocity", AXES)],
        COMMAND: [
            *(_command(log, *item) for item in enumerate(COMMAND_NAMES)),
            _parts(log, "head", HEAD_NAMES),
        ],
        POWER: [_parts(log, name, JOINT_NAMES) for name in ("current", "voltage", "temperature")],
    }


def bands(log: Log) -> list[Band]:
    """Return the stretches in one mode, in order."""
    if not log.ticks:
        return []
    modes, seconds = log.names("mode"), log.seconds
    begins = np.flatnonzero(np.concatenate([[True], modes[1:] != modes[:-1]]))
    ends = [*seconds[begins[1:]], seconds[-1] + CONTROL_PERIOD_S]
    return [Band(str(modes[b]), float(seconds[b]), float(end)) for b, end in zip(begins, ends, strict=True)]


def between(log: Log, begin: float, end: float) -> Log:
    """Return the part of a log from `begin` to `end` after its first tick [s].

    Raises:
        ConfigError: there is no tick in it.
    """
    chosen = (log.seconds >= begin) & (log.seconds <= end)
    if not chosen.any():
        length = f"its last tick is at {log.seconds[-1]:.2f} s" if log.ticks else "it has no ticks"
        raise ConfigError(f"the recording has no tick between {begin:g} and {end:g} s; {length}")
    return Log({k: v[chosen] for k, v in log.arrays.items()}, log.meta, log.complete, log.problem)


def _joint(log: Log, place: int, name: str) -> Panel:
    labels = {"requested": "requested", "applied": "applied", "position": "measured"}
    lines = [Line(label, log.arrays[field][:, place]) for field, label in labels.items()]
    return Panel(name, "rad", tuple(lines))


def _stages(log: Log) -> Panel:
    stages = log.arrays["stages"] * 1e3
    return Panel("parts of the tick", "ms", tuple(Line(n, stages[:, i]) for i, n in enumerate(STAGES)))


def _periods(log: Log) -> Panel:
    """How far apart ticks started, and how far they should have."""
    time = log.arrays["time"]
    gaps = np.diff(time, prepend=np.nan) * 1e3
    due = log.arrays["periods"] * (CONTROL_PERIOD_S * 1e3)
    return Panel("from the tick before", "ms", (Line("due", due), Line("measured", gaps)))


def _errors(log: Log) -> Panel:
    names = {"missed": "ticks missed", "bus_errors": "bus errors"}
    return Panel("so far", "1", tuple(Line(label, log.arrays[name]) for name, label in names.items()))


def _parts(log: Log, field: str, parts: Sequence[str]) -> Panel:
    array = log.arrays[field]
    lines = tuple(Line(part, array[:, place]) for place, part in enumerate(parts))
    return Panel(field.replace("_", " "), BY_NAME[field].unit, lines)


def _command(log: Log, place: int, name: str) -> Panel:
    unit = BY_NAME["command"].unit.split(", ")[place]
    fields = {"command_requested": "asked for", "command": "in force"}
    lines = tuple(Line(label, log.arrays[field][:, place]) for field, label in fields.items())
    return Panel(name, unit, lines)
