"""From gyroscope and accelerometer to an orientation, for a chip that has no filter of its own.

The filter is that of the package imufusion, by the author of Madgwick's algorithm: the gyroscope integrated,
drawn towards the accelerometer's idea of down, except where that is far off, as in an acceleration.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from math import degrees
from typing import Any

import numpy as np

from hardware.errors import ConfigError

GAIN = 0.5
"""Pull of the accelerometer [1/s], what imufusion's authors advise: half of an error is gone after 1.4 s. A
bias of the gyroscope that is left, at most 0.017 rad/s in a BMI088, leans the result by up to 2 degrees."""
REJECTION_DEG = 10.0
"""Disagreement with the accelerometer beyond which that is not listened to [deg] (imufusion's example)."""
REJECTION_TIMEOUT = 500
"""Updates after which it is listened to all the same, about 5 s (imufusion's example)."""
_SHORTEST_S, _LONGEST_S = 0.001, 0.05
"""Bounds of the time between two updates [s], beyond which the clock and not the sensor is wrong."""


class Fusion:
    """An orientation filter.

    Args:
        gyro_bias: what the gyroscope says at rest, (3,) [rad/s].

    Raises:
        ConfigError: the package imufusion is not installed.
    """

    def __init__(self, gyro_bias: Sequence[float] = (0.0, 0.0, 0.0)) -> None:
        imufusion = _imufusion()
        settings = imufusion.AhrsSettings()
        settings.convention = imufusion.CONVENTION_NWU  # x forward, y left, z up, as everywhere here
        settings.gain = GAIN
        settings.acceleration_rejection = REJECTION_DEG
        settings.rejection_timeout = REJECTION_TIMEOUT
        self._filter = imufusion.Ahrs()
        self._filter.set_settings(settings)
        self._bias = np.array(gyro_bias)
        self._begun = False

    def update(self, rate: Sequence[float], acceleration: Sequence[float], period_s: float) -> list[float]:
        """Take a measurement in, and return the orientation, sensor to world (w, x, y, z).

        Args:
            rate: angular velocity, with its bias, three numbers [rad/s].
            acceleration: what the accelerometer feels, three numbers [g]; upright at rest it is (0, 0, 1).
            period_s: time since the last measurement [s].
        """
        felt = np.array(acceleration)
        if not self._begun:
            self._filter.set_quaternion(_upright(felt))
            self._begun = True
        self._filter.set_sample_period(min(max(period_s, _SHORTEST_S), _LONGEST_S))
        self._filter.update_no_magnetometer((np.array(rate) - self._bias) * degrees(1), felt)
        orientation: list[float] = self._filter.get_quaternion().tolist()
        return orientation


def _upright(felt: np.ndarray) -> np.ndarray:
    """Return the shortest turn (w, x, y, z) that lets an acceleration (3,) point up."""
    x, y, z = felt / np.linalg.norm(felt)
    turn = np.array([1 + z, y, -x, 0.0])
    norm = np.linalg.norm(turn)
    return turn / norm if norm > 1e-6 else np.array([0.0, 1.0, 0.0, 0.0])


def _imufusion() -> Any:
    try:
        return importlib.import_module("imufusion")
    except ImportError as error:
        raise ConfigError(
            "a BMI088 needs the package imufusion: install `microduck-toolkit[i2c]`, or use an IMU that has "
            "an orientation filter of its own"
        ) from error
