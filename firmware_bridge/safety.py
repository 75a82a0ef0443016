"""The last checks before a servo: pure functions that say what they changed.

Sources of the thresholds: the duck's own daemon (fall, coasting and deadman times); policies measured in
simulation (largest normal step).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hardware import joints
from hardware.contract import COMMAND_NAMES, CONTROL_PERIOD_S
from hardware.errors import SafetyError

MAX_TARGET_RATE = 60.0
"""Fastest change of a joint target [rad/s], 1.2 rad in a tick.

Gaits step by up to 1 rad in a tick, and the servo, whose no-load speed is 20 rad/s, only ever sees the torque
such a step asks for. A larger step comes from no gait, so it is spread over ticks."""
FALL_GRAVITY_Z = -0.5
"""A trunk whose gravity z is above this leans more than 60 degrees [1]."""
FALL_PERIODS = round(0.2 / CONTROL_PERIOD_S)
"""Periods of leaning after which the duck has fallen: 200 ms, longer than any stumble it recovers from."""
COAST_READS = 3
"""Missed reads in a row over which the policy runs on with the last sample."""
FAULT_PERIODS = round(0.5 / CONTROL_PERIOD_S)
"""Periods in a row without a sample, or without a tick, after which the drive ends."""
COMMAND_TIMEOUT_S = 0.5
"""Age at which a command counts as lost [s]."""

_MAX_STEP = MAX_TARGET_RATE * CONTROL_PERIOD_S
_LOW, _HIGH = joints.LOW, joints.HIGH
_NO_COMMAND = np.zeros(len(COMMAND_NAMES))
_NO_COMMAND.flags.writeable = False


class Limited(NamedTuple):
    """Targets that may be written, and how many joints were changed for it.

    Attributes:
        targets: joint targets, (14,) [rad].
        slewed: joints whose target moved too fast.
        clamped: joints whose target was out of range.
    """

    targets: np.ndarray
    slewed: int
    clamped: int


def refuse_non_finite(action: np.ndarray) -> None:
    """Refuse an action (14,) that holds NaN or an infinity.

    Raises:
        SafetyError: names the joints and their values.
    """
    finite = np.isfinite(action)
    if not finite.all():
        bad = {joints.JOINT_NAMES[i]: float(action[i]) for i in np.flatnonzero(~finite)}
        raise SafetyError(f"the policy's action is not finite: {bad}; train or export it again")


def limit_targets(targets: np.ndarray, previous: np.ndarray) -> Limited:
    """Keep targets (14,) within reach of the previous ones (14,) and within the joint ranges [rad].

    A joint that was found out of range may stay there or come back, but not go further.
    """
    near = np.minimum(np.maximum(targets, previous - _MAX_STEP), previous + _MAX_STEP)
    safe = np.minimum(np.maximum(near, np.minimum(_LOW, previous)), np.maximum(_HIGH, previous))
    return Limited(safe, int(np.count_nonzero(near != targets)), int(np.count_nonzero(safe != near)))


def leaning_periods(before: int, gravity: np.ndarray, periods: int) -> int:
    """Return for how many periods in a row the trunk has leaned.

    Args:
        before: the same at the last sample.
        gravity: unit gravity in the trunk frame, (3,).
        periods: control periods since the last sample.
    """
    return before + periods if gravity[2] > FALL_GRAVITY_Z else 0


def refuse_lying(gravity: np.ndarray) -> None:
    """Refuse to rise with a trunk that leans more than 60 degrees; `gravity` (3,) is in the trunk frame.

    Raises:
        SafetyError: the duck lies; it would thrash about on the floor.
    """
    if gravity[2] > FALL_GRAVITY_Z:
        raise SafetyError("the duck leans more than 60 degrees; hold it upright and start again")


def live_command(command: np.ndarray, age_s: float) -> np.ndarray:
    """Return the command (3,), or zero when it is older than `COMMAND_TIMEOUT_S` [s]."""
    return command if age_s < COMMAND_TIMEOUT_S else _NO_COMMAND
