"""The IMU's mounting and its gyroscope's bias from what it says at rest. Pure.

Gravity alone cannot tell the heading, so one pose is not enough: standing upright gives the trunk's vertical,
and a tip forward and one to the left give its other two axes. Only the direction of a tip matters. How far it
goes is the angle between two measured gravities, whatever the mounting, and so need not be any exact angle.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import acos, cos, degrees, pi, radians, sin

import numpy as np

from hardware import rotations
from hardware.calibration import MAX_GYRO_BIAS, Quaternion, Vector
from hardware.errors import CalibrationError

LEAST_TIP, MOST_TIP = radians(25), radians(135)
"""Tips that are used [rad]: an error across a smaller one is magnified by more than two; beyond, a duck that
is put on its head may have been turned the other way round."""
MOST_SKEW = radians(10)
"""How far the two tips' directions may be from a right angle [rad]; a careful hand does 3 degrees."""


@dataclass(frozen=True)
class Poses:
    """Unit gravity in the IMU's axes, (3,) each.

    Attributes:
        upright: with the trunk upright.
        forward: tipped forward from there, nose down.
        left: tipped to the left from there, left side down.
    """

    upright: np.ndarray
    forward: np.ndarray
    left: np.ndarray


@dataclass(frozen=True)
class MountingFit:
    """A mounting, and how well it fits.

    Attributes:
        quaternion: (w, x, y, z) from IMU axes to trunk axes.
        residuals: angle between measured and fitted gravity, upright, forward and left [rad].
        tips: how far the duck was tipped forward and left [rad].
    """

    quaternion: Quaternion
    residuals: Vector
    tips: tuple[float, float]


def angle_between(first: np.ndarray, second: np.ndarray) -> float:
    """Return the angle between two unit vectors (3,) [rad]."""
    return acos(float(np.clip(first @ second, -1.0, 1.0)))


def tip_angle(upright: np.ndarray, tipped: np.ndarray, name: str) -> float:
    """Return how far a duck is tipped [rad], from unit gravity (3,) before and after.

    Raises:
        CalibrationError: too little or too far; `name` says which way, for the message.
    """
    tip = angle_between(upright, tipped)
    if not LEAST_TIP <= tip <= MOST_TIP:
        raise CalibrationError(
            f"the tip {name} is {degrees(tip):.0f} degrees; make it {degrees(LEAST_TIP):.0f} to "
            f"{degrees(MOST_TIP):.0f}, best about 90"
        )
    return tip


def fit_mounting(poses: Poses) -> MountingFit:
    """Return the rotation from IMU axes to trunk axes that fits three poses best.

    Raises:
        CalibrationError: a tip is too small or too large, the two are not square to each other, or one of
            them went the other way.
    """
    tips = (
        tip_angle(poses.upright, poses.forward, "forward"),
        tip_angle(poses.upright, poses.left, "to the left"),
    )
    _refuse_skew(poses)
    pitch, roll = tips
    expected = np.array([[0.0, 0.0, -1.0], [sin(pitch), 0.0, -cos(pitch)], [0.0, sin(roll), -cos(roll)]])
    measured = np.array([poses.upright, poses.forward, poses.left])
    quaternion = best_rotation(measured, expected)
    fitted = rotations.rotate(quaternion, measured)
    upright, forward, left = (angle_between(a, b) for a, b in zip(fitted, expected, strict=True))
    w, x, y, z = quaternion.tolist()
    return MountingFit((w, x, y, z), (upright, forward, left), tips)


def best_rotation(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Return the unit quaternion (4,) that turns unit vectors (n, 3) nearest to others, in squared distance.

    This is Wahba's problem. Its answer is the eigenvector of Davenport's symmetric 4 x 4 matrix that belongs
    to the largest eigenvalue, which is a rotation by construction and never a reflection.
    """
    spread = before.T @ after
    trace = np.trace(spread)
    matrix = np.empty((4, 4))
    matrix[0, 0] = trace
    matrix[0, 1:] = matrix[1:, 0] = np.cross(before, after).sum(axis=0)
    matrix[1:, 1:] = spread + spread.T - trace * np.eye(3)
    quaternion = np.linalg.eigh(matrix).eigenvectors[:, -1]
    return quaternion if quaternion[0] >= 0 else -quaternion


def check_bias(bias: np.ndarray) -> Vector:
    """Return a gyroscope's mean at rest, (3,) [rad/s], as plain numbers.

    Raises:
        CalibrationError: it is too large to be a bias.
    """
    if np.abs(bias).max() > MAX_GYRO_BIAS:
        raise CalibrationError(
            f"the gyroscope says {np.abs(bias).max():.2f} rad/s at rest, more than the {MAX_GYRO_BIAS} rad/s "
            "of a bias; put the duck down, and if it stays so, change the IMU"
        )
    x, y, z = bias.tolist()
    return x, y, z


def turned(first: Quaternion, second: Quaternion) -> float:
    """Return the angle of the rotation that leads from one mounting to the other [rad]."""
    between = abs(float(np.dot(first, second)))
    return 2 * acos(min(between, 1.0))


def _refuse_skew(poses: Poses) -> None:
    """Refuse tips whose directions are not the trunk's x and y, as far as the three poses can tell."""
    forward, left = (_sideways(poses.upright, tipped) for tipped in (poses.forward, poses.left))
    skew = abs(angle_between(forward, left) - pi / 2)
    if skew > MOST_SKEW:
        raise CalibrationError(
            f"the tips forward and to the left are {degrees(skew):.0f} degrees off a right angle, and "
            f"{degrees(MOST_SKEW):.0f} are allowed; tip straight over the beak, then straight over the left "
            "side"
        )
    if np.cross(forward, left) @ poses.upright > 0:  # x, y and down are a left-handed set
        raise CalibrationError(
            "one of the tips went the other way, or they were exchanged; first over the beak, then over the "
            "duck's own left side"
        )


def _sideways(upright: np.ndarray, tipped: np.ndarray) -> np.ndarray:
    """Return the unit direction (3,) in which gravity moved, square to the upright one."""
    across = tipped - (tipped @ upright) * upright
    return np.asarray(across / np.linalg.norm(across))
