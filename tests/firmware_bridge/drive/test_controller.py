from __future__ import annotations

from math import cos, pi, sin
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from firmware_bridge.drive.controller import Controller
from firmware_bridge.robot.body import BodySample
from firmware_bridge.skills.bundle import Bundle, load_bundle
from hardware import contract
from hardware.joints import STAND

NO_HEAD = np.zeros(4)
SAMPLE = BodySample(
    time_s=0.0,
    position=STAND + np.arange(14) / 100,
    velocity=np.arange(14) / 10,
    current=np.zeros(14),
    angular_velocity=np.array([0.1, 0.2, 0.3]),
    gravity=np.array([0.6, 0.0, -0.8]),
    alerts=(),
)


def test_the_first_observation_holds_the_signals_in_the_layouts_order(bundle: Bundle) -> None:
    controller = Controller(bundle, bundle.skill("walk"))
    controller.targets(SAMPLE)
    seen = controller.observation
    assert seen.dtype == np.float32
    expected = [0.6, 0, -0.8, 0.1, 0.2, 0.3, 0, 0, 0, 0]
    expected += [i / 100 for i in range(14)] + [i / 10 for i in range(14)]
    expected += [-0.998891, 0.047079, 0.0]  # sin and cos of -1.5237, ramp 0
    assert seen[:41] == pytest.approx(expected, abs=1e-6)
    assert seen[41:].tolist() == [0.0] * 14


def test_the_second_observation_holds_the_raw_action_and_the_clock_one_period_later(bundle: Bundle) -> None:
    controller = Controller(bundle, bundle.skill("walk"))
    controller.targets(SAMPLE)
    controller.advance(np.zeros(3), NO_HEAD, SAMPLE, 1)
    controller.targets(SAMPLE)
    phase = -1.5237 + 2 * pi * 1.5 * 0.02
    assert controller.observation[38:41] == pytest.approx([sin(phase), cos(phase), 0.05], abs=1e-6)
    assert controller.observation[41] == 0.25  # the policy's constant at left hip yaw
    assert controller.observation[45] == pytest.approx(0.5 * -0.998891, abs=1e-6)  # left ankle


def test_targets_are_stand_plus_scale_times_action(bundle: Bundle) -> None:
    targets = Controller(bundle, bundle.skill("walk")).targets(SAMPLE)
    expected = STAND.copy()
    expected[0] += 0.8 * 0.25
    expected[4] += 0.8 * 0.5 * -0.998891
    assert targets == pytest.approx(expected, abs=1e-6)


def test_the_clock_keeps_real_time_over_skipped_ticks(bundle: Bundle) -> None:
    one_by_one, at_once = (Controller(bundle, bundle.skill("stand")) for _ in range(2))
    for _ in range(7):
        one_by_one.advance(np.zeros(3), NO_HEAD, SAMPLE, 1)
    at_once.advance(np.zeros(3), NO_HEAD, SAMPLE, 7)
    phase = -1.5237 + 2 * pi * 2.0 * 0.14
    for controller in (one_by_one, at_once):
        assert controller.state.clock.phase == pytest.approx(phase)
        assert controller.state.clock.elapsed == pytest.approx(0.14)


def test_a_command_is_approached_at_one_metre_per_second_squared(bundle: Bundle) -> None:
    controller = Controller(bundle, bundle.skill("walk"))
    seen = []
    for _ in range(16):
        controller.advance(np.array([0.3, 0.0, -0.5]), NO_HEAD, SAMPLE, 1)
        seen.append(controller.state.command.copy())
    vx, yaw = [s[0] for s in seen], [s[2] for s in seen]
    assert vx[:3] == pytest.approx([0.02, 0.04, 0.06])
    assert vx[14:] == pytest.approx([0.3, 0.3])
    assert yaw[:2] == pytest.approx([-0.06, -0.12])
    assert yaw[15] == pytest.approx(-0.5)


def test_a_command_beyond_the_box_stops_at_its_edge(bundle: Bundle) -> None:
    controller = Controller(bundle, bundle.skill("walk"))
    controller.advance(np.array([5.0, 1.0, 9.0]), NO_HEAD, SAMPLE, 25)
    assert controller.state.command == pytest.approx([0.3, 0.0, 0.5])


def test_a_faster_command_speeds_the_gait_clock_up(bundle: Bundle) -> None:
    controller = Controller(bundle, bundle.skill("walk"))
    controller.advance(np.array([0.3, 0.0, 0.0]), NO_HEAD, SAMPLE, 25)
    before = controller.state.clock.phase
    controller.advance(np.array([0.3, 0.0, 0.0]), NO_HEAD, SAMPLE, 1)
    assert (controller.state.clock.phase - before) % (2 * pi) == pytest.approx(2 * pi * 1.8 * 0.02)


def test_heading_error_grows_by_the_turn_that_was_not_commanded(bundle: Bundle) -> None:
    controller = Controller(bundle, bundle.skill("walk"))
    controller.advance(np.array([0.0, 0.0, 0.5]), NO_HEAD, SAMPLE, 3)
    # About the vertical the sample turns at 0.3 * 0.8 - 0.1 * 0.6 = 0.18 rad/s; the command grows by 0.06
    # rad/s a period from zero, and each period is held against the command it was driven with.
    wanted = 0.02 * (3 * 0.18 - (0.0 + 0.06 + 0.12))
    controller.targets(SAMPLE)
    assert controller.observation[9] == pytest.approx(wanted, abs=1e-7)


# Skills


