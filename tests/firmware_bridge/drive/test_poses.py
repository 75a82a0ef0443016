from __future__ import annotations

import numpy as np
import pytest

from firmware_bridge.drive.poses import SEAT, SETTLE_S, SIT_S, SLOW_S, rise_pose, sit_pose
from hardware.joints import HIGH, JOINT_NAMES, LOW, MIRROR_INDEX, MIRROR_SIGN, STAND


def test_the_rise_starts_at_the_measured_pose_and_ends_at_stand() -> None:
    start = STAND + np.linspace(-0.5, 0.5, 14)
    assert rise_pose(start, 0.0).tolist() == start.tolist()
    assert rise_pose(start, 1.0) == pytest.approx((start + STAND) / 2)
    assert rise_pose(start, 2.0) == pytest.approx(STAND)
    assert rise_pose(start, 9.0) == pytest.approx(STAND)


def test_the_rise_starts_and_ends_at_rest_and_never_turns_back() -> None:
    path = np.array([rise_pose(STAND + 1.0, t)[0] for t in np.arange(0, 2.0001, 0.02)])
    steps = np.diff(path)
    assert (steps <= 0).all()
    assert abs(steps[0]) < 0.001 and abs(steps[-1]) < 0.001
    assert np.abs(steps).max() == pytest.approx(0.015, abs=2e-4)  # 1.5 x the mean speed of 0.5 rad/s


def test_the_policy_has_its_full_say_at_the_top_and_none_on_the_seat() -> None:
    balanced = STAND + 0.3
    assert sit_pose(balanced, -0.1).tolist() == balanced.tolist()
    assert sit_pose(balanced, SIT_S) == pytest.approx(SEAT)


def test_the_head_is_on_its_place_before_the_legs_are_half_way() -> None:
    balanced = STAND + 0.3
    neck, knee = JOINT_NAMES.index("neck_pitch"), JOINT_NAMES.index("left_knee")
    half = sit_pose(balanced, 0.5)
    assert half[neck] == pytest.approx((balanced[neck] + SEAT[neck]) / 2)
    at_one = sit_pose(balanced, 1.0)
    assert at_one[neck] == pytest.approx(SEAT[neck])
    # Five eighths of the time: a smooth ramp is at 0.68 of the way, its square at 0.47.
    assert at_one[knee] == pytest.approx(balanced[knee] + 0.467 * (SEAT[knee] - balanced[knee]), abs=2e-3)


def test_the_seat_lies_in_the_joint_ranges_and_is_the_same_on_both_sides() -> None:
    assert (SEAT >= LOW).all() and (SEAT <= HIGH).all()
    assert SEAT[list(MIRROR_INDEX)] * MIRROR_SIGN == pytest.approx(SEAT)


def test_on_the_seat_the_soles_are_flat_below_an_upright_trunk() -> None:
    # Of the left leg, hip pitch and ankle turn about +y and the knee about -y.
    hip, knee, ankle = (SEAT[JOINT_NAMES.index(f"left_{part}")] for part in ("hip_pitch", "knee", "ankle"))
    assert hip - knee + ankle == pytest.approx(0.0)


def test_sitting_down_takes_well_below_three_seconds() -> None:
    assert SLOW_S + SIT_S + SETTLE_S <= 2.5
