"""TorchRL's twenty terms: numbers worked out by hand, TorchRL's own; and what holds for every term."""

import math

import pytest
import torch
from torchrl.envs.custom.mujoco.microduck import MicroDuckEnv as TorchRLDuck

from microduck.rewards import REWARD_TERMS, Features

BACKWARD = {"command": [-0.2, 0.0], "body_velocity": [-0.2, 0.0, 0.0]}
STILL = {"body_velocity": [0.0, 0.0, 0.0]}
STANDING = {"command": [0.0, 0.0]}
TIPPED = {"upright": 0.34}
HOPPING = {"gait_phase": 0.0, "world_velocity": [0.0, 0.0, 0.05]}
TAKING_OFF = {"contacts": [True, True], "world_velocity": [0.0, 0.0, 0.25]}
IN_THE_AIR = {"contacts": [False, False], "base_height": 0.1225}
LANDING = {"touchdown_air_time": [0.225, 0.0]}

CASES = [
    # term, what differs from walking well at 0.2 m/s, value
    ("tracking", {}, 1.0),
    ("tracking", {"body_velocity": [0.3, 0.0, 0.0]}, 0.3678794),  # one std along: exp(-1)
    ("tracking", {"body_velocity": [0.2, 0.05, 0.0]}, 0.3678794),  # one std across, which is half as wide
    ("tracking", {"body_velocity": [0.3, 0.05, 9.0]}, 0.1353353),  # both: exp(-2); the vertical is not asked
    ("tracking", {"command": [0.0, 0.2], "body_velocity": [0.05, 0.2, 0.0]}, 0.3678794),
    ("tracking", {**STANDING, "body_velocity": [0.0, 0.2, 0.0]}, 0.0183156),  # exp(-4), no direction
    (
        "tracking",
        {"command": [0.009, 0.0], "body_velocity": [0.009, 0.1, 0.0]},
        0.3678794,
    ),  # counts as standing
    (
        "tracking",
        {"command": [0.011, 0.0], "body_velocity": [0.011, 0.1, 0.0]},
        0.0183156,
    ),  # counts as walking
    ("tracking", {"body_velocity": [0.4, 0.0, 0.0], "tracking_std": 0.2}, 0.3678794),
    ("yaw_rate", {"angular_velocity": [9.0, 9.0, 1.0]}, 0.1353353),  # exp(-1 / 0.5)
    ("yaw_rate", {"angular_velocity": [0.0, 0.0, 1.0], "yaw_rate_command": 1.0}, 1.0),
    ("yaw_rate", {"yaw_rate_command": -1.0}, 0.1353353),
    ("turn", {"angular_velocity": [9.0, 9.0, 0.5]}, 0.3678794),
    ("turn", {"turn_rate": 1.0}, 0.0183156),  # exp(-1 / 0.25)
    ("turn", {"turn_rate": 1.0, "angular_velocity": [0.0, 0.0, 1.0], "yaw_rate_command": -1.0}, 1.0),
    ("head_level", {"head_pitch": 0.3}, 0.3678794),
    ("head_level", {"head_yaw": -0.3}, 0.3678794),
    ("head_level", {"head_pitch": -0.6, "head_pitch_target": -0.3, "head_yaw": 0.3}, 0.1353353),
    ("upright", {"upright": math.cos(0.1)}, 0.8187308),  # exp(-0.01 / 0.05)
    ("upright", {"upright": 1.0000001}, 1.0),  # as rounding makes it
    ("pose", {"joint_error": [0.5] * 14}, 0.3678794),
    ("pose", {"joint_error": [math.sqrt(7.0), *[0.0] * 13]}, 0.1353353),  # mean square 0.5
    ("progress", {}, 1.0),
    ("progress", {"body_velocity": [0.1, 0.7, 0.0]}, 0.5),
    ("progress", {"body_velocity": [0.5, 0.0, 0.0]}, 1.0),
    ("progress", {"body_velocity": [-0.5, 0.0, 0.0]}, -1.0),
    ("progress", {"command": [0.12, -0.16], "body_velocity": [0.06, -0.08, 0.0]}, 0.5),
    ("progress", STANDING, 0.0),
    ("air_time", LANDING, 0.1),
    ("air_time", {"touchdown_air_time": [0.9, 0.1]}, 0.175),  # capped at 0.3 s; under 0.125 s pays nothing
    ("air_time", {"touchdown_air_time": [0.225, 0.225]}, 0.2),
    ("air_time", {**LANDING, **STILL}, 0.05),
    ("air_time", {**LANDING, **STILL, "gait_progress_floor": 0.2}, 0.02),
    ("air_time", {**LANDING, "body_velocity": [0.1, 0.0, 0.0]}, 0.075),
    ("air_time", {**LANDING, "body_velocity": [-0.2, 0.0, 0.0]}, 0.05),  # no less than in place
    ("air_time", {**LANDING, **TIPPED}, 0.0),
    ("air_time", {**LANDING, "upright": 0.36}, 0.1),
    ("swing_height", {}, 1.0),
    ("swing_height", {"foot_heights": [0.01, 0.5]}, 0.5),  # the left foot swings, the right does not count
    ("swing_height", {"foot_heights": [-0.01, 0.5]}, 0.0),
    ("swing_height", {"foot_heights": [0.5, 0.005], "gait_phase": -math.pi / 2}, 0.25),
    ("swing_height", {"foot_heights": [0.5, 0.005], **BACKWARD}, 0.25),
    ("swing_height", STILL, 0.5),
    ("swing_height", TIPPED, 0.0),
    ("phase_contact", {}, 1.0),
    ("phase_contact", {"contacts": [True, True]}, 0.0),
    ("phase_contact", {"contacts": [False, False]}, 0.0),
    ("phase_contact", {"contacts": [True, False]}, 0.0),
    ("phase_contact", {"contacts": [True, False], "gait_phase": -math.pi / 2}, 1.0),
    ("phase_contact", BACKWARD, 0.0),  # the clock runs mirrored
    ("phase_contact", {"body_velocity": [0.1, 0.0, 0.0]}, 0.75),
    ("phase_contact", TIPPED, 0.0),
    ("double_support", {"contacts": [True, True]}, 1.0),
    ("double_support", {"contacts": [True, True], **STILL}, 0.5),
    ("double_support", {"contacts": [True, True], **TIPPED}, 0.0),
    ("double_support", {}, 0.0),
    ("ang_vel_xy", {"angular_velocity": [3.0, 4.0, 9.0]}, 25.0),
    ("lin_vel_z", {"body_velocity": [0.2, 0.0, -0.5]}, 0.25),
    ("action_rate", {"action": [0.5] * 14, "previous_action": [-0.5] * 14}, 14.0),
    ("joint_velocity", {"joint_velocity": [-2.0] * 14}, 56.0),
    ("drift", {"world_velocity": [0.09, -0.12, 5.0]}, 0.5),
    ("drift", {"world_velocity": [0.3, 0.4, 0.0]}, 1.0),
    ("drift", {"world_velocity": [0.3, 0.4, 0.0], "drift_speed_scale": 2.0}, 0.25),
    ("hop_rhythm", HOPPING, 0.5),
    ("hop_rhythm", {**HOPPING, "gait_phase": math.pi}, -0.5),
    ("hop_rhythm", {**HOPPING, "hop_velocity_amplitude": 0.2}, 0.25),
    ("hop_rhythm", {"gait_phase": math.pi, "world_velocity": [0.0, 0.0, -0.3]}, 1.0),
    ("hop_rhythm", {"gait_phase": 0.0, "body_velocity": [0.0, 0.0, 0.1]}, 0.0),  # leaning is not hopping
    ("hop_rhythm", {**HOPPING, **TIPPED}, 0.0),
    ("launch", TAKING_OFF, 0.5),
    ("launch", {**TAKING_OFF, "world_velocity": [0.0, 0.0, -0.25]}, 0.0),
    ("launch", {**TAKING_OFF, "world_velocity": [0.0, 0.0, 2.0]}, 1.0),
    ("launch", {**TAKING_OFF, "contacts": [True, False]}, 0.0),
    ("launch", {**TAKING_OFF, **TIPPED}, 0.0),
    ("jump", IN_THE_AIR, 0.5),
    ("jump", {**IN_THE_AIR, "base_height": 0.2}, 1.0),
    ("jump", {**IN_THE_AIR, "base_height": 0.11}, 0.0),
    ("jump", {**IN_THE_AIR, "contacts": [False, True]}, 0.0),
    ("jump", {**IN_THE_AIR, **TIPPED}, 0.0),
    ("termination", {"fallen": True}, 1.0),
    ("termination", {}, 0.0),
]


