"""Means of many readings, refused when what is measured moves meanwhile. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import degrees, radians

import numpy as np

from hardware.calibration import MAX_OFFSET
from hardware.errors import CalibrationError

JOINT_STILL = 0.006
"""How far a reading of a joint may be from the mean [rad]: four counts; a still servo shows one or two."""


@dataclass(frozen=True)
class Stillness:
    """What counts as still.

    Attributes:
        turn: how far gravity may be from its mean [rad].
        rate: how far the angular velocity may be from its mean [rad/s].
    """

    turn: float
    rate: float


BY_HAND = Stillness(radians(1.5), 0.15)
"""A duck held against something; a hand's tremor is about 0.05 rad/s."""
AT_REST = Stillness(radians(0.5), 0.03)
"""A duck that lies on something; the noise of a BNO055's gyroscope is 0.005 rad/s (data sheet, 47 Hz)."""


def joint_offset(angles: Sequence[float], name: str) -> float:
    """Return the offset of a joint at its zero, the mean of a servo's angles [rad].

    Raises:
        CalibrationError: it moved, or the offset is too large.
    """
    offset = float(np.mean(angles))
    moved = float(np.abs(np.asarray(angles) - offset).max())
    if moved > JOINT_STILL:
        raise CalibrationError(f"{name} moved by {moved:.3f} rad while it was read; let it come to rest")
    if abs(offset) > MAX_OFFSET:
        raise CalibrationError(
            f"{name} would have an offset of {offset:+.3f} rad, and +-{MAX_OFFSET} rad is the most. Either "
            "it is not at its zero, or its horn is two teeth off, or its homing offset is not 0, which "
            "`duck doctor` tells"
        )
    return offset


def still_imu(rates: np.ndarray, gravities: np.ndarray, still: Stillness) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean angular velocity (3,) [rad/s] and the mean unit gravity (3,) of readings (n, 3) each.

    Raises:
        CalibrationError: the IMU moved meanwhile.
    """
    rate, gravity = rates.mean(axis=0), gravities.mean(axis=0)
    gravity /= np.linalg.norm(gravity)
    swing = float(np.linalg.norm(rates - rate, axis=1).max())
    turn = float(2 * np.arcsin(np.linalg.norm(gravities - gravity, axis=1).max() / 2))
    if turn > still.turn or swing > still.rate:
        raise CalibrationError(
            f"the duck moved while it was measured: it turned by {degrees(turn):.1f} degrees and up to "
            f"{swing:.2f} rad/s; lean it against something and keep still"
        )
    return rate, gravity
