"""The trunk's velocity from the legs and the gyro: the foot that stands does not move.

See docs/velocity.md for how well it does and why it is made as it is.
"""

from __future__ import annotations

import numpy as np

from firmware_bridge.estimate.odometry import Odometry
from firmware_bridge.estimate.soles import soles
from firmware_bridge.robot.body import BodySample
from hardware.contract import CONTROL_PERIOD_S
from hardware.joints import NUM_JOINTS

# Fitted by a random search and a grid over 10 s of each shipped skill but the hops, on the nominal virtual
# duck and on one whose servos tell their speeds a period late, so that the worst error of any skill is least.
AHEAD = 0.25
"""Part of a period by which joint speeds are carried on: a difference of angles is half a period old."""
GAP = 0.003
"""How much higher than the lowest a corner is when it counts for 1/e of it [m]."""
DISAGREEMENT = 0.07
"""How far from the velocity known so far a corner's is when it counts for half [m/s]."""
FOLLOW = 0.35
"""Part of its error that the velocity along the floor loses in a period. The vertical one is not filtered:
each step throws it from 0.2 m/s down to 0.2 m/s up within a period."""
RISEN = 0.45
"""Weight of how much the trunk rose since the last sample; the rest of the vertical is the corners' vote."""


class VelocityEstimator:
    """Estimates the velocity of a duck that walks, one sample after the other.

    Joint speeds are differences of angles: what a servo tells of its speed is a period old. All corners of
    both soles vote on the velocity. Those count that are low, and whose vote is near what is known: that
    tells the standing foot from one that only just touches or still drags, when both are equally low.

    Attributes:
        velocity: of the trunk's origin in the trunk's frame, (3,) [m/s]; zero at the start.
        odometry: the way gone since the start.
    """

    def __init__(self) -> None:
        self.velocity = np.zeros(3)
        self.odometry = Odometry()
        self._along = np.zeros(3)  # the part along the floor, filtered
        self._sample: BodySample | None = None
        self._speed = np.zeros(NUM_JOINTS)  # mean over the gap before the last sample
        self._height = 0.0  # of the lowest corner above the trunk
        self._waited, self._gap = 0, 1  # periods since the last sample, and between it and the one before

    def update(self, sample: BodySample, periods: int) -> np.ndarray:
        """Take in the newest sample and return the velocity, (3,) [m/s].

        A sample that was there before changes nothing: the velocity holds while nothing new is heard.

        Args:
            sample: the newest one.
            periods: control periods since the last call.
        """
        self._waited += periods
        if sample is not self._sample and self._waited > 0:
            last, self._sample = self._sample, sample
            if last is None:
                self._begin(sample)
            else:
                self._move(last, sample, self._waited)
            self._waited = 0
        return self.velocity

    def _begin(self, sample: BodySample) -> None:
        still = np.zeros(NUM_JOINTS)
        corners = soles(sample.position, still, sample.angular_velocity, sample.gravity)
        self._height = float(corners.height.min())

    def _move(self, last: BodySample, sample: BodySample, gap: int) -> None:
        seconds = gap * CONTROL_PERIOD_S
        joints = self._joint_speeds((sample.position - last.position) / seconds, gap)
        corners = soles(sample.position, joints, sample.angular_velocity, sample.gravity)
        known = self._along - seconds * _cross(sample.angular_velocity, self._along)
        vote = _vote(corners.height, corners.velocity, known, sample.gravity)
        lowest = float(corners.height.min())
        sink = vote @ sample.gravity
        # The lowest corner's height tells how the trunk rose over the gap, whichever foot that was.
        rise = RISEN * (self._height - lowest) / seconds - (1.0 - RISEN) * sink
        along = vote - sink * sample.gravity
        self._along = known + (1.0 - (1.0 - FOLLOW) ** gap) * (along - known)
        self._height = lowest
        self.velocity = self._along - rise * sample.gravity
        self.odometry = self.odometry.moved(self.velocity, sample.angular_velocity, sample.gravity, seconds)

    def _joint_speeds(self, mean: np.ndarray, gap: int) -> np.ndarray:
        """Return the joints' speeds about now, (14,) [rad/s], from the mean over the last gap."""
        gained = (mean - self._speed) * (2.0 * gap / (gap + self._gap))
        self._speed, self._gap = mean, gap
        return mean + AHEAD * gained


def _vote(height: np.ndarray, velocity: np.ndarray, known: np.ndarray, gravity: np.ndarray) -> np.ndarray:
    """Return the velocity that the corners agree on, (3,) [m/s]; only along the floor can they disagree."""
    apart = velocity - known
    along = np.einsum("ij,ij->i", apart, apart) - (apart @ gravity) ** 2
    weight = np.exp((height.min() - height) / GAP) / (1.0 + along / DISAGREEMENT**2)
    voted: np.ndarray = weight @ velocity / weight.sum()
    return voted


def _cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return a x b, (3,): numpy's own takes ten times as long for so few numbers."""
    (a_x, a_y, a_z), (b_x, b_y, b_z) = a.tolist(), b.tolist()
    return np.array((a_y * b_z - a_z * b_y, a_z * b_x - a_x * b_z, a_x * b_y - a_y * b_x))