def test_changing_the_skill_keeps_clock_and_history(bundle: Bundle) -> None:
    controller = Controller(bundle, bundle.skill("stand"))
    controller.targets(SAMPLE)
    controller.advance(np.zeros(3), NO_HEAD, SAMPLE, 7)
    phase = -1.5237 + 2 * pi * 2.0 * 0.14  # stand's clock runs at 2 Hz, walk's at 1.5
    controller.choose(bundle.skill("walk"))
    controller.advance(np.zeros(3), NO_HEAD, SAMPLE, 2)
    assert controller.skill.name == "walk"
    assert controller.state.clock.phase == pytest.approx(phase + 2 * pi * 1.5 * 0.04)
    assert controller.state.clock.elapsed == pytest.approx(0.18)
    assert controller.state.previous_action[4] == pytest.approx(0.5 * -0.998891, abs=1e-6)


def test_a_walking_duck_slows_down_before_it_changes_to_standing(bundle: Bundle) -> None:
    controller = Controller(bundle, bundle.skill("walk"))
    controller.advance(np.array([0.06, 0.0, 0.5]), NO_HEAD, SAMPLE, 25)
    controller.choose(bundle.skill("stand"))  # whose box holds zero only
    seen = []
    for _ in range(11):
        controller.advance(np.array([0.06, 0.0, 0.5]), NO_HEAD, SAMPLE, 1)
        seen.append((controller.skill.name, *controller.state.command[[0, 2]].tolist()))
    assert seen[0] == ("walk", pytest.approx(0.04), pytest.approx(0.44))
    assert seen[8] == ("walk", pytest.approx(0.0), pytest.approx(0.0))
    assert seen[9] == ("stand", pytest.approx(0.0), pytest.approx(0.0))


def test_a_new_start_forgets_the_old_clock_command_and_head(bundle: Bundle) -> None:
    controller = Controller(bundle, bundle.skill("walk"))
    controller.advance(np.array([0.3, 0.0, 0.5]), np.full(4, 0.05), SAMPLE, 25)
    controller.targets(SAMPLE)
    controller.reset(bundle.skill("stand"))
    state = controller.state
    assert not state.command.any() and not state.head.any() and not state.previous_action.any()
    assert (float(state.clock.phase), float(state.clock.elapsed)) == (-1.5237, 0.0)


# Head


def test_the_policy_does_not_see_that_its_head_was_turned(bundle: Bundle) -> None:
    still, turned = (Controller(bundle, bundle.skill("stand")) for _ in range(2))
    turned.advance(np.zeros(3), np.array([0.0, 0.0, 0.5, 0.0]), SAMPLE, 10)
    still.advance(np.zeros(3), NO_HEAD, SAMPLE, 10)
    position = SAMPLE.position.copy()
    position[7] += 0.4  # ten periods at 2 rad/s
    apart = turned.targets(SAMPLE._replace(position=position)) - still.targets(SAMPLE)
    assert turned.observation == pytest.approx(still.observation, abs=1e-6)
    assert apart[7] == pytest.approx(0.4)
    assert np.delete(apart, 7) == pytest.approx(np.zeros(13), abs=1e-6)


def test_what_limits_command_and_head_is_named(bundle: Bundle) -> None:
    controller = Controller(bundle, bundle.skill("walk"))
    controller.advance(np.array([0.3, 0.0, 0.0]), np.array([0.0, 0.0, 5.0, 0.0]), SAMPLE, 1)
    assert controller.limited_by == ("command slew", "head box", "head slew")
    controller.advance(np.array([0.02, 0.0, 0.0]), controller.state.head, SAMPLE, 1)
    assert controller.limited_by == ()


# Layout `state`


@pytest.fixture
def state_bundle(draft: Any, make_model: Any, tmp_path: Path) -> Bundle:
    draft.description, draft.width = contract.describe("state", 0.8), 56
    draft.model = make_model(width=56).SerializeToString()
    return load_bundle(draft.write(tmp_path / "state"))


def leaning(periods: int) -> BodySample:
    """Return a duck on level feet whose hips swing at 1 rad/s, back from STAND until period 0."""
    position, angle = STAND.copy(), 0.02 * periods
    position[[2, 4]] += (angle, -angle)  # hip pitch and ankle of the left leg
    position[[11, 13]] -= (angle, -angle)
    upright = np.array([0.0, 0.0, -1.0])
    return SAMPLE._replace(position=position, angular_velocity=np.zeros(3), gravity=upright)


def test_a_skill_of_layout_state_sees_the_estimated_velocity_and_the_planar_command(
    state_bundle: Bundle,
) -> None:
    controller = Controller(state_bundle, state_bundle.skill("walk"))
    controller.targets(leaning(-25))
    assert controller.observation[6:11].tolist() == [0.0] * 5
    for period in range(-24, 1):
        controller.advance(np.array([0.1, 0.0, 0.3]), NO_HEAD, leaning(period), 1)
    controller.targets(leaning(0))
    # In STAND the ankles lie 0.0733 m below and 0.0040 m behind the hips' pitch axes.
    assert controller.observation[6:9] == pytest.approx([0.0733, 0.0, -0.0040], abs=0.003)
    assert controller.observation[9:11] == pytest.approx([0.1, 0.0])
    assert controller.observation[11:25] == pytest.approx(leaning(0).position - STAND)


def test_a_new_start_forgets_the_old_velocity(state_bundle: Bundle) -> None:
    controller = Controller(state_bundle, state_bundle.skill("walk"))
    for period in range(-24, 1):
        controller.advance(np.zeros(3), NO_HEAD, leaning(period), 1)
    controller.reset(state_bundle.skill("stand"))
    controller.targets(leaning(0))
    assert controller.observation[6:9].tolist() == [0.0] * 3


def test_layout_sensor_has_no_estimate_to_pay_for(bundle: Bundle) -> None:
    assert Controller(bundle, bundle.skill("walk")).estimator is None
