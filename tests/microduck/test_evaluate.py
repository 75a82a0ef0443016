"""What an evaluation measures and what it asks for, against hand-made episodes and scripted policies."""

from math import pi

import pytest
import torch

from hardware.errors import ConfigError, ContractError
from hardware.servo import STALL_TORQUE
from microduck.evaluation import (
    EvaluationOptions,
    Recorder,
    evaluate,
    points,
    score,
)
from microduck.evaluation.commands import ticks
from microduck.evaluation.results import Wanted, figures
from microduck.evaluation.tally import Tally
from microduck.gait import MicroDuckGait
from microduck.policy import SkillPolicy
from microduck.tasks import (
    make_task,
    sidestep_task,
    speed_range_task,
    stack_tasks,
    standing_task,
    tracking_task,
    turning_task,
)

MASS = 0.737
AT_REST = torch.tensor([[0.0, 0.0, 0.12, 1.0, 0.0, 0.0, 0.0]])


def options(layout="sensor", action_scale=1.0, **changes):
    return EvaluationOptions(layout, action_scale, **{"seed": 3, "episodes": 3, **changes})


@pytest.fixture
def still():
    """A policy that holds STAND, which tips the duck over in about a second."""
    policy = SkillPolicy(55, 2)
    with torch.no_grad():
        policy.heads.weight.zero_()
    return policy


@pytest.fixture
def balance():
    """A scripted policy that balances at zero vx and walks at about 0.08 m/s at 0.075."""
    gait = MicroDuckGait()
    return lambda observation, task_id: gait.actions(observation)


@pytest.fixture
def library():
    return stack_tasks([speed_range_task(0.1, 0.3), standing_task()])


@pytest.fixture
def measured(walking_features):
    """Figures of one duck from what changes step by step, told a command and a yaw rate."""

    def measure(steps, command=(0.2, 0.0, 0.0), yaw_rate=0.0):
        tally = Tally(AT_REST, torch.tensor([yaw_rate]))
        for number, changes in enumerate(steps):
            given = {name: torch.as_tensor(value).unsqueeze(0) for name, value in changes.items()}
            tally.add({**walking_features, **given}, number)
        return figures(tally, slice(0, 1), Wanted(command, yaw_rate), MASS)

    return measure


# Commands --------------------------------------------------------------------------------------------------


def commands(row, grid):
    return [command for _, command in points(stack_tasks([row]), grid)]


def test_a_box_of_one_axis_is_tried_at_round_values_and_its_ends():
    assert commands(speed_range_task(0.0, 0.35), 5) == [(v, 0, 0) for v in (0.0, 0.1, 0.2, 0.3, 0.35)]
    assert commands(speed_range_task(-0.25, -0.05), 5) == [
        (v, 0, 0) for v in (-0.25, -0.2, -0.15, -0.1, -0.05)
    ]
    assert commands(sidestep_task(-0.15), 5) == [(0, -0.15, 0)]


def test_a_box_with_yaw_rate_is_also_tried_along_it_and_in_its_fast_corners():
    row = speed_range_task(0.0, 0.3, yaw_rate_interval=(-0.5, 0.5))
    assert commands(row, 4) == [
        *((v, 0, 0) for v in (0.0, 0.1, 0.2, 0.3)),
        (0, 0, -0.5),
        (0, 0, 0.5),
        (0.3, 0, -0.5),
        (0.3, 0, 0.5),
    ]
    backward = speed_range_task(-0.2, 0.1, yaw_rate_interval=(-0.5, 0.5))
    assert commands(backward, 3)[-2:] == [(-0.2, 0, -0.5), (-0.2, 0, 0.5)]


def test_a_quick_look_takes_the_extremes_of_the_box():
    row = make_task((0.0, -0.1), (0.3, 0.1), name="any", yaw_rate_interval=(-0.5, 0.25))
    assert commands(row, 2) == [(0.0, -0.1, -0.5), (0.3, 0.1, 0.25)]
    assert commands(row, 1) == [(0.3, 0.1, 0.25)]
    assert commands(speed_range_task(-0.3, -0.1), 1) == [(-0.3, 0, 0)]


@pytest.mark.parametrize(
    ("low", "high", "most", "wanted"),
    [
        (-1.0, 1.0, 5, [-1.0, -0.5, 0.0, 0.5, 1.0]),
        (0.07, 0.21, 4, [0.07, 0.1, 0.2, 0.21]),
        (0.0, 10.0, 2, [0.0, 10.0]),
        (-10.0, 10.0, 3, [-10.0, 10.0]),
    ],
)
def test_round_values_get_coarser_until_few_enough_are_left(low, high, most, wanted):
    assert ticks(low, high, most) == wanted


# Tally -----------------------------------------------------------------------------------------------------


def airborne(height, lower):
    contacts = torch.tensor([False, False])
    feet = torch.tensor([lower, lower + 0.01])
    return {"contacts": contacts, "base_height": 0.12 + height, "foot_heights": feet}


