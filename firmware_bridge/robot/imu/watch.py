"""Telling a sensor that has stopped from a robot that stands still."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from firmware_bridge.robot.imu.sample import ImuFrozenError

FROZEN_SAMPLES = 25
"""Identical samples in a row that show a dead chip: half a second of a bus's ticks, a quarter second of a
sensor that is read a hundred times a second. A live one is never so quiet: the noise of a BNO055's gyroscope,
the coarsest, is 1.6 of its counts, so that two readings in a row agree once in 200 times, and 25 never."""
FADE_S = 0.5
"""Time after which a turn counts little [s], so that drift does not add up."""
STUCK_TURN = 0.15
"""Turn by the gyroscope, within about `FADE_S` of one orientation, that shows a dead filter [rad].
Half floats tell a turn of 0.002 rad, or of 0.09 near the heading opposite to that of power-up, and a BNO055's
counts tell 0.0001; the drift of a gyroscope at rest, 3 degrees per second at most, is below 0.03 then."""
STUCK_SAMPLES = 5
"""Repeats of an orientation below which it is late rather than dead, also in a fast turn [1]."""


class RepeatWatch:
    """Counts identical samples."""

    def __init__(self) -> None:
        self._last: object = None
        self._repeats = 0

    def watch(self, data: object) -> None:
        """Take a sample in.

        Raises:
            ImuFrozenError: it is the 25th identical one in a row, or a later one.
        """
        self._repeats = self._repeats + 1 if data == self._last else 1
        self._last = data
        if self._repeats >= FROZEN_SAMPLES:
            raise ImuFrozenError(
                f"the IMU sent the same sample {self._repeats} times in a row; stop, and power it off and on"
            )


class OrientationWatch:
    """Compares the orientation with the gyroscope.

    Args:
        period_s: time between two samples [s].
    """

    def __init__(self, period_s: float) -> None:
        self._period_s = period_s
        self._orientation: object = None
        self._still = 0
        self._turn = (0.0, 0.0, 0.0)
        self._stuck = False

    def watch(self, orientation: object, rate: Sequence[float]) -> None:
        """Take a sample in.

        Args:
            orientation: what must change in a turn.
            rate: angular velocity, three numbers [rad/s].

        Raises:
            ImuFrozenError: the orientation stands still while the gyroscope turns, or has done so and not
                changed since.
        """
        if orientation != self._orientation:
            self._orientation, self._still, self._turn, self._stuck = orientation, 0, (0.0, 0.0, 0.0), False
            return
        self._still += 1
        x, y, z = (
            turn * (1 - self._period_s / FADE_S) + value * self._period_s
            for turn, value in zip(self._turn, rate, strict=True)
        )
        self._turn = (x, y, z)
        turned = sqrt(x * x + y * y + z * z) > STUCK_TURN
        self._stuck = self._stuck or (turned and self._still >= STUCK_SAMPLES)
        if self._stuck:
            raise ImuFrozenError(
                f"the IMU's gyroscope turned by {STUCK_TURN:g} rad while its orientation stood still; stop, "
                "and power it off and on"
            )
