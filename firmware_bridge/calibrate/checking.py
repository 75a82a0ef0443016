"""Whether a calibration fits its duck: what the calibrated duck says of a pose that is known."""

from __future__ import annotations

from dataclasses import dataclass
from math import acos, degrees, radians

import numpy as np

from firmware_bridge.calibrate.dialogue import Task
from firmware_bridge.calibrate.duck import RawImu, joint_angles
from firmware_bridge.calibrate.readings import BY_HAND
from firmware_bridge.calibrate.tasks import REST_READS, Surroundings, read_imu
from hardware import rotations
from hardware.calibration import Calibration
from hardware.joints import JOINT_NAMES

MOST_TILT = radians(3)
"""Tilt of an upright duck that a hand's error explains [rad]; training turns the IMU by two degrees."""
MOST_RATE = 0.02
"""Rate of a still duck about an axis that noise and warming up explain [rad/s]."""


@dataclass(frozen=True)
class Check:
    """What a calibrated duck says while it stands upright and still, as near to its joints' zeros as it goes.

    Attributes:
        angles: joint angles, (14,) [rad].
        gravity: unit gravity in the trunk frame, (3,).
        rate: angular velocity in the trunk frame, (3,) [rad/s].
    """

    angles: np.ndarray
    gravity: np.ndarray
    rate: np.ndarray

    @property
    def tilt(self) -> float:
        """Angle between the gravity that is measured and straight down [rad]."""
        return acos(float(np.clip(-self.gravity[2], -1.0, 1.0)))

    @property
    def well(self) -> bool:
        """Whether the IMU says what an upright and still duck's must."""
        return self.tilt <= MOST_TILT and float(np.abs(self.rate).max()) <= MOST_RATE

    def rows(self, calibration: Calibration) -> list[tuple[str, str, str]]:
        """Return a table: the joints' offsets and present angles [rad]."""
        triples = zip(JOINT_NAMES, calibration.joint_offsets, self.angles, strict=True)
        return [
            ("joint [rad]", "offset", "angle now"),
            *((name, f"{offset:+.4f}", f"{angle:+.4f}") for name, offset, angle in triples),
        ]

    def remarks(self) -> list[str]:
        """Return what the IMU says, and the next step where that is not well."""
        told = [
            f"tilt of the upright duck: {degrees(self.tilt):.2f} degrees, at most {degrees(MOST_TILT):g}",
            f"rate at rest: {' '.join(f'{v:+.4f}' for v in self.rate)} rad/s, at most {MOST_RATE}",
        ]
        return (
            told
            if self.well
            else [*told, "hold it upright and still, or measure anew: `duck calibrate --imu`"]
        )


def apply(calibration: Calibration, rate: np.ndarray, gravity: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Turn angular velocity and gravity about the IMU's axes, (3,) each, into the trunk frame."""
    mounting = np.array(calibration.imu_mounting)
    mounting /= np.linalg.norm(mounting)
    return rotations.rotate(mounting, rate - calibration.gyro_bias), rotations.rotate(mounting, gravity)


class CheckTask:
    """One look at the calibrated duck.

    Attributes:
        result: what it said, None before.
    """

    def __init__(self, around: Surroundings, imu: RawImu) -> None:
        self._around, self._imu = around, imu
        self.result: Check | None = None

    def task(self) -> Task:
        """Return it as something to walk through."""
        return Task(
            begin=lambda: (
                "Hold the trunk upright and still, with every joint at its zero as well as you can, and\n"
                "press Enter. Nothing moves."
            ),
            measure=self._measure,
            keep=lambda: None,
        )

    def _measure(self) -> str:
        rate, gravity = read_imu(self._imu, REST_READS, BY_HAND, self._around.pause)
        old = self._around.draft.old
        rate, gravity = apply(old, rate, gravity)
        self.result = Check(joint_angles(self._around.bus) - old.joint_offsets, gravity, rate)
        return f"tilt {degrees(self.result.tilt):.2f} degrees"