def test_a_hop_is_measured_by_its_time_in_the_air_its_top_and_its_lower_sole(measured):
    down = {"contacts": [True, True], "base_height": 0.11, "foot_heights": [0.0, 0.0]}
    hop = [down] * 4 + [airborne(0.01, 0.004), airborne(0.025, 0.012), airborne(0.015, 0.006)] + [down] * 3
    bounce = [down] * 4 + [airborne(0.1, 0.1)] + [down] * 5
    seen = measured((hop * 4 + bounce) * 2)
    # 13 of 50 steps; four flights in each second, the bounce of one step is none.
    assert seen.airborne == pytest.approx(0.26)
    assert seen.double_support == pytest.approx(0.74)
    assert seen.flights_per_s == pytest.approx(4.0)
    assert seen.apex == pytest.approx(0.025)
    assert seen.clearance == pytest.approx(0.012)


def test_who_never_leaves_the_ground_has_no_apex(measured):
    seen = measured([{}] * 60)
    assert (seen.apex, seen.clearance, seen.flights_per_s, seen.airborne) == (None, None, 0.0, 0.0)


def turned(angle):
    return torch.tensor([torch.cos(torch.tensor(angle / 2)), 0.0, 0.0, torch.sin(torch.tensor(angle / 2))])


def test_a_wanted_turn_is_no_drift_and_any_other_is(measured):
    # 0.5 rad/s for 10 s: across the jump of the angle at pi.
    turning = [{"quaternion": turned(0.01 * (step + 1))} for step in range(500)]
    wanted, unwanted = measured(turning, yaw_rate=0.5), measured(turning)
    assert wanted.heading_drift_p95 == pytest.approx(0.0, abs=1e-4)
    assert unwanted.heading_drift_p95 == pytest.approx(5.0, abs=1e-3)
    assert (wanted.turn_rate, wanted.turn_rate_error) == pytest.approx((0.5, 0.0), abs=1e-4)
    assert unwanted.turn_rate_error == pytest.approx(0.5, abs=1e-4)


def test_velocity_is_taken_along_and_across_the_command_after_the_first_second(measured):
    start = {"body_velocity": [9.0, 9.0, 0.0]}
    then = {"body_velocity": [0.1, 0.2, 0.0]}
    seen = measured([start] * 50 + [then] * 10, (0.0, 0.15, 0.0))
    assert (seen.speed, seen.across) == pytest.approx((0.2, 0.1))
    assert seen.speed_error == pytest.approx(0.05)
    # The command (0.3, 0.4) points along (0.6, 0.8): 0.06 + 0.16 along it, |0.12 - 0.08| across.
    seen = measured([then] * 60, (0.3, 0.4, 0.0))
    assert (seen.speed, seen.across, seen.speed_error) == pytest.approx((0.22, 0.04, 0.28))


def test_power_and_cost_of_transport_count_braking(measured):
    signs = torch.tensor([1.0, -1.0] * 7)
    step = {"joint_torque": 0.1 * signs, "joint_velocity": torch.full((14,), 2.0)}
    seen = measured([step] * 60)
    assert seen.power == pytest.approx(14 * 0.2)
    # 2.8 W / (0.737 kg x 9.81 m/s2 x 0.2 m/s = 1.446 W)
    assert seen.cost_of_transport == pytest.approx(1.936, abs=0.001)
    assert measured([step] * 60, (0.0, 0.0, 0.0)).cost_of_transport is None


def test_torques_are_told_joint_by_joint_against_the_servos_limit(measured):
    calm, hard = torch.full((14,), 0.5 * STALL_TORQUE), torch.full((14,), 0.5 * STALL_TORQUE)
    hard[3] = -0.95 * STALL_TORQUE
    seen = measured([{"joint_torque": calm}] * 96 + [{"joint_torque": hard}] * 4)
    assert seen.hard == pytest.approx(0.04)
    assert seen.torque_p95 == pytest.approx([0.48] * 14, abs=0.0097)
    assert seen.torque_max[3] == pytest.approx(0.912, abs=0.0097)
    assert seen.torque_max[2] == pytest.approx(0.48, abs=0.0097)


def test_slip_is_the_speed_of_feet_that_stay_down(measured):
    def at(step):
        # The left foot swings fast, the right one slides by 1 mm a step.
        return {
            "foot_positions": [[0.1 * step, 0.03], [0.001 * step, -0.03]],
            "contacts": [False, True],
            "previous_contacts": [False, step > 0],
        }

    assert measured([at(step) for step in range(60)]).foot_slip == pytest.approx(0.05)


def test_action_rate_is_the_root_mean_square_of_the_change(measured):
    changed = torch.zeros(14)
    changed[:7] = 0.2
    # Half of the joints change by 0.2 in half of the steps.
    assert measured([{}, {"action": changed}] * 30).action_rate == pytest.approx(0.1)


