"""What has been measured so far, and what that makes of the old calibration. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import degrees

import numpy as np

from firmware_bridge.calibrate.mounting import MountingFit, turned
from hardware.calibration import Calibration, Measured, Quaternion, Vector
from hardware.joints import JOINT_NAMES

TOOTH = 0.27
"""A servo horn's tooth [rad]; an offset of most of one is a horn that was put on wrong."""
DOUBTFUL_OFFSET = 0.2
DOUBTFUL_RESIDUAL = 0.035
"""Two degrees [rad]."""
DOUBTFUL_TURN = 0.6
"""Angle between old and new mounting [rad] that is no inaccuracy, but another way to fix the IMU."""
DOUBTFUL_BIAS = 0.052
"""3 deg/s: the zero-rate offset that the data sheet of the loosest IMU, the BNO055, allows [rad/s]."""


@dataclass
class Draft:
    """A calibration in the making.

    Attributes:
        old: what holds where nothing is measured.
        offsets: offsets measured, by joint [rad].
        mounting: the mounting measured, None for none.
        bias: the gyroscope's bias measured, about its own axes [rad/s], None for none.
        fit: how well the mounting fits, None where it was measured in an earlier run.
    """

    old: Calibration
    offsets: dict[str, float] = field(default_factory=dict)
    mounting: Quaternion | None = None
    bias: Vector | None = None
    fit: MountingFit | None = None

    @property
    def empty(self) -> bool:
        """Whether nothing was measured."""
        return not self.offsets and self.mounting is None and self.bias is None

    @property
    def measured(self) -> Measured:
        """What was measured."""
        return Measured(dict(self.offsets), self.mounting, self.bias)

    def take(self, kept: Measured) -> None:
        """Take over what an earlier run measured."""
        self.offsets = dict(kept.joint_offsets)
        self.mounting, self.bias = kept.imu_mounting, kept.gyro_bias

    def mount(self, fit: MountingFit | None) -> None:
        """Set the mounting; None leaves the old one."""
        self.fit = fit
        self.mounting = fit.quaternion if fit else None

    def calibration(self) -> Calibration:
        """Return the old calibration with what was measured in its place."""
        return self.measured.over(self.old)

    def rows(self) -> list[tuple[str, str, str, str]]:
        """Return a table: what, old, new, and the unit; `=` stands for what was not measured."""
        rows = [("", "old", "new", "")]
        for name, old in zip(JOINT_NAMES, self.old.joint_offsets, strict=True):
            new = f"{self.offsets[name]:+.4f}" if name in self.offsets else "="
            rows.append((name, f"{old:+.4f}", new, "rad"))
        mounting = _row(self.mounting) if self.mounting else "="
        bias = _row(self.bias) if self.bias is not None else "="
        return [
            *rows,
            ("imu mounting (w, x, y, z)", _row(self.old.imu_mounting), mounting, ""),
            ("gyro bias (x, y, z)", _row(self.old.gyro_bias), bias, "rad/s"),
        ]

    def remarks(self) -> list[str]:
        """Return how well the mounting fits, and every number that a person had better look at again."""
        return [*self._fit_remarks(), *self._doubts()]

    def _fit_remarks(self) -> Iterator[str]:
        if self.fit is None:
            return
        forward, left = (degrees(tip) for tip in self.fit.tips)
        off = ", ".join(f"{degrees(residual):.2f}" for residual in self.fit.residuals)
        moved = degrees(turned(self.old.imu_mounting, self.fit.quaternion))
        yield f"tipped {forward:.0f} degrees forward and {left:.0f} to the left"
        yield f"residuals upright, forward, left: {off} degrees"
        yield f"the mounting turned by {moved:.2f} degrees from the old one"

    def _doubts(self) -> Iterator[str]:
        for name, offset in self.offsets.items():
            if abs(offset) > DOUBTFUL_OFFSET:
                yield (
                    f"look again: {name} is off by {offset:+.2f} rad; a tooth of its horn is {TOOTH} rad, so "
                    "perhaps put the horn on anew"
                )
        if self.fit and max(self.fit.residuals) > DOUBTFUL_RESIDUAL:
            yield "look again: the tips were not square to each other; measure the mounting again"
        if self.mounting and turned(self.old.imu_mounting, self.mounting) > DOUBTFUL_TURN:
            yield (
                "look again: the IMU would sit in another way than before; if nobody moved it, the duck was "
                "tipped over another side than was asked for"
            )
        if self.bias is not None and np.abs(self.bias).max() > DOUBTFUL_BIAS:
            yield "look again: the bias is larger than data sheets allow; measure it again, or change the IMU"


def _row(values: tuple[float, ...]) -> str:
    return " ".join(f"{value:+.4f}" for value in values)
