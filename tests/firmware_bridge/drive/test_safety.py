from __future__ import annotations

from collections.abc import Callable
from math import cos, inf, nan, radians, sin
from typing import Any

import numpy as np
import pytest

from firmware_bridge.drive import safety
from firmware_bridge.drive.limits import Battery, Limits
from hardware.errors import SafetyError
from hardware.joints import STAND

LIMITS = Limits()


# Targets


@pytest.mark.parametrize("value", [nan, inf, -inf])
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
    limited = safety.limit_targets(targets, STAND, LIMITS)
    assert limited.applied.tolist() == targets.tolist()
    assert limited.limited_by == ()


def test_a_jump_is_spread_over_ticks_of_at_most_1_2_rad() -> None:
    start, goal = STAND.copy(), STAND.copy()
    start[7], goal[7] = -1.5, 1.5  # head yaw
    path, limited_by = [start], []
    for _ in range(4):
        limited = safety.limit_targets(goal, path[-1], LIMITS)
        path.append(limited.applied)
        limited_by.append(limited.limited_by)
    assert [p[7] for p in path] == pytest.approx([-1.5, -0.3, 0.9, 1.5, 1.5])
    assert limited_by == [("target rate",), ("target rate",), (), ()]


def test_a_slower_duck_may_be_asked_for() -> None:
    limited = safety.limit_targets(STAND + 0.5, STAND, Limits(target_rate=5.0))
    assert limited.applied == pytest.approx(STAND + 0.1)


def test_targets_out_of_range_are_moved_to_its_end() -> None:
    targets = STAND.copy()
    targets[1], targets[5] = 0.6, -1.7  # hip roll reaches 22 degrees, neck pitch -90
    limited = safety.limit_targets(targets, STAND, LIMITS)
    assert limited.requested is targets
    assert limited.applied[1] == pytest.approx(0.383972, abs=1e-6)
    assert limited.applied[5] == pytest.approx(0.3490659 - 1.2, abs=1e-6)  # slowed before it is out of range
    assert limited.limited_by == ("target rate", "joint range")


def test_a_joint_out_of_range_may_come_back_but_not_go_further() -> None:
    found = STAND.copy()
    found[1] = -0.6  # left hip roll reaches -22 degrees = -0.384 rad
    further, back = found.copy(), found.copy()
    further[1], back[1] = -0.7, -0.5
    assert safety.limit_targets(further, found, LIMITS).applied[1] == -0.6
    assert safety.limit_targets(back, found, LIMITS).applied[1] == -0.5


# Commands


@pytest.mark.parametrize(("age_s", "expected"), [(0.0, 0.3), (0.49, 0.3), (0.5, 0.0), (inf, 0.0), (nan, 0.0)])
def test_a_command_counts_for_half_a_second(age_s: float, expected: float) -> None:
    limited = safety.live_command(np.array([0.3, 0.0, 0.0]), age_s, LIMITS)
    assert limited.applied.tolist() == [expected, 0.0, 0.0]
    assert limited.limited_by == (() if expected else ("deadman",))


def test_a_lost_command_that_was_zero_changed_nothing() -> None:
    assert safety.live_command(np.zeros(3), inf, LIMITS).limited_by == ()


def test_what_is_not_finite_in_a_command_is_zero_and_the_rest_counts() -> None:
    limited = safety.finite(np.array([0.2, nan, -inf]))
    assert limited.applied.tolist() == [0.2, 0.0, 0.0]
    assert limited.limited_by == ("non-finite",)


LOW, HIGH = np.array([0.0, 0.0, -0.5]), np.array([0.3, 0.0, 0.5])


@pytest.mark.parametrize(
    ("asked", "applied", "limited_by"),
    [
        ([0.01, 0.0, 0.0], [0.01, 0.0, 0.0], ()),
        ([0.3, 0.0, 0.0], [0.02, 0.0, 0.0], ("command slew",)),
        ([0.0, 0.1, 0.0], [0.0, 0.0, 0.0], ("command box",)),
        ([0.4, 0.0, 0.0], [0.02, 0.0, 0.0], ("command box", "command slew")),
    ],
)
def test_a_limited_command_names_its_limits(
    asked: list[float], applied: list[float], limited_by: tuple[str, ...]
) -> None:
    limited = safety.step_command(np.zeros(3), np.array(asked), LOW, HIGH)
    assert limited.requested.tolist() == asked
    assert limited.applied == pytest.approx(applied)
    assert limited.limited_by == limited_by


def test_a_limited_head_names_its_limits() -> None:
    assert safety.step_head(np.zeros(4), np.array([0.0, 0.04, 0.0, 0.0])).limited_by == ()
    assert safety.step_head(np.zeros(4), np.array([0.0, 0.2, 0.0, 0.0])).limited_by == ("head slew",)
    both = safety.step_head(np.zeros(4), np.array([0.0, 0.0, 2.5, 0.0]))
    assert both.limited_by == ("head box", "head slew")


# Falls


def gravity(pitch_degrees: float, roll_degrees: float = 0.0) -> np.ndarray:
    """Gravity in a trunk that was first pitched (nose down is positive), then rolled."""
    p, r = radians(pitch_degrees), radians(roll_degrees)
    return np.array([sin(p), -cos(p) * sin(r), -cos(p) * cos(r)])


def test_a_lean_of_59_degrees_is_no_fall_and_one_of_61_is() -> None:
    assert not safety.leans(gravity(59), LIMITS)
    assert safety.leans(gravity(61), LIMITS)
    assert safety.leans(gravity(0, -61), LIMITS)


