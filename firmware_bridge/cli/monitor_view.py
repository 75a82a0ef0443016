"""What `duck monitor` and `duck status` show: pure functions from a drive's status to lines of text.

A status comes over a wire, so whatever is missing or of another type shows as a dash, and nothing in it can
move the cursor.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import atan2, degrees, hypot
from typing import Any

from firmware_bridge.wire.registers import CHARGED_PACK

NONE = "-"
_LARGE = 1e9
"""No value of a drive is that large."""
_LABEL = 9
"""Width of the column of labels."""
_COMMAND = ("vx", "vy", "yaw")


def draw(drive: Any, tick: Any, width: int, height: int) -> list[str]:
    """Return the monitor's screen: at most `height` lines of at most `width` characters."""
    lines = [*summary_lines(drive, tick), *joint_lines(tick)]
    return [plain(line)[:width] for line in lines[:height]]


def summary_lines(drive: Any, tick: Any) -> list[str]:
    """Return what a drive does, a line for each thing.

    Args:
        drive: `drive` of a status.
        tick: `tick` of a status, see `telemetry.tick_data`; None before the first.
    """
    rows = {
        "drive": f"process {_text(drive, 'pid')}, commands from: {_text(drive, 'source')}",
        "mode": "no tick yet" if tick is None else _mode(tick),
        "loop": _loop(tick),
        "bus": _bus(tick),
        "power": _power(tick),
        "trunk": _trunk(tick),
        "asked": _command(tick, "requested") + _head(tick),
        "applied": _command(tick, "applied") + _limits(tick),
    }
    return [plain(f"{label:<{_LABEL}}{text}") for label, text in rows.items()]


def joint_lines(tick: Any) -> list[str]:
    """Return a table of the joints, empty before the duck was seen."""
    names = _list(tick, "joints", "names")
    if not names:
        return []
    head = f"{'joint':<16}{'target':>10}{'is at':>10}{'current':>10}{'temp':>8}"
    return [head, *(_joint(tick, index, str(name)) for index, name in enumerate(names))]


def plain(text: str) -> str:
    """Return a text whose characters only print."""
    return "".join(character if character.isprintable() else "?" for character in text)


def _mode(tick: Any) -> str:
    seconds = _number(_at(tick, "mode_s"), ".1f")
    return f"{_text(tick, 'mode')} for {seconds} s, skill {_text(tick, 'skill')}: {_text(tick, 'reason')}"


def _loop(tick: Any) -> str:
    stages = _at(tick, "loop", "stages_s")
    times = stages.items() if isinstance(stages, dict) else ()
    budget = "  ".join(f"{name} {_number(seconds, '.1f', 1e3)}" for name, seconds in times)
    rate = _number(_at(tick, "loop", "rate_hz"), ".2f")
    return f"{rate} Hz, {_text(tick, 'loop', 'missed')} missed; ms: {budget or NONE}"


def _bus(tick: Any) -> str:
    kinds = _at(tick, "bus", "kinds")
    counts = [f"{name} {count}" for name, count in kinds.items()] if isinstance(kinds, dict) else []
    failed = _text(tick, "bus", "errors")
    return f"{failed} failed reads and writes; {', '.join(counts) or 'nothing discarded'}"


def _power(tick: Any) -> str:
    charge = _at(tick, "power", "charge_percent")
    heats = _list(tick, "joints", "temperature")
    hottest = max((heat for heat in heats if isinstance(heat, int | float)), default=None)
    parts = [f"{_number(_at(tick, 'power', 'voltage'), '.2f')} V"]
    parts += [] if charge is None else [f"{_number(charge, '.0f')} % charged"]
    parts += [f"hottest servo {_number(hottest, '.0f')} C"]
    parts += ["servos stopped by themselves"] if _at(tick, "power", "watchdog_tripped") is True else []
    return ", ".join(parts)


def _trunk(tick: Any) -> str:
    gravity = _list(tick, "imu", "gravity")
    if len(gravity) != 3 or not all(isinstance(part, int | float) and abs(part) <= 2 for part in gravity):
        return NONE
    x, y, z = gravity
    angles = degrees(atan2(-y, -z)), degrees(atan2(x, hypot(y, z)))
    roll, pitch = (round(angle, 1) + 0.0 for angle in angles)  # without a minus before zero
    rates = "  ".join(_number(rate, "+.2f") for rate in _list(tick, "imu", "angular_velocity"))
    return f"to the right {roll:+.1f}, forward {pitch:+.1f} deg; turns {rates} rad/s"


def _command(tick: Any, which: str) -> str:
    values = _list(tick, "command", which)
    return "  ".join(f"{name} {_number(_entry(values, i), '+.2f')}" for i, name in enumerate(_COMMAND))


def _head(tick: Any) -> str:
    offsets = _list(tick, "command", "head")
    return f"  head {' '.join(_number(offset, '+.2f') for offset in offsets)}" if any(offsets) else ""


def _limits(tick: Any) -> str:
    limits = _list(tick, "command", "limited_by")
    return f"  limited by {', '.join(map(str, limits))}" if limits else ""


def _joint(tick: Any, index: int, name: str) -> str:
    columns = [_list(tick, "joints", key) for key in ("target", "position", "current", "temperature")]
    target, position, current, heat = (_entry(column, index) for column in columns)
    line = (
        f"{name:<16}{_number(target, '+.3f'):>10}{_number(position, '+.3f'):>10}"
        f"{_number(current, '+.2f'):>8} A{_number(heat, '.0f'):>6} C  {_notes(tick, index, name)}"
    )
    return line.rstrip()


def _notes(tick: Any, index: int, name: str) -> str:
    notes = []
    if _entry(_list(tick, "joints", "torque"), index) is False:
        notes.append("limp")
    if name in _list(tick, "joints", "rebooted"):
        notes.append("rebooted")
    faults = [str(fault) for fault in _list(tick, "joints", "faults", name)]
    if faults and CHARGED_PACK.issuperset(faults):
        notes += faults
    elif faults or name in _list(tick, "joints", "alerts"):
        notes.append("FAULT" + (f": {', '.join(faults)}" if faults else ""))
    return ", ".join(notes)


def _at(data: Any, *keys: str) -> Any:
    for key in keys:
        data = data.get(key) if isinstance(data, dict) else None
    return data


def _text(data: Any, *keys: str) -> str:
    value = _at(data, *keys)
    return NONE if value is None else str(value)


def _list(data: Any, *keys: str) -> Sequence[Any]:
    value = _at(data, *keys)
    return value if isinstance(value, list) else ()


def _entry(values: Sequence[Any], index: int) -> Any:
    return values[index] if index < len(values) else None


def _number(value: Any, form: str, factor: float = 1.0) -> str:
    known = isinstance(value, int | float) and abs(value) < _LARGE
    return format(value * factor, form) if known else NONE
