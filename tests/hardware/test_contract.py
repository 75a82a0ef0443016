import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch

from hardware import contract, joints
from hardware.errors import CommandError, ContractError

MakeArray = Callable[[Any], Any]
Close = Callable[..., bool]


def signals(layout: str, lead: tuple[int, ...] = ()) -> dict[str, np.ndarray]:
    """Each signal filled with its own number: 1 for the first block, 2 for the second."""
    return {b.name: np.full((*lead, b.width), i + 1.0) for i, b in enumerate(contract.blocks(layout))}


# Layouts


@pytest.mark.parametrize(
    ("layout", "starts"),
    [
        # Where TorchRL's MicroDuckEnv documents each part of its 56 values.
        (
            "state",
            {
                "projected_gravity": 0,
                "angular_velocity": 3,
                "linear_velocity": 6,
                "planar_command": 9,
                "joint_error": 11,
                "joint_velocity": 25,
                "gait_clock": 39,
                "previous_action": 42,
                "end": 56,
            },
        ),
        (
            "sensor",
            {
                "projected_gravity": 0,
                "angular_velocity": 3,
                "command": 6,
                "heading_error": 9,
                "joint_error": 10,
                "joint_velocity": 24,
                "gait_clock": 38,
                "previous_action": 41,
                "end": 55,
            },
        ),
    ],
)
def test_layout_puts_each_signal_in_its_place(layout: str, starts: dict[str, int]) -> None:
    observation = contract.observe(layout, signals(layout))
    edges = list(starts.values())
    assert observation.shape == (edges[-1],) == (contract.width(layout),)
    assert [block.name for block in contract.blocks(layout)] == list(starts)[:-1]
    for number, (start, end) in enumerate(pairwise(edges), start=1):
        assert set(observation[start:end]) == {number}


def test_observation_is_the_same_for_torch_and_numpy_and_for_rows() -> None:
    rng = np.random.default_rng(1)
    rows = {b.name: rng.normal(size=(3, 2, b.width)) for b in contract.blocks("sensor")}
    observed = contract.observe("sensor", rows)
    as_torch = contract.observe("sensor", {name: torch.from_numpy(value) for name, value in rows.items()})
    assert observed.shape == (3, 2, 55)
    assert np.array_equal(as_torch.numpy(), observed)
    alone = contract.observe("sensor", {name: value[1, 0] for name, value in rows.items()})
    assert np.array_equal(alone, observed[1, 0])


def test_observation_keeps_single_precision() -> None:
    single = {name: value.astype(np.float32) for name, value in signals("sensor").items()}
    assert contract.observe("sensor", single).dtype == np.float32


def test_unknown_layout_lists_the_valid_ones() -> None:
    with pytest.raises(
        ContractError, match=r"layout 'camera' does not exist; choose one of \['sensor', 'state'\]"
    ):
        contract.width("camera")


def test_missing_signal_is_named() -> None:
    incomplete = signals("sensor")
    del incomplete["gait_clock"]
    with pytest.raises(ContractError, match="layout 'sensor' needs the signal 'gait_clock'; got"):
        contract.observe("sensor", incomplete)


def test_signal_of_another_width_is_named_with_both_widths() -> None:
    wide = {**signals("sensor"), "command": np.zeros(2)}
    with pytest.raises(ContractError, match="command must be 3 wide in layout 'sensor', not 2"):
        contract.observe("sensor", wide)


# Gait clock


def run_clock(array: MakeArray, hertz: float, ticks: int) -> contract.GaitClock:
    clock = contract.start_clock(array(0.0))
    for _ in range(ticks):
        clock = contract.advance_clock(clock, array(hertz))
    return clock


def test_clock_starts_at_its_offset_with_no_ramp(array: MakeArray, close: Close) -> None:
    # sin and cos of -1.5237
    assert close(contract.clock_signal(run_clock(array, 2.0, 0)), [-0.998891, 0.047078, 0.0], 1e-6)


def test_clock_after_ten_ticks_at_two_hertz(array: MakeArray, close: Close) -> None:
    clock = run_clock(array, 2.0, 10)
    assert close(clock.phase, 0.9895741, 1e-7)
    # 0.2 s at 2 Hz are 0.8 pi beyond the offset; half of the 0.4 s ramp is over.
    assert close(contract.clock_signal(clock), [0.8357922, 0.5490459, 0.5], 1e-7)


def test_phase_wraps_and_ramp_ends(array: MakeArray, close: Close) -> None:
    clock = run_clock(array, 2.0, 20)
    assert close(clock.phase, -2.7803371, 1e-7)  # -1.5237 + 1.6 pi - 2 pi
    assert close(contract.clock_signal(run_clock(array, 2.0, 60))[2], 1.0)


def test_phase_is_continuous_when_the_frequency_changes(array: MakeArray, close: Close) -> None:
    before = run_clock(array, 1.0, 7)
    after = contract.advance_clock(before, array(3.0))
    assert close(after.phase - before.phase, 0.3769911, 1e-7)  # 2 pi * 0.02 s * 3 Hz