def test_a_duck_counts_until_it_falls(walking_features):
    tally = Tally(AT_REST.repeat(2, 1), torch.zeros(2))
    both = {name: value.repeat(2, *[1] * (value.ndim - 1)) for name, value in walking_features.items()}
    for step in range(100):
        falls = torch.tensor([False, step >= 75])
        now = {**both, "fallen": falls}
        now["position"] = torch.tensor([[0.004 * step, 0.0], [0.004 * step, 0.0]])
        if step > 75:  # what a fallen duck does is no matter, however wild
            now["body_velocity"] = torch.tensor([[0.2, 0.0, 0.0], [torch.nan, torch.inf, 0.0]])
            now["joint_velocity"] = torch.full((2, 14), 1.0) * torch.tensor([[0.0], [torch.nan]])
        tally.add(now, step)
    seen = figures(tally, slice(0, 2), Wanted((0.2, 0.0, 0.0), 0.0), MASS)
    assert seen.survival == 0.5
    assert (seen.speed, seen.speed_error_worst) == pytest.approx((0.2, 0.0), abs=1e-6)
    assert seen.power == 0.0
    alone = figures(tally, slice(1, 2), Wanted((0.2, 0.0, 0.0), 0.0), MASS)
    assert alone.planar_drift_p95 == pytest.approx(0.004 * 74)  # where it was last upright


# Whole evaluations -----------------------------------------------------------------------------------------


def test_a_duck_that_balances_stands_and_is_met(balance):
    result = evaluate(balance, stack_tasks([standing_task(name="s")]), options("state", 0.35))[0]
    assert result.met and score(result) == 1.0
    point = result.points[0]
    assert point.survival == 1.0 and point.planar_drift_p95 < 0.01 and point.double_support > 0.99
    # What it takes to hold 0.737 kg still is next to nothing.
    assert point.power < 0.02 and point.hard == 0.0


def test_a_scripted_walk_is_met_at_its_own_speed_and_at_no_other(balance):
    own, other = evaluate(
        balance, stack_tasks([tracking_task(0.08), tracking_task(0.15, name="fast")]), options("state", 0.35)
    )
    assert own.points[0].survival == 1.0
    assert own.points[0].speed == pytest.approx(0.08, abs=0.01)  # what its gains were found at, 0.075
    assert [check.criterion for check in other.unmet][:1] == ["speed"]
    assert score(other) < 0.7


def test_a_duck_that_holds_stand_falls_within_two_seconds(still, library):
    seen = []
    results = evaluate(still, library, options(steps=100), seen.append)
    assert [result.task for result in results] == ["speed_range+0.10..+0.30", "standing"]
    assert [point.survival for result in results for point in result.points] == [0.0] * 6
    assert seen == list(range(1, 101))
    assert [score(result) for result in results] == [0.0, 0.0]
    assert results[0].points[0].action_rate == 0.0


def test_starts_are_cold_whatever_the_row_says(still):
    row = speed_range_task(
        warm_start_fraction=1.0, warm_start_velocity=(0.2, 0.2), joint_reset_noise_scale=0.5
    )
    other = row.clone()
    other.name = "another"
    library = stack_tasks([row, other])
    results = evaluate(still, library, options(steps=51))
    assert library.warm_start_fraction.tolist() == [1.0, 1.0]  # the caller's library is left alone
    assert max(point.speed for result in results for point in result.points) < 0.5


def test_equal_seeds_give_equal_results_and_others_do_not(still, library):
    first, again = (evaluate(still, library, options(steps=51)) for _ in range(2))
    other = evaluate(still, library, options(steps=51, seed=4))
    assert first == again
    assert first != other


def test_the_turn_that_a_row_pays_for_is_wanted_though_its_command_is_zero(still):
    library = stack_tasks([turning_task(1.0), make_task((0, 0), (0, 0), name="t", yaw_rate_interval=(1, 1))])
    for result in evaluate(still, library, options(steps=51)):
        # The duck hardly turns until it falls, which takes most of a second, though 1 rad/s was wanted.
        assert result.points[0].yaw_rate == 1.0
        assert 0.4 < result.points[0].heading_drift_p95 < 1.2


def test_the_first_episode_of_each_command_is_kept_up_to_its_fall(still, library):
    recorder = Recorder()
    results = evaluate(still, library, options(steps=100), recorder=recorder)
    traces = recorder.traces()
    assert len(traces) == sum(len(result.points) for result in results) == 6
    for trace in traces:
        assert 20 < len(trace.qpos) == len(trace.contacts) == len(trace.phase) < 80
        assert trace.qpos.shape[1] == 21 and (trace.qpos[:, 2] > 0.06).all()
        assert (abs(trace.phase) <= pi + 1e-6).all()


@pytest.mark.parametrize(
    ("changes", "error", "said"),
    [
        ({"episodes": 0}, ConfigError, "episodes is 0; it must be a whole number of 1 or more"),
        ({"grid": 0}, ConfigError, "grid is 0"),
        ({"steps": 50}, ConfigError, "steps is 50; it must be a whole number of 51 or more"),
        ({"seed": -1}, ConfigError, "seed is -1"),
        ({"layout": "none"}, ContractError, "layout 'none' does not exist"),
    ],
)
def test_options_that_make_no_evaluation_are_refused(changes, error, said):
    with pytest.raises(error, match=said):
        options(**changes)