@pytest.mark.parametrize(("name", "changes", "expected"), CASES)
def test_a_term_has_its_hand_worked_value(name, changes, expected, value):
    assert value(name, changes) == pytest.approx(expected, abs=5e-6)


def test_every_term_of_torchrl_has_a_hand_worked_value_between_nothing_and_full():
    numbers = {name: {expected for term, _, expected in CASES if term == name} for name, _, _ in CASES}
    assert list(numbers) == list(REWARD_TERMS)[:20]
    assert [name for name, values in numbers.items() if not values - {0.0, 1.0}] == ["termination"]


# As TorchRL's main line, 0.14.1 with the body frame exchanged for the world frame in these.
WORLD_FRAME = ("drift", "hop_rhythm", "launch")
COMMANDS = torch.tensor(
    [[0.0, 0.0], [0.009, 0.0], [0.3, 0.0], [-0.2, 0.0], [0.0, 0.15], [0.0, -0.15], [-0.1, 0.2], [0.2, 0.1]]
)


@pytest.fixture(scope="module")
def random_features():
    """512 ducks doing anything, under each of the commands."""
    rng, rows = torch.Generator().manual_seed(3), 512

    def spread(*shape):
        return 2 * torch.rand(rows, *shape, generator=rng, dtype=torch.float64) - 1

    return {
        "body_velocity": 0.4 * spread(3),
        "world_velocity": 0.4 * spread(3),
        "angular_velocity": 2 * spread(3),
        "upright": spread(),
        "base_height": 0.12 + 0.01 * spread(),
        "standing_height": torch.full((rows,), 0.12, dtype=torch.float64),
        "joint_error": spread(14),
        "joint_velocity": 5 * spread(14),
        "action": 1.5 * spread(14),
        "previous_action": 1.5 * spread(14),
        "contacts": spread(2) > 0,
        "foot_heights": 0.03 * spread(2),
        "touchdown_air_time": (0.4 * spread(2)).clamp(min=0),
        "gait_phase": 10 * spread(),
        "command": COMMANDS.double().repeat(rows // len(COMMANDS), 1),
        "yaw_rate_command": torch.zeros(rows, dtype=torch.float64),
        "fallen": spread() > 0,
    }


@pytest.mark.parametrize("name", TorchRLDuck.REWARD_TERMS)
def test_a_term_agrees_with_torchrl(name, random_features):
    rng = torch.Generator().manual_seed(4)
    params = {
        key: default * (0.5 + torch.rand(512, generator=rng, dtype=torch.float64))
        for key, default in TorchRLDuck.REWARD_PARAMS.items()
    }
    theirs = dict(random_features)
    if name in WORLD_FRAME:
        theirs["body_velocity"] = random_features["world_velocity"]
    expected = TorchRLDuck.REWARD_TERMS[name].fn(theirs, params)
    got = REWARD_TERMS[name].function(Features(random_features), params)
    assert expected.unique().numel() > 1
    torch.testing.assert_close(got, expected, rtol=1e-6, atol=1e-6)


def test_defaults_agree_with_torchrl():
    for name, theirs in TorchRLDuck.REWARD_TERMS.items():
        ours = REWARD_TERMS[name]
        assert (ours.weight, ours.per_second) == (theirs.weight, theirs.per_second), name
    assert TorchRLDuck.REWARD_PARAMS.items() <= REWARD_TERMS.params.items()


@pytest.mark.parametrize("name", REWARD_TERMS)
def test_a_term_leaves_its_features_and_parameters_alone(name, walking_features, params):
    given = {key: tensor.clone() for key, tensor in (walking_features | params).items()}
    REWARD_TERMS[name].function(Features(walking_features), params)
    for key, tensor in (walking_features | params).items():
        assert torch.equal(tensor, given[key]), key


@pytest.mark.parametrize("name", REWARD_TERMS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_term_keeps_the_device_and_precision_of_its_features(name, dtype, walking_features, params):
    # Tensors of the meta device hold no values; mixing them with the CPU's fails as it would on a GPU.
    moved, row = (
        {key: t.to("meta", dtype if t.is_floating_point() else t.dtype) for key, t in given.items()}
        for given in (walking_features, params)
    )
    result = REWARD_TERMS[name].function(Features(moved), row)
    assert (result.device.type, result.dtype, result.shape) == ("meta", dtype, (1,))