def test_phase_stays_precise_in_single_precision_for_ten_minutes() -> None:
    clock = contract.start_clock(np.zeros((), np.float32))
    for _ in range(30_000):
        clock = contract.advance_clock(clock, np.float32(1.8913))
    # 600 s at 1.8913 Hz are 1134.78 turns: 0.78 * 2 pi - 1.5237 = 3.3771847, less one turn.
    assert clock.phase == pytest.approx(-2.9060008, abs=0.01)


def test_clocks_of_a_batch_run_apart(array: MakeArray, close: Close) -> None:
    clock = contract.advance_clock(contract.start_clock(array([0.0, 0.0])), array([1.0, 2.0]))
    signal = contract.clock_signal(clock)
    assert signal.shape == (2, 3)
    assert close(clock.phase, [-1.3980363, -1.2723726], 1e-7)


def test_clock_takes_the_precision_of_its_template() -> None:
    clock = contract.advance_clock(contract.start_clock(torch.zeros(2)), torch.full((2,), 2.0))
    assert contract.clock_signal(clock).dtype == torch.float32


def test_frequency_rises_with_planar_speed_only(array: MakeArray, close: Close) -> None:
    commands = array([[0.3, -0.4, 9.0], [0.0, 0.0, 1.0]])
    assert close(contract.gait_frequency(array([1.0, 2.0]), array([5.0, 5.0]), commands), [3.5, 2.0])
    assert close(contract.gait_frequency(array(1.0), array(5.0), array([0.3, 0.4])), 3.5)


# Command

LOW, HIGH = [-0.1, 0.0, -1.0], [0.3, 0.0, 1.0]


@pytest.mark.parametrize("command", [LOW, HIGH, [0.1, 0.0, 0.0]])
def test_command_inside_its_box_is_accepted(array: MakeArray, command: list[float]) -> None:
    contract.check_command(array(command), array(LOW), array(HIGH))


