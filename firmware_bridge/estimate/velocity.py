"""The trunk's velocity: a foot that stands does not move, and a duck whose feet are in the air falls freely.

See docs/velocity.md for how well it does and why it is made as it is.
"""

from __future__ import annotations

from math import exp
from typing import NamedTuple

import numpy as np

from firmware_bridge.estimate.landing import FREE_FALL, RESTING, Sole, held
from firmware_bridge.estimate.odometry import Odometry
from firmware_bridge.estimate.soles import Soles, soles
from firmware_bridge.robot.body import BodySample
from hardware import kinematics
from hardware.contract import CONTROL_PERIOD_S
from hardware.joints import NUM_JOINTS

# Fitted by random searches over 8 s of each shipped skill, on the nominal virtual duck and on one whose
# servos tell their speeds a period late, so that the worst error of any skill is least, and checked against
# ducks that deviate from the model.
AHEAD = 0.3
"""Part of a period by which joint speeds are carried on: a difference of angles is half a period old."""
GAP = 0.0014
"""How much higher than the lowest a corner is when it counts for 1/e of it [m]."""
DISAGREEMENT = 0.0188
"""How far from the velocity expected a corner's is when it counts for half [m/s]."""
FOLLOW = 0.42
"""Part of its error that the velocity along the floor loses in a period."""
RISEN = 0.28
"""Weight of how much the trunk rose since the last sample; the rest of the vertical is the corners' vote."""
LEAD = 0.06
"""By how much the vertical velocity is carried on, at most: as far as the legs' push changed it [m/s]."""
DOUBT = 0.00062
"""How much lower the floor holds a sole than it would be in free fall when it is in the air for 1/e [m]."""
ASTRAY = 0.18
"""How far the vote is from the velocity of free fall, along the floor, when that speaks for the air as much
as `DOUBT` does [m/s]."""


class _Fall(NamedTuple):
    """What free fall since the last sample would have made of the trunk.

    Attributes:
        along: its velocity along the floor, in its frame, (3,) [m/s].
        up: its velocity upwards [m/s].
        height: above the floor [m].
    """

    along: np.ndarray
    up: float
    height: float


class VelocityEstimator:
    """Estimates the velocity of a duck that walks or hops, one sample after the other.

    Joint speeds are differences of angles: what a servo tells of its speed is a period old. All corners of
    both soles vote on the velocity. Those count that are low, and whose vote is near what is expected: that
    tells the standing foot from one that only just touches or still drags, when both are equally low. Where
    free fall leaves the soles higher than the floor would, the duck is in the air, and falls.

    Attributes:
        velocity: of the trunk's origin in the trunk's frame, (3,) [m/s]; zero at the start.
        odometry: the way gone since the start.
    """

    def __init__(self) -> None:
        self.velocity = np.zeros(3)
        self.odometry = Odometry()
        self._along = np.zeros(3)  # the part along the floor
        self._momentum = np.zeros(3)  # velocity of the centre of mass, in the trunk's frame
        self._sample: BodySample | None = None
        self._speed = np.zeros(NUM_JOINTS)  # mean over the gap before the last sample
        self._sole = RESTING
        self._height = self._centre = 0.0  # of the trunk and of the centre of mass above the floor
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
        posture = kinematics.posture(sample.position, np.zeros(NUM_JOINTS))
        corners = soles(posture, sample.angular_velocity, sample.gravity)
        self._height = RESTING.height - float(corners.height.min())
        self._centre = self._height - float(posture.centre @ sample.gravity)

    def _move(self, last: BodySample, sample: BodySample, gap: int) -> None:
        seconds, turn, down = gap * CONTROL_PERIOD_S, sample.angular_velocity, sample.gravity
        posture = kinematics.posture(
            sample.position, self._joint_speeds((sample.position - last.position) / seconds, gap)
        )
        drift = posture.drift + _cross(turn, posture.centre)
        fall = self._fall(sample, posture.centre, drift, seconds)
        expected = self._along - seconds * _cross(turn, self._along)
        expected[0] = fall.along[0]  # a trunk pitches over its legs, while the centre of mass goes on
        corners = soles(posture, turn, down)
        vote = _vote(corners, expected, down)
        climb = -float(vote @ down)
        vote += climb * down
        lowest = float(corners.height.min())
        falling = Sole(fall.height + lowest, fall.up - climb)
        floor = held(self._sole, falling, seconds)
        stands = _stands(falling.height - floor.height, vote - fall.along)
        self._sole = floor.mixed(falling, stands)

        along = expected + (1.0 - (1.0 - FOLLOW) ** gap) * (vote - expected)
        self._along = fall.along + stands * (along - fall.along)
        height = self._sole.height - lowest
        risen = RISEN * stands  # a height above a floor that may be out of reach says little
        rise = risen * (height - self._height) / seconds + (1.0 - risen) * (climb + floor.speed)
        rise += min(max(rise - fall.up - FREE_FALL * seconds, 0.0), LEAD)
        up = fall.up + stands * (rise - fall.up)
        self.velocity = self._along - up * down
        self._momentum = self.velocity + drift
        self._height, self._centre = height, height - float(posture.centre @ down)
        self.odometry = self.odometry.moved(self.velocity, turn, down, seconds)

    def _fall(self, sample: BodySample, centre: np.ndarray, drift: np.ndarray, seconds: float) -> _Fall:
        """Let the centre of mass fall, which the trunk sees at `centre` [m], moving by `drift` [m/s]."""
        turn, down = sample.angular_velocity, sample.gravity
        gained = FREE_FALL * seconds
        momentum = self._momentum - seconds * _cross(turn, self._momentum) + gained * down
        height = self._centre + seconds * (gained / 2.0 - float(momentum @ down))
        velocity = momentum - drift
        up = -float(velocity @ down)
        return _Fall(velocity + up * down, up, height + float(centre @ down))

    def _joint_speeds(self, mean: np.ndarray, gap: int) -> np.ndarray:
        """Return the joints' speeds about now, (14,) [rad/s], from the mean over the last gap."""
        gained = (mean - self._speed) * (2.0 * gap / (gap + self._gap))
        self._speed, self._gap = mean, gap
        return mean + AHEAD * gained


def _vote(corners: Soles, expected: np.ndarray, down: np.ndarray) -> np.ndarray:
    """Return the velocity that the corners agree on, (3,) [m/s]; only along the floor can they disagree."""
    apart = corners.velocity - expected
    along = np.einsum("ij,ij->i", apart, apart) - (apart @ down) ** 2
    weight = np.exp((corners.height.min() - corners.height) / GAP) / (1.0 + along / DISAGREEMENT**2)
    voted: np.ndarray = weight @ corners.velocity / weight.sum()
    return voted


def _stands(above: float, astray: np.ndarray) -> float:
    """Return how sure it is that the duck stands, 0 to 1.

    Args:
        above: how much higher free fall leaves the soles than the floor [m].
        astray: what the vote differs from free fall along the floor, (3,) [m/s].
    """
    air = above / DOUBT + float(astray @ astray) / ASTRAY**2
    return 1.0 / (1.0 + exp(min(air, 50.0)))  # beyond, exp() could overflow


def _cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return a x b, (3,): numpy's own takes ten times as long for so few numbers."""
    (a_x, a_y, a_z), (b_x, b_y, b_z) = a.tolist(), b.tolist()
    return np.array((a_y * b_z - a_z * b_y, a_z * b_x - a_x * b_z, a_x * b_y - a_y * b_x))
