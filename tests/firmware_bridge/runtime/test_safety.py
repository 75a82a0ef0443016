from __future__ import annotations

import numpy as np
import pytest

from firmware_bridge import safety
from hardware.errors import SafetyError
from hardware.joints import STAND


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_non_finite_action_is_refused_by_joint_and_value(value: float) -> None:
    action = np.zeros(14, np.float32)
    action[3] = value
    with pytest.raises(SafetyError, match=rf"'left_knee': {value}"):
        safety.refuse_non_finite(action)


def test_a_finite_action_is_let_through_however_large() -> None:
    safety.refuse_non_finite(np.full(14, 1e30, np.float32))


def test_the_largest_step_of_a_gait_is_left_alone() -> None:
    targets = STAND.copy()
    targets[3] += 1.0
    limited = safety.limit_targets(targets, STAND)
    assert limited.targets.tolist() == targets.tolist()
    assert (limited.slewed, limited.clamped) == (0, 0)


def test_a_jump_is_spread_over_ticks_of_at_most_1_2_rad() -> None:
    start, goal = STAND.copy(), STAND.copy()
    start[7], goal[7] = -1.5, 1.5  # head yaw
    path, slowed = [start], []
    for _ in range(4):
        limited = safety.limit_targets(goal, path[-1])
        path.append(limited.targets)
        slowed.append(limited.slewed)
    assert [p[7] for p in path] == pytest.approx([-1.5, -0.3, 0.9, 1.5, 1.5])
    assert slowed == [1, 1, 0, 0]


def test_targets_out_of_range_are_moved_to_its_end_and_counted() -> None:
    targets = STAND.copy()
    targets[1], targets[5] = 0.6, -1.7  # hip roll reaches 22 degrees, neck pitch -90
    limited = safety.limit_targets(targets, STAND)
    assert limited.targets[1] == pytest.approx(0.383972, abs=1e-6)
    assert limited.targets[5] == pytest.approx(0.3490659 - 1.2, abs=1e-6)  # slowed before it is out of range
    assert (limited.slewed, limited.clamped) == (1, 1)


def test_a_joint_out_of_range_may_come_back_but_not_go_further() -> None:
    found = STAND.copy()
    found[1] = -0.6  # left hip roll reaches -22 degrees = -0.384 rad
    further, back = found.copy(), found.copy()
    further[1], back[1] = -0.7, -0.5
    assert safety.limit_targets(further, found).targets[1] == -0.6
    assert safety.limit_targets(back, found).targets[1] == -0.5


def test_a_lean_of_59_degrees_is_no_fall_and_one_of_61_is() -> None:
    upright = np.array([0.857, 0.0, -0.515])
    leaning = np.array([0.875, 0.0, -0.485])
    assert safety.leaning_periods(9, upright, 1) == 0
    assert safety.leaning_periods(9, leaning, 1) == 10 == safety.FALL_PERIODS


def test_skipped_ticks_count_as_time_spent_leaning() -> None:
    assert safety.leaning_periods(2, np.array([1.0, 0.0, 0.0]), 4) == 6


@pytest.mark.parametrize(("age_s", "expected"), [(0.0, 0.3), (0.49, 0.3), (0.5, 0.0), (1e9, 0.0)])
def test_a_command_counts_for_half_a_second(age_s: float, expected: float) -> None:
    assert safety.live_command(np.array([0.3, 0.0, 0.0]), age_s)[0] == expected


def test_a_lying_duck_is_refused_and_an_upright_one_is_not() -> None:
    safety.refuse_lying(np.array([0.0, 0.5, -0.87]))  # 30 degrees
    with pytest.raises(SafetyError, match="leans more than 60 degrees; hold it upright"):
        safety.refuse_lying(np.array([0.9, 0.0, -0.43]))  # 64 degrees