def test_box_kept_in_single_precision_accepts_its_own_ends() -> None:
    ends = np.array([0.1, 0.3, 0.7])  # float32 rounds 0.3 up and 0.7 down
    contract.check_command(ends, ends.astype(np.float32), ends.astype(np.float32))


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ([0.31, 0.0, 0.0], r"command vx = 0\.31 is outside \[-0\.1, 0\.3\]; choose a value inside the box"),
        ([0.0, -0.01, 0.0], r"command vy = -0\.01 is outside \[0, 0\]"),
        ([0.0, 0.0, float("nan")], r"command yaw_rate = nan is outside \[-1, 1\]"),
        ([float("inf"), 0.0, 0.0], r"command vx = inf is outside"),
    ],
)
def test_command_outside_its_box_is_refused(array: MakeArray, command: list[float], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        contract.check_command(array(command), array(LOW), array(HIGH))


def test_bad_row_of_many_is_found_and_boxes_may_differ(array: MakeArray) -> None:
    low, high = array([LOW, [0.0, 0.0, 0.0]]), array([HIGH, [0.2, 0.0, 0.0]])
    contract.check_command(array([[0.3, 0.0, 0.0], [0.2, 0.0, 0.0]]), low, high)
    with pytest.raises(CommandError, match=r"vx = 0\.3 is outside \[0, 0\.2\]"):
        contract.check_command(array([[0.3, 0.0, 0.0], [0.3, 0.0, 0.0]]), low, high)
    with pytest.raises(CommandError, match=r"vx = 0\.3 is outside \[0, 0\.2\]"):
        contract.check_command(array([0.3, 0.0, 0.0]), low, high)


def test_command_moves_at_its_slew_rate(array: MakeArray, close: Close) -> None:
    step = contract.step_command(
        array([0.0, 0.0, 0.0]), array([1.0, -1.0, 1.0]), array([-1.0] * 3), array([1.0] * 3)
    )
    assert close(step, [0.02, -0.02, 0.06])  # 1 m/s2, 1 m/s2 and 3 rad/s2 for 0.02 s


def test_command_arrives_and_stays(array: MakeArray, close: Close) -> None:
    target = array([0.03, 0.0, -0.07])
    command = array([0.0, 0.0, 0.0])
    for _ in range(3):
        command = contract.step_command(command, target, array(LOW), array(HIGH))
    assert close(command, [0.03, 0.0, -0.07])


def test_command_never_leaves_the_box(array: MakeArray, close: Close) -> None:
    step = contract.step_command(array([0.29, 0.0, 0.0]), array([5.0, 5.0, 0.0]), array(LOW), array(HIGH))
    assert close(step, [0.3, 0.0, 0.0])


# Heading


def test_heading_error_is_what_the_gyro_turned_beyond_the_command(array: MakeArray, close: Close) -> None:
    gyro, upright = array([0.3, -0.2, 1.0]), array([0.0, 0.0, -1.0])
    error = contract.advance_heading(array(0.1), gyro, upright, array(0.25))
    assert close(error, 0.115, 1e-7)  # 20 ms of 1.0 - 0.25 rad/s


def test_heading_is_turned_about_the_vertical_and_not_about_the_trunk(array: MakeArray, close: Close) -> None:
    # Lying on its left side, y points down: turning about -y is turning to the left.
    lying = array([0.0, 1.0, 0.0])
    error = contract.advance_heading(array(0.0), array([0.0, -2.0, 5.0]), lying, array(0.0))
    assert close(error, 0.04, 1e-7)


@pytest.mark.parametrize(("rate", "end"), [(4.0, 0.5), (-4.0, -0.5)])
def test_heading_error_ends_at_half_a_radian(array: MakeArray, close: Close, rate: float, end: float) -> None:
    error = array(0.0)
    for _ in range(100):
        error = contract.advance_heading(error, array([0, 0, rate]), array([0, 0, -1.0]), array(0.0))
    assert close(error, end, 1e-7)


# Action map


def test_no_action_holds_stand(array: MakeArray, close: Close) -> None:
    action = array([0.0] * 14)
    assert close(contract.ActionMap(action, 0.35).joint_targets(action), joints.STAND)


def test_action_of_one_moves_a_joint_by_the_scale(array: MakeArray, close: Close) -> None:
    action = array([0.0, 0.0, 1.0, 0.0, -1.0] + [0.0] * 9)
    targets = contract.ActionMap(action, 0.35).joint_targets(action)
    assert close(targets[2], -0.107924)  # left hip pitch: -0.457924 + 0.35
    assert close(targets[4], 0.102984)  # left ankle: 0.452984 - 0.35


def test_action_is_clipped_to_one(array: MakeArray) -> None:
    action_map = contract.ActionMap(array([0.0]), 0.35)
    far, one = (action_map.joint_targets(array([value] * 14)) for value in (-7.0, -1.0))
    assert bool((far == one).all())


def test_target_stops_at_the_joint_range(array: MakeArray, close: Close) -> None:
    action = array([0.0, -1.0] + [0.0] * 12)
    # Left hip roll stands at -5 degrees; 0.35 rad further is beyond its 22 degrees.
    assert close(contract.ActionMap(action, 0.35).joint_targets(action)[1], -0.383972, 1e-6)


def test_joint_error_is_zero_at_stand_and_signed(array: MakeArray, close: Close) -> None:
    action_map = contract.ActionMap(array([0.0]), 0.35)
    assert close(action_map.joint_error(array(joints.STAND.tolist())), [0.0] * 14)
    assert close(action_map.joint_error(array([0.0] * 14))[4], -0.452984)


def test_action_map_works_on_rows_and_keeps_single_precision() -> None:
    action = torch.rand(5, 14) * 2 - 1
    targets = contract.ActionMap(action, 0.35).joint_targets(action)
    as_numpy = contract.ActionMap(action.numpy(), 0.35).joint_targets(action.numpy())
    assert (targets.shape, targets.dtype) == ((5, 14), torch.float32)
    assert np.array_equal(targets.numpy(), as_numpy)


# Description


def test_description_holds_all_that_simulator_and_robot_share() -> None:
    described = contract.describe("sensor", 0.35)
    assert described["joint_names"][:2] == ["left_hip_yaw", "left_hip_roll"]
    assert described["stand_rad"][5] == 0.3490659
    assert described["control_period_s"] == 0.02
    assert [described["layout"], described["observation"][2]] == ["sensor", ["command", 3, "m/s, m/s, rad/s"]]
    assert (described["action_scale_rad"], described["position_p_gain"]) == (0.35, 200)
    assert contract.describe("sensor", 0.35, p_gain=150)["position_p_gain"] == 150


def test_description_survives_json_with_the_same_digest() -> None:
    described = contract.describe("sensor", 1 / 3)
    again = json.loads(json.dumps(described))
    assert again == described
    assert contract.digest(again) == contract.digest(described)


def test_digest_is_that_of_sorted_json_without_spaces() -> None:
    # printf '{"a":[1.5],"b":1}' | sha256sum
    wanted = "be0f99d229adbed6fd3e3206be946511ff4ff13f0a68d5611e41781abe3175b1"
    assert contract.digest({"b": 1, "a": [1.5]}) == wanted


def test_digest_tells_contracts_apart() -> None:
    described = [
        contract.describe("sensor", 0.35),
        contract.describe("state", 0.35),
        contract.describe("sensor", 0.35000000000000003),
        contract.describe("sensor", 0.35, 201),
    ]
    assert len({contract.digest(one) for one in described}) == 4


def test_digest_refuses_what_json_cannot_hold() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        contract.digest(contract.describe("sensor", float("nan")))


def test_differences_name_each_field_and_both_values() -> None:
    ours, theirs = contract.describe("sensor", 0.35), contract.describe("sensor", 0.5)
    del theirs["command_slew"]
    theirs["extra"] = 1
    assert contract.differences(ours, ours) == []
    assert contract.differences(ours, theirs) == [
        "action_scale_rad: this toolkit has 0.35, the other has 0.5",
        "command_slew: this toolkit has [1.0, 1.0, 3.0], the other has 'absent'",
        "extra: this toolkit has 'absent', the other has 1",
    ]
