"""The duck's hinges and soles: where they are, and where the joints put the feet and the centre of mass.

Source: body, joint and site frames of the MJCF of pollen-robotics/microduck_rl (`robot_walk.xml`), as in
`duck.xml`; soles are the rounded edges of that file's feet. With all joints at 0 every frame is parallel to
the trunk's: x forward, y left, z up. Lengths in m, angles in rad.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hardware import masses
from hardware.joints import JOINT_NAMES

Vector = tuple[float, float, float]


@dataclass(frozen=True)
class Hinge:
    """A joint.

    Attributes:
        joint: its name in the joint table.
        origin: where it is in the frame of the link before [m].
        axis: unit vector that it turns about.
    """

    joint: str
    origin: Vector
    axis: Vector


@dataclass(frozen=True)
class Ball:
    """A rounded corner of a sole, in the foot's frame.

    Attributes:
        centre: its centre [m].
        radius: its radius [m].
    """

    centre: Vector
    radius: float


@dataclass(frozen=True)
class Leg:
    """A leg.

    Attributes:
        hinges: its joints, from the trunk to the foot.
        site: where the foot's site lies in the foot's frame, in the middle of the sole [m].
        sole: corners of the sole: the ends of the toe's edge, then those of the heel's.
    """

    hinges: tuple[Hinge, ...]
    site: Vector
    sole: tuple[Ball, ...]


def _reflected(vector: Vector) -> Vector:
    return vector[0], -vector[1], vector[2]


def _right(left: Leg) -> Leg:
    """Return the reflection of the left leg.

    Axes are reflected as if they were places: that turns them round, as do the signs of the joint table.
    """
    return Leg(
        tuple(
            Hinge(hinge.joint.replace("left", "right"), _reflected(hinge.origin), _reflected(hinge.axis))
            for hinge in left.hinges
        ),
        _reflected(left.site),
        tuple(Ball(_reflected(ball.centre), ball.radius) for ball in left.sole),
    )


LEFT = Leg(
    hinges=(
        Hinge("left_hip_yaw", (0.006, 0.0175, -0.005), (0.0, 0.0, -1.0)),
        Hinge("left_hip_roll", (0.0165, 0.0, -0.0125), (1.0, 0.0, 0.0)),
        Hinge("left_hip_pitch", (-0.0185, 0.025, 0.0), (0.0, 1.0, 0.0)),
        Hinge("left_knee", (-0.0357771, -0.004, -0.022), (0.0, -1.0, 0.0)),
        Hinge("left_ankle", (0.0, 0.026, -0.042), (0.0, 1.0, 0.0)),
    ),
    site=(0.0, -0.0140852, -0.0238146),
    sole=(
        Ball((0.0261, -0.02803595, -0.01677851), 0.0079),
        Ball((0.0261, -0.002828086, -0.01462127), 0.0079),
        Ball((-0.012, -0.02804447, -0.01667887), 0.008),
        Ball((-0.012, -0.002836612, -0.01452163), 0.008),
    ),
)
RIGHT = _right(LEFT)
LEGS = (LEFT, RIGHT)
"""Both legs, in the order of every array of two feet."""
HEAD = (
    Hinge("neck_pitch", (0.026, 0.0145, 0.0324215), (0.0, -1.0, 0.0)),
    Hinge("head_pitch", (0.0, 0.0, 0.05), (0.0, 1.0, 0.0)),
    Hinge("head_yaw", (0.0, -0.0145, 0.0186931), (0.0, 0.0, 1.0)),
    Hinge("head_roll", (-0.0179, 0.0, 0.0145), (-1.0, 0.0, 0.0)),
)
"""The hinges from the trunk to the head."""


def _array(rows: object) -> np.ndarray:
    array = np.array(rows, dtype=np.float64)
    array.flags.writeable = False
    return array


def _turn(axis: Vector) -> np.ndarray:
    """Return the matrix that takes the cross product with an axis, in the upper left of (4, 4)."""
    x, y, z = axis
    return np.array([[0, -z, y, 0], [z, 0, -x, 0], [-y, x, 0, 0], [0, 0, 0, 0]], dtype=np.float64)


def _shift(origin: Vector) -> np.ndarray:
    shift = np.eye(4)
    shift[:3, 3] = origin
    return shift


SITES = _array([leg.site for leg in LEGS])
"""The sites in their feet's frames, (2, 3) [m]."""
SOLE_CENTRES = _array([[ball.centre for ball in leg.sole] for leg in LEGS])
"""Centres of the soles' corners in their feet's frames, (2, 4, 3) [m]."""
SOLE_RADII = _array([[ball.radius for ball in leg.sole] for leg in LEGS])
"""Their radii, (2, 4) [m]."""

_CHAINS = tuple(zip(LEFT.hinges, RIGHT.hinges, (*HEAD, None), strict=True))
"""The hinges of both legs and the head, from the trunk outwards; the head has one less."""


def _table(of: Callable[[Hinge], object], without: object) -> np.ndarray:
    return _array([[of(hinge) if hinge else without for hinge in row] for row in _CHAINS])


def _share(mass: masses.Mass) -> np.ndarray:
    """Return a link's centre of mass as (x, y, z, 1), times its part of the duck's mass."""
    return np.array([*mass.centre, 1.0]) * mass.kilograms / masses.TOTAL


# By Rodrigues' formula a hinge's link lies at shift + sin(angle) K + (1 - cos(angle)) K K.
_JOINTS = _table(lambda hinge: JOINT_NAMES.index(hinge.joint), 0).astype(int)
_SHIFT = _table(lambda hinge: _shift(hinge.origin), np.eye(4))
_SINE = _table(lambda hinge: _turn(hinge.axis), np.zeros((4, 4)))
_COSINE = _array(-_SINE @ _SINE)
_REST = _array(_SHIFT - _COSINE)
_SHARES = _table(lambda hinge: _share(masses.LINKS[hinge.joint]), np.zeros(4))
_TRUNK = _array(_share(masses.TRUNK)[:3])


class Posture(NamedTuple):
    """Where the feet and the centre of mass are, and how they move as seen from the trunk.

    Attributes:
        pose: brings points (x, y, z, 1) of a foot's frame into the trunk's, (2, 4, 4) [m].
        rate: how fast that changes, (2, 4, 4) [1/s, m/s].
        centre: centre of mass of the whole duck, (3,) [m].
        drift: how fast it moves, (3,) [m/s].
    """

    pose: np.ndarray
    rate: np.ndarray
    centre: np.ndarray
    drift: np.ndarray


def posture(position: np.ndarray, velocity: np.ndarray) -> Posture:
    """Return the posture of joint angles (14,) [rad] that change by (14,) [rad/s]."""
    angle, speed = position[_JOINTS], velocity[_JOINTS]
    sine, cosine = np.sin(angle)[..., None, None], np.cos(angle)[..., None, None]
    link = _REST + sine * _SINE + cosine * _COSINE
    change = speed[..., None, None] * (cosine * _SINE - sine * _COSINE)
    pose, rate = np.empty_like(link), np.empty_like(link)
    pose[0], rate[0] = link[0], change[0]
    for i in range(1, len(link)):
        rate[i] = rate[i - 1] @ link[i] + pose[i - 1] @ change[i]
        pose[i] = pose[i - 1] @ link[i]
    centre = np.einsum("ijkl,ijl->k", pose, _SHARES)[:3] + _TRUNK
    drift = np.einsum("ijkl,ijl->k", rate, _SHARES)[:3]
    return Posture(pose[-1, :2], rate[-1, :2], centre, drift)
