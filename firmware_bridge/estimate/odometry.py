"""The way a duck has gone, summed up from its velocity and its gyro."""

from __future__ import annotations

from math import cos, hypot, sin
from typing import NamedTuple

import numpy as np


class Odometry(NamedTuple):
    """Place and heading of the trunk since the start, on the floor: x ahead, y to the left as it then stood.

    Attributes:
        x: [m].
        y: [m].
        heading: of the trunk's x axis, left is positive, whole turns included [rad].
    """

    x: float = 0.0
    y: float = 0.0
    heading: float = 0.0

    def moved(
        self, velocity: np.ndarray, angular_velocity: np.ndarray, gravity: np.ndarray, seconds: float
    ) -> Odometry:
        """Return where the trunk is some time later.

        Args:
            velocity: of the trunk in its frame, (3,) [m/s].
            angular_velocity: of the trunk in its frame, (3,) [rad/s].
            gravity: unit gravity in the trunk's frame, (3,).
            seconds: the time [s].
        """
        up_x, up_y, up_z = (-gravity).tolist()
        level = hypot(up_y, up_z)  # length of the x axis' shadow on the floor
        if level < 1e-6:  # it lies on its bill or its tail: there is no heading to speak of
            return self
        x, y, z = velocity.tolist()
        climb = x * up_x + y * up_y + z * up_z
        ahead, aside = (x - up_x * climb) / level, (y * up_z - z * up_y) / level
        _, pitch_rate, yaw_rate = angular_velocity.tolist()
        turned = (yaw_rate * up_z + pitch_rate * up_y) / level**2 * seconds
        middle = self.heading + turned / 2
        return Odometry(
            self.x + (ahead * cos(middle) - aside * sin(middle)) * seconds,
            self.y + (ahead * sin(middle) + aside * cos(middle)) * seconds,
            self.heading + turned,
        )