def test_a_duck_that_leans_26_degrees_does_not_sit_any_more() -> None:
    assert safety.upright(gravity(25), LIMITS)
    assert not safety.upright(gravity(26), LIMITS)


NOSE_DOWN, ROLL_RIGHT = np.array([0.0, 1.0, 0.0]), np.array([1.0, 0.0, 0.0])


@pytest.mark.parametrize(
    ("pitch", "roll", "rate", "falls"),
    [
        (30, 0, 3.0 * NOSE_DOWN, True),  # 30 degrees and 0.9 rad more: 82
        (30, 0, 1.0 * NOSE_DOWN, False),  # 47 degrees in 0.3 s; the straight line says -0.72
        (30, 0, -3.0 * NOSE_DOWN, False),  # on its way back
        (-30, 0, -3.0 * NOSE_DOWN, True),  # backwards
        (-30, 0, 3.0 * NOSE_DOWN, False),
        (0, 30, 3.0 * ROLL_RIGHT, True),
        (0, 30, -3.0 * ROLL_RIGHT, False),
        (0, -30, -3.0 * ROLL_RIGHT, True),
        (20, 0, 9.0 * NOSE_DOWN, False),  # fast, but not yet far enough
        (30, 0, np.array([0.0, 0.0, 9.0]), False),  # turns on the spot
    ],
)
def test_a_fall_under_way_is_seen_from_tilt_and_turn_rate(
    pitch: float, roll: float, rate: np.ndarray, falls: bool
) -> None:
    assert safety.tips(gravity(pitch, roll), rate, LIMITS) is falls


def test_the_walks_own_rocking_is_no_fall() -> None:
    # The shipped walker leans up to 13 degrees and rolls at up to 2.5 rad/s.
    for side in (-1.0, 1.0):
        assert not safety.tips(gravity(8, 10 * side), 2.5 * side * ROLL_RIGHT, LIMITS)


# Servos


def test_a_current_counts_while_it_lasts_at_each_joint() -> None:
    current = np.zeros(14)
    current[3], current[8] = -1.1, 0.9
    lasted = safety.overcurrent_s([0.0] * 14, current, 1, LIMITS)
    lasted = safety.overcurrent_s(lasted, current, 3, LIMITS)
    assert lasted[3] == pytest.approx(0.08)
    assert np.count_nonzero(lasted) == 1
    assert not any(safety.overcurrent_s(lasted, np.zeros(14), 1, LIMITS))


def test_hot_servos_are_named_with_their_temperature(make_health: Callable[..., Any]) -> None:
    temperature = np.full(14, 40.0)
    temperature[3], temperature[13] = 65.0, 71.4
    assert safety.hot(make_health(temperature=temperature), 65.0) == (
        "left_knee 65 deg C",
        "right_ankle 71 deg C",
    )
    assert safety.hot(make_health(temperature=np.full(14, nan)), 65.0) == ()


def test_a_servo_trips_on_the_faults_of_its_shutdown_mask_only(make_health: Callable[..., Any]) -> None:
    # 52 = overload, electrical shock, overheating; a full pack is above the voltage a servo is rated for.
    faults = {"left_knee": ("overload", "input voltage"), "neck_pitch": ("input voltage",)}
    assert safety.tripped(make_health(faults=faults)) == ("left_knee has tripped on overload",)


def test_an_alert_is_alarming_unless_it_is_known_for_the_voltage_of_a_charged_pack(
    make_health: Callable[..., Any],
) -> None:
    faults = {"left_knee": ("overload", "input voltage"), "neck_pitch": ("input voltage",)}
    alerts = ("left_knee", "neck_pitch", "head_yaw")
    assert safety.alarming(alerts, make_health(faults=faults)) == ("left_knee", "head_yaw")
    assert safety.alarming(alerts, None) == alerts
    assert safety.alarming((), make_health(faults=faults)) == ()


def test_whatever_takes_torque_from_a_servo_is_named(make_health: Callable[..., Any]) -> None:
    assert safety.lost_servos(make_health()) == ()
    assert safety.lost_servos(make_health(rebooted=("left_hip_yaw",))) == (
        "left_hip_yaw has restarted by itself",
    )
    assert "watchdog" in safety.lost_servos(make_health(watchdog_tripped=True))[0]


# Battery


PACK = Battery(rail_is_pack=True)


@pytest.mark.parametrize(
    ("volts", "percent"), [(6.6, 0.0), (8.2, 100.0), (7.4, 50.0), (5.0, 0.0), (9.0, 100.0)]
)
def test_the_voltage_of_a_pack_is_its_charge(volts: float, percent: float) -> None:
    assert safety.charge(volts, PACK) == pytest.approx(percent)


def test_the_voltage_of_a_regulated_rail_is_nobodys_charge() -> None:
    assert safety.charge(4.986, Battery()) is None


def test_a_step_of_the_voltage_is_believed_over_ten_seconds(make_health: Callable[..., Any]) -> None:
    volts = None
    for seen in [8.0] + [6.0] * 10:
        volts = safety.smooth_voltage(volts, make_health(voltage=np.full(14, seen)))
    assert volts == pytest.approx(6.0 + 2.0 * 0.9**10)
    assert safety.smooth_voltage(7.0, make_health(voltage=np.full(14, nan))) == 7.0
    assert safety.smooth_voltage(None, make_health(voltage=np.linspace(7.0, 8.0, 14))) == pytest.approx(7.5)
