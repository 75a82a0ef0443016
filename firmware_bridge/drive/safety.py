"""What may reach a servo and what the sensors say of danger, as pure functions that tell what they changed.

Thresholds and their sources are in `limits`; `watch` follows these judgements over time.

A tick finds the caches cold, and then an operation on a dozen numbers takes numpy ten times as long as plain
Python; hence the lists in what runs at every tick.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from typing import NamedTuple

import numpy as np

from firmware_bridge.drive.limits import Battery, Limits
from firmware_bridge.robot.body import Health
from firmware_bridge.wire import registers
from hardware import contract, joints, servo
from hardware.contract import CONTROL_PERIOD_S
from hardware.errors import SafetyError

VOLTAGE_SMOOTHING = 0.1
"""Part of a new voltage in the running mean, once a second: a mean over 10 s, as on the duck's own daemon."""
_SHUTDOWN = frozenset(registers.hardware_errors(servo.SHUTDOWN_MASK))
HEAD = contract.HeadMap(np.zeros(1))
"""The head's part of the contract, on numpy arrays."""
_LOW, _HIGH = joints.LOW, joints.HIGH
_HEAD_LOW, _HEAD_HIGH = np.array(contract.HEAD_LOW), np.array(contract.HEAD_HIGH)


class Limited(NamedTuple):
    """What was asked for and what may be done.

    Attributes:
        requested: what was asked for.
        applied: what may be done, of the same shape.
        limited_by: names of what made the difference.
    """

    requested: np.ndarray
    applied: np.ndarray
    limited_by: tuple[str, ...] = ()


def _differ(a: np.ndarray, b: np.ndarray) -> bool:
    return bool(a.tolist() != b.tolist())


def _inside(values: np.ndarray, low: np.ndarray, high: np.ndarray) -> bool:
    rows = zip(low.tolist(), values.tolist(), high.tolist(), strict=True)
    return all(least <= value <= most for least, value, most in rows)


def _all_finite(values: np.ndarray) -> bool:
    return all(map(isfinite, values.tolist()))


def refuse_non_finite(action: np.ndarray) -> None:
    """Refuse an action (14,) that holds NaN or an infinity.

    Raises:
        SafetyError: names the joints and their values.
    """
    if not _all_finite(action):
        bad = {joints.JOINT_NAMES[i]: float(action[i]) for i in np.flatnonzero(~np.isfinite(action))}
        raise SafetyError(f"the policy's action is not finite: {bad}; train or export it again")


def finite(values: np.ndarray) -> Limited:
    """Return values of a command, each of which is zero if it is not finite."""
    if _all_finite(values):
        return Limited(values, values)
    return Limited(values, np.where(np.isfinite(values), values, 0.0), ("non-finite",))


def live_command(command: np.ndarray, age_s: float, limits: Limits) -> Limited:
    """Return a command (3,), or zero when it is as old as the deadman's time [s]; NaN is no age."""
    if age_s < limits.deadman_s or not command.any():
        return Limited(command, command)
    return Limited(command, np.zeros_like(command), ("deadman",))


def step_command(now: np.ndarray, asked: np.ndarray, low: np.ndarray, high: np.ndarray) -> Limited:
    """Return the command (3,) one control period later, towards what is asked for, inside the skill's box."""
    if not _differ(now, asked) and _inside(now, low, high):  # as nearly always
        return Limited(asked, now)
    applied = contract.step_command(now, asked, low, high)
    return Limited(asked, applied, _steps_limits(asked, applied, low, high, "command"))


def step_head(now: np.ndarray, asked: np.ndarray) -> Limited:
    """Return the head offsets (4,) [rad] one control period later, towards what is asked for."""
    if not _differ(now, asked):
        return Limited(asked, now)
    applied = HEAD.step(now, asked)
    return Limited(asked, applied, _steps_limits(asked, applied, _HEAD_LOW, _HEAD_HIGH, "head"))


def _steps_limits(
    asked: np.ndarray, applied: np.ndarray, low: np.ndarray, high: np.ndarray, what: str
) -> tuple[str, ...]:
    if not _differ(asked, applied):
        return ()
    inside = np.minimum(np.maximum(asked, low), high)
    box = (f"{what} box",) if _differ(inside, asked) else ()
    return (*box, f"{what} slew") if _differ(inside, applied) else box


