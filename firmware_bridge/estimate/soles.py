"""The corners of both soles, and how the trunk would move if one of them rested on the floor."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hardware import kinematics

CORNERS = kinematics.SOLE_RADII.size


class Soles(NamedTuple):
    """The lowest point of each corner; a sole rolls over its rounded edges, so this point is where it rests.

    Attributes:
        height: above the trunk's origin, so all are negative in a duck that stands, (8,) [m].
        velocity: of the trunk in its own frame, if the point rested, (8, 3) [m/s].
    """

    height: np.ndarray
    velocity: np.ndarray


def soles(posture: kinematics.Posture, angular_velocity: np.ndarray, gravity: np.ndarray) -> Soles:
    """Return the corners of both soles.

    A point p of a foot moves over the floor by v + omega x p + dp/dt, with p and its change by the joints as
    seen from the trunk. Where it rests that is zero, which gives v.

    Args:
        posture: where the feet are and how they move.
        angular_velocity: of the trunk, in its frame, (3,) [rad/s].
        gravity: unit gravity in the trunk's frame, (3,).
    """
    pose, rate = posture.pose, posture.rate
    down = gravity @ pose[:, :3, :3]  # in the feet's frames
    lowest = kinematics.SOLE_CENTRES + kinematics.SOLE_RADII[..., None] * down[:, None]
    place = (lowest @ pose[:, :3, :3].swapaxes(1, 2) + pose[:, None, :3, 3]).reshape(CORNERS, 3)
    moved = (lowest @ rate[:, :3, :3].swapaxes(1, 2) + rate[:, None, :3, 3]).reshape(CORNERS, 3)
    x, y, z = angular_velocity.tolist()
    turn = np.array(((0.0, z, -y), (-z, 0.0, x), (y, -x, 0.0)))  # row vectors times this: omega x p
    return Soles(-(place @ gravity), -(moved + place @ turn))
