from __future__ import annotations

import numpy as np
import pytest

from firmware_bridge.estimate.velocity import VelocityEstimator
from firmware_bridge.robot.body import BodySample
from hardware.joints import JOINT_NAMES

HIPS = [JOINT_NAMES.index(name) for name in ("left_hip_pitch", "right_hip_pitch")]
ANKLES = [JOINT_NAMES.index(name) for name in ("left_ankle", "right_ankle")]
KNEES = [JOINT_NAMES.index(name) for name in ("left_knee", "right_knee")]
LEFT, RIGHT = 0, 1
UPRIGHT = np.array([0.0, 0.0, -1.0])
STILL = np.zeros(3)
LEAN = np.array([0.064, 0.0, -0.0357771])
"""Velocity of the trunk [m/s] of a duck with all joints at zero that leans forward at 1 rad/s on level feet:
its ankles are 0.0357771 m behind and 0.022 + 0.042 m below its hips' pitch axes."""


def sample(position: np.ndarray, turn: np.ndarray = STILL, gravity: np.ndarray = UPRIGHT) -> BodySample:
    unknown = np.full(14, np.nan)  # what servos tell of speed and current
    return BodySample(0.0, position, unknown, unknown, turn, gravity, ())


def swung(angle: float, *legs: int) -> np.ndarray:
    """Return joint angles of legs that are swung back from the hips with their soles level; others stay."""
    position = np.zeros(14)
    for leg in legs:
        sign = (1.0, -1.0)[leg]
        position[HIPS[leg]], position[ANKLES[leg]] = sign * angle, -sign * angle
    return position


def lean(estimator: VelocityEstimator, gap: int = 1, *legs: int) -> np.ndarray:
    """Lean at 1 rad/s for half a second, to where all joints are at zero; return the velocity then."""
    for period in range(-24, 1, gap):
        found = estimator.update(sample(swung(0.02 * period, *(legs or (LEFT, RIGHT)))), gap)
    return found


def test_a_duck_that_stands_does_not_move() -> None:
    estimator = VelocityEstimator()
    for _ in range(50):
        assert estimator.update(sample(np.zeros(14)), 1) == pytest.approx(STILL, abs=0.01)
    assert estimator.odometry == (0.0, 0.0, 0.0)


def test_nothing_is_known_from_the_first_sample_alone() -> None:
    assert not VelocityEstimator().update(sample(swung(0.3, LEFT)), 1).any()


def test_a_duck_that_leans_forward_on_level_feet_goes_as_its_hips_swing() -> None:
    assert lean(VelocityEstimator()) == pytest.approx(LEAN, abs=0.003)


def test_the_lower_foot_tells_whatever_the_other_does() -> None:
    estimator = VelocityEstimator()
    for period in range(-24, 1):
        position = swung(0.02 * period, RIGHT)
        position[KNEES[LEFT]] = 1.0 + 0.04 * period  # bent, so its foot is high, and moves fast
        found = estimator.update(sample(position), 1)
    assert found == pytest.approx(LEAN, abs=0.003)


def test_of_two_feet_on_the_floor_the_one_that_goes_on_as_before_is_believed() -> None:
    estimator = VelocityEstimator()
    lean(estimator)
    for period in range(1, 4):  # the left one now slides back over the floor at almost 0.2 m/s
        position = swung(0.02 * period, RIGHT) + swung(0.08 * period, LEFT)
        found = estimator.update(sample(position), 1)
    assert found[0] == pytest.approx(0.064, abs=0.03)


def test_a_duck_that_tips_over_its_toes_goes_round_them() -> None:
    estimator = VelocityEstimator()
    for period in range(26):  # nose down at 0.5 rad/s; the heels are up from the first on
        angle = 0.1 + 0.01 * period
        tipped = np.array([np.sin(angle), 0.0, -np.cos(angle)])
        found = estimator.update(sample(np.zeros(14), np.array([0.0, 0.5, 0.0]), tipped), 1)
    # The toes' centres are 0.0057 m behind and 0.0983 m below the trunk's origin, the outer ones, and they
    # roll on balls of 0.0079 m. In the trunk's axes the origin goes round where the ball rests.
    back = 0.0056771 - 0.0079 * np.sin(0.35)
    below = 0.0815 + 0.01677851 + 0.0079 * np.cos(0.35)
    assert found == pytest.approx([0.5 * below, 0.0, -0.5 * back], abs=0.004)


def test_missed_samples_cost_no_more_than_time() -> None:
    assert lean(VelocityEstimator(), 3) == pytest.approx(LEAN, abs=0.006)


def test_the_velocity_holds_while_nothing_new_is_heard() -> None:
    estimator = VelocityEstimator()
    known = lean(estimator).copy()
    last = sample(swung(0.02, LEFT, RIGHT))
    estimator.update(last, 1)
    gone = estimator.odometry
    for _ in range(3):
        assert estimator.update(last, 1) == pytest.approx(known, abs=0.003)
    assert estimator.odometry == gone
    # Four periods after that sample, so the joints still move at 1 rad/s.
    assert estimator.update(sample(swung(0.10, LEFT, RIGHT)), 1) == pytest.approx(known, abs=0.01)


def test_a_wrong_velocity_is_forgotten_within_a_second() -> None:
    estimator = VelocityEstimator()
    for period in range(-9, 1):  # held in a hand, both legs swung back at 5 rad/s: 0.3 m/s that are not so
        estimator.update(sample(swung(0.1 * period, LEFT, RIGHT)), 1)
    assert estimator.velocity[0] > 0.15
    for _ in range(50):
        estimator.update(sample(np.zeros(14)), 1)
    assert estimator.velocity == pytest.approx(STILL, abs=0.001)


def leap(estimator: VelocityEstimator, periods: int) -> np.ndarray:
    """Kick off with both legs, at -10 rad/s in the end, then keep them still in the air for some periods."""
    for period in range(13):
        estimator.update(sample(swung(1.2 - period**2 / 120, LEFT, RIGHT)), 1)
    for _ in range(periods):
        found = estimator.update(sample(np.zeros(14)), 1)
    return found


def test_a_duck_that_kicks_off_flies_on_while_its_legs_are_still() -> None:
    # Trunk and head leave at -10 times LEAN, with the hips' servos: 0.538 of 0.737 kg. The feet, 0.060 kg,
    # stand till then, and thighs and shanks, 0.140 kg, are between. Their common speed is what stays: about
    # 0.84 of it, though feet that stood on legs at rest would mean zero. The filter comes after the kick.
    found = leap(VelocityEstimator(), 2)
    assert found[0] == pytest.approx(-0.84 * 0.64, rel=0.35)
    assert found[1] == pytest.approx(0.0, abs=1e-3)
    assert found[2] == pytest.approx(0.84 * 0.358 - 2 * 0.02 * 9.81, abs=0.1)


def test_a_duck_that_flew_has_landed_when_it_must() -> None:
    # At 0.3 m/s upwards it is back after 2 x 0.3 / 9.81 = 0.06 s; on still legs it then stands.
    assert leap(VelocityEstimator(), 30) == pytest.approx(STILL, abs=0.01)


def test_the_way_gone_is_the_velocitys_sum() -> None:
    estimator = VelocityEstimator()
    lean(estimator)
    # From 0.48 rad behind to upright.
    way = 0.064 * np.sin(0.48) + 0.0357771 * (1 - np.cos(0.48))
    assert estimator.odometry.x == pytest.approx(way, rel=0.12)
    assert estimator.odometry.y == pytest.approx(0.0, abs=1e-4)
