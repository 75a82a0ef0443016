"""Quaternions (w, x, y, z) and gravity, for numpy and torch alike.

Frames: x forward, y left, z up. A quaternion turns body vectors into world vectors.
"""

from __future__ import annotations

from math import pi
from typing import Any

from hardware.arrays import array_namespace

Array = Any
"""A numpy array or a torch tensor; leading axes are free."""


def rotate(quaternion: Array, vector: Array) -> Array:
    """Turn body vectors (..., 3) into the world frame with unit quaternions (..., 4)."""
    return _rotate(quaternion, vector, 1.0)


def rotate_inverse(quaternion: Array, vector: Array) -> Array:
    """Turn world vectors (..., 3) into the body frame with unit quaternions (..., 4)."""
    return _rotate(quaternion, vector, -1.0)


def _rotate(quaternion: Array, vector: Array, sign: float) -> Array:
    xp = array_namespace(quaternion, vector)
    w, axis = quaternion[..., :1], quaternion[..., 1:] * sign
    twice = 2.0 * xp.linalg.cross(axis, vector)
    return vector + w * twice + xp.linalg.cross(axis, twice)


def projected_gravity(quaternion: Array) -> Array:
    """Return the unit gravity direction in the body frame, (..., 3); upright is (0, 0, -1)."""
    xp = array_namespace(quaternion)
    return xp.stack(gravity_components(*(quaternion[..., i] for i in range(4))), axis=-1)


def gravity_components(w: Array, x: Array, y: Array, z: Array) -> tuple[Array, Array, Array]:
    """Return the parts of `projected_gravity` from those of the quaternion, which may be plain numbers."""
    return 2 * (w * y - x * z), -2 * (w * x + y * z), 2 * (x * x + y * y) - 1


def heading(quaternion: Array) -> Array:
    """Return the yaw of the body's x axis about the world's z axis [rad], (...)."""
    xp = array_namespace(quaternion)
    w, x, y, z = (quaternion[..., i] for i in range(4))
    return xp.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))


def wrap(angle: Array) -> Array:
    """Return an angle without its whole turns, in [-pi, pi) [rad], (...)."""
    return (angle + pi) % (2 * pi) - pi


def pitch_roll(quaternion: Array) -> tuple[Array, Array]:
    """Return pitch (positive: nose down) and roll of the body, turned in the order yaw, pitch, roll [rad]."""
    xp = array_namespace(quaternion)
    w, x, y, z = (quaternion[..., i] for i in range(4))
    pitch = xp.asin(xp.clip(2 * (w * y - z * x), -1.0, 1.0))
    return pitch, xp.atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y))


def multiply(left: Array, right: Array) -> Array:
    """Return the Hamilton product of quaternions (..., 4): first `right`, then `left`."""
    xp = array_namespace(left, right)
    a, b, c, d = (left[..., i] for i in range(4))
    e, f, g, h = (right[..., i] for i in range(4))
    return xp.stack(
        [
            a * e - b * f - c * g - d * h,
            a * f + b * e + c * h - d * g,
            a * g - b * h + c * e + d * f,
            a * h + b * g - c * f + d * e,
        ],
        axis=-1,
    )


def conjugate(quaternion: Array) -> Array:
    """Return the inverse of unit quaternions (..., 4)."""
    xp = array_namespace(quaternion)
    return xp.concat([quaternion[..., :1], -quaternion[..., 1:]], axis=-1)