def limit_targets(targets: np.ndarray, previous: np.ndarray, limits: Limits) -> Limited:
    """Keep targets (14,) within reach of the previous ones (14,) and within the joint ranges [rad].

    A joint that was found out of range may stay there or come back, but not go further.
    """
    step = limits.target_rate * CONTROL_PERIOD_S
    near = np.minimum(np.maximum(targets, previous - step), previous + step)
    safe = np.minimum(np.maximum(near, np.minimum(_LOW, previous)), np.maximum(_HIGH, previous))
    if not _differ(safe, targets):
        return Limited(targets, safe)
    rate = ("target rate",) if _differ(near, targets) else ()
    return Limited(targets, safe, (*rate, "joint range") if _differ(safe, near) else rate)


def leans(gravity: np.ndarray, limits: Limits) -> bool:
    """Return whether the trunk leans like a fallen duck's; `gravity` (3,) is a unit vector in its frame."""
    return bool(gravity[2] > limits.fall_gravity_z)


def upright(gravity: np.ndarray, limits: Limits) -> bool:
    """Return whether the trunk is upright enough to sit; `gravity` (3,) is a unit vector in its frame."""
    return bool(gravity[2] <= limits.tip_gravity_z)


def tips(gravity: np.ndarray, angular_velocity: np.ndarray, limits: Limits) -> bool:
    """Return whether a fall is under way.

    Args:
        gravity: unit vector in the trunk frame, (3,).
        angular_velocity: of the trunk, in its frame, (3,) [rad/s].
        limits: how far is too far.
    """
    (x, y, z), (roll, pitch, _) = gravity.tolist(), angular_velocity.tolist()
    # A vector that stands still in the world changes in a turning frame at -(angular velocity x vector).
    rate = pitch * x - roll * y
    predicted = z + rate * limits.tip_lookahead_s
    return bool(z > limits.tip_gravity_z and rate > 0 and predicted > limits.tip_predicted_z)


def overcurrent_s(before: list[float], current: np.ndarray, periods: int, limits: Limits) -> list[float]:
    """Return for how long each joint has taken more than the current limit, 14 times [s].

    Args:
        before: the same at the last sample.
        current: servo currents, (14,) [A].
        periods: control periods since the last sample.
        limits: the current limit.
    """
    passed, most = periods * CONTROL_PERIOD_S, limits.current
    pairs = zip(before, current.tolist(), strict=True)
    return [so_far + passed if abs(amperes) > most else 0.0 for so_far, amperes in pairs]


def hot(health: Health, temperature: float) -> tuple[str, ...]:
    """Return the joints, each with its temperature, that are at a temperature [deg C] or above it."""
    pairs = zip(joints.JOINT_NAMES, health.temperature, strict=True)
    return tuple(f"{name} {value:.0f} deg C" for name, value in pairs if value >= temperature)


def alarming(alerts: Iterable[str], health: Health | None) -> tuple[str, ...]:
    """Return the joints of those whose servo raised its alert that report a fault, or nothing known yet."""
    known = health.faults if health else {}
    return tuple(
        name for name in alerts if name not in known or not registers.CHARGED_PACK.issuperset(known[name])
    )


def tripped(health: Health) -> tuple[str, ...]:
    """Return the joints whose servo switched itself off, each with the cause."""
    return tuple(
        f"{name} has tripped on {' + '.join(bit for bit in bits if bit in _SHUTDOWN)}"
        for name, bits in health.faults.items()
        if not _SHUTDOWN.isdisjoint(bits)
    )


def lost_servos(health: Health) -> tuple[str, ...]:
    """Return what took torque from a servo, one text each: a trip, a restart, or the servos' own watchdog."""
    rebooted = tuple(f"{name} has restarted by itself" for name in health.rebooted)
    watchdog = ("the servos' watchdog has stopped them",) if health.watchdog_tripped else ()
    return (*tripped(health), *rebooted, *watchdog)


def smooth_voltage(before: float | None, health: Health) -> float | None:
    """Return the running mean of the servos' voltage [V]; what is not finite is passed over.

    Args:
        before: the same a second ago, None at first.
        health: the newest measurement.
    """
    seen = float(np.mean(health.voltage))
    if not isfinite(seen):
        return before
    return seen if before is None else before + VOLTAGE_SMOOTHING * (seen - before)


def charge(voltage: float, battery: Battery) -> float | None:
    """Return the pack's charge in percent, None where the servos' voltage does not tell it."""
    if not battery.rail_is_pack:
        return None
    part = (voltage - battery.empty_v) / (battery.full_v - battery.empty_v)
    return 100.0 * min(max(part, 0.0), 1.0)
