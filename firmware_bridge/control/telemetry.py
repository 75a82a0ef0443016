"""A tick as plain data, for whoever watches a drive: valid JSON, without NaN."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from firmware_bridge.drive import safety
from hardware.joints import JOINT_NAMES

if TYPE_CHECKING:
    from firmware_bridge.drive.limits import Battery
    from firmware_bridge.drive.summary import Tick
    from firmware_bridge.robot.body import BodySample, Health

DIGITS = 6
"""Decimals of every number; the finest, an encoder's count, is 0.0015 rad."""


def tick_data(
    tick: Tick, battery: Battery | None = None, bus: Mapping[str, int] | None = None
) -> dict[str, Any]:
    """Return a tick as what JSON can hold; a value that is not finite becomes None.

    Args:
        tick: the tick.
        battery: what feeds the servos, None for unknown; see `safety.charge`.
        bus: counts of what went wrong on the bus, by kind.

    Returns:
        `time_s` (monotonic), `mode`, `mode_s`, `reason`, `skill`, `fresh`, `loop`, `bus`, `command`, and,
        once the duck was seen, `joints` (lists in the order of its `names`), `imu` and `power`. SI units.
    """
    sample = tick.sample
    health = sample.health if sample else None
    return {
        "time_s": _number(tick.time_s),
        "mode": tick.mode.value,
        "mode_s": _number(tick.mode_s),
        "reason": tick.reason,
        "skill": tick.skill,
        "fresh": bool(tick.fresh),
        "loop": {
            "rate_hz": _number(tick.rate_hz),
            "missed": int(tick.missed),
            "stages_s": {name: _number(seconds) for name, seconds in dict(tick.stages).items()},
        },
        "bus": {"errors": int(tick.bus_errors), "kinds": dict(bus or {})},
        "command": {
            "requested": _numbers(tick.requested),
            "applied": _numbers(tick.command),
            "head": _numbers(tick.head),
            "limited_by": list(tick.limited_by),
        },
        "joints": None if sample is None else _joints(tick, sample, health),
        "imu": None if sample is None else _imu(sample),
        "power": None if health is None else _power(health, battery),
    }


def _joints(tick: Tick, sample: BodySample, health: Health | None) -> dict[str, Any]:
    data: dict[str, Any] = {
        "names": list(JOINT_NAMES),
        "target": None if tick.targets is None else _numbers(tick.targets),
        "position": _numbers(sample.position),
        "velocity": _numbers(sample.velocity),
        "current": _numbers(sample.current),
        "alerts": list(sample.alerts),
        "temperature": None,
        "torque": None,
        "faults": {},
        "rebooted": [],
    }
    if health is not None:
        data["temperature"] = _numbers(health.temperature)
        data["torque"] = [bool(on) for on in health.torque]
        data["faults"] = {name: list(bits) for name, bits in health.faults.items()}
        data["rebooted"] = list(health.rebooted)
    return data


def _imu(sample: BodySample) -> dict[str, Any]:
    return {"angular_velocity": _numbers(sample.angular_velocity), "gravity": _numbers(sample.gravity)}


def _power(health: Health, battery: Battery | None) -> dict[str, Any]:
    voltage = float(np.mean(health.voltage))
    percent = safety.charge(voltage, battery) if battery is not None and isfinite(voltage) else None
    return {
        "time_s": _number(health.time_s),
        "voltage": _number(voltage),
        "charge_percent": None if percent is None else _number(percent),
        "watchdog_tripped": bool(health.watchdog_tripped),
    }


def _numbers(values: Iterable[float]) -> list[float | None]:
    return [_number(value) for value in values]


def _number(value: float) -> float | None:
    return round(float(value), DIGITS) if isfinite(value) else None
