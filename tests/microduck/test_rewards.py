"""Each term against numbers worked out by hand."""

import math

import pytest
import torch

from hardware.errors import TaskError
from microduck.rewards import REWARD_TERMS, derive, register_reward

# TorchRL's order and default weights, less the terms that none of the three presets weighs; then our own.
DEFAULTS = {
    "tracking": 2.0,
    "yaw_rate": 1.0,
    "head_level": 1.0,
    "upright": 2.0,
    "pose": 1.0,
    "progress": 2.0,
    "air_time": 3.0,
    "swing_height": 2.0,
    "phase_contact": 3.0,
    "double_support": -1.0,
    "ang_vel_xy": -0.05,
    "lin_vel_z": -2.0,
    "action_rate": -0.1,
    "joint_velocity": -0.001,
    "termination": -4.0,
    "speed_error": 0.0,
    "heading": 0.0,
}


def test_registered_terms_have_the_documented_order_and_default_weights():
    assert {name: term.weight for name, term in REWARD_TERMS.items()} == DEFAULTS
    assert list(REWARD_TERMS) == list(DEFAULTS)


def test_only_the_termination_is_not_paid_per_second():
    assert [name for name, term in REWARD_TERMS.items() if not term.per_second] == ["termination"]


CASES = [
    # term, what differs from walking well, value
    ("tracking", {}, 1.0),
    ("tracking", {"body_velocity": [0.3, 0.0, 0.0]}, 0.3678794),  # one std along: exp(-1)
    ("tracking", {"body_velocity": [0.2, 0.05, 0.0]}, 0.3678794),  # one std across, which is half as wide
    (
        "tracking",
        {"command": [0.0, 0.0], "body_velocity": [0.0, 0.2, 0.0]},
        0.0183156,
    ),  # exp(-4), no direction
    ("yaw_rate", {"angular_velocity": [0.0, 0.0, 1.0]}, 0.1353353),  # exp(-1 / 0.5)
    ("yaw_rate", {"angular_velocity": [0.0, 0.0, 1.0], "yaw_rate_command": 1.0}, 1.0),
    ("head_level", {"head_pitch": 0.3}, 0.3678794),
    ("head_level", {"head_yaw": -0.3}, 0.3678794),
    ("upright", {"upright": math.cos(0.1)}, 0.8187308),  # exp(-0.01 / 0.05)
    ("pose", {"joint_error": [0.5] * 14}, 0.3678794),
    ("progress", {}, 1.0),
    ("progress", {"body_velocity": [0.1, 0.0, 0.0]}, 0.5),
    ("progress", {"body_velocity": [0.5, 0.0, 0.0]}, 1.0),
    ("progress", {"body_velocity": [-0.5, 0.0, 0.0]}, -1.0),
    ("progress", {"command": [0.0, 0.0]}, 0.0),
    ("air_time", {"touchdown_air_time": [0.225, 0.0]}, 0.1),
    ("air_time", {"touchdown_air_time": [0.9, 0.1]}, 0.175),  # capped at 0.3 s; under 0.125 s pays nothing
    ("air_time", {"touchdown_air_time": [0.225, 0.0], "body_velocity": [0.0, 0.0, 0.0]}, 0.05),
    ("air_time", {"touchdown_air_time": [0.225, 0.0], "upright": 0.3}, 0.0),
    ("swing_height", {}, 1.0),
    (
        "swing_height",
        {"foot_heights": [0.01, 0.5]},
        0.5,
    ),  # the left foot swings, the right one does not count
    ("swing_height", {"gait_phase": -math.pi / 2}, 0.0),
    ("phase_contact", {}, 1.0),
    ("phase_contact", {"contacts": [True, True]}, 0.0),
    ("phase_contact", {"contacts": [True, False]}, 0.0),
    ("phase_contact", {"gait_phase": -math.pi / 2, "contacts": [True, False]}, 1.0),
    (
        "phase_contact",
        {"command": [-0.2, 0.0], "body_velocity": [-0.2, 0.0, 0.0]},
        0.0,
    ),  # clock runs backwards
    ("double_support", {"contacts": [True, True]}, 1.0),
    ("double_support", {}, 0.0),
    ("ang_vel_xy", {"angular_velocity": [3.0, 4.0, 9.0]}, 25.0),
    ("lin_vel_z", {"body_velocity": [0.2, 0.0, -0.5]}, 0.25),
    ("action_rate", {"action": [0.5] * 14}, 3.5),
    ("joint_velocity", {"joint_velocity": [2.0] * 14}, 56.0),
    ("termination", {"fallen": True}, 1.0),
    ("termination", {}, 0.0),
    ("speed_error", {}, 1.0),
    ("speed_error", {"body_velocity": [0.3, 0.0, 0.0]}, 0.5),
    ("speed_error", {"body_velocity": [0.9, 0.0, 0.0]}, -1.0),
    ("speed_error", {"command": [0.0, 0.0]}, 0.0),
    ("heading", {"heading": 0.3}, 0.3678794),
]


@pytest.mark.parametrize(("name", "changes", "value"), CASES)
def test_term_value(name, changes, value, walking_features, params):
    features = walking_features | {key: torch.tensor([new]) for key, new in changes.items()}
    got = REWARD_TERMS[name].function(derive(features), params)
    assert got.shape == (1,)
    assert float(got) == pytest.approx(value, abs=2e-6)


def test_stepping_in_place_earns_less_than_walking(walking_features, params):
    still = walking_features | {"body_velocity": torch.zeros(1, 3)}
    totals = [
        sum(term.weight * float(term.function(derive(features), params)) for term in REWARD_TERMS.values())
        for features in (walking_features, still)
    ]
    # Walking well earns 2+1+1+2+1 for tracking, yaw, head, upright and pose, 2 progress, 2+3 the gait.
    assert totals[0] == pytest.approx(14.0, abs=1e-5)
    # In place: exp(-4) of tracking, no progress, half of the gait.
    assert totals[1] == pytest.approx(2 * 0.0183156 + 5 + 2.5, abs=1e-5)


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("tracking", {}, "'tracking' is registered already"),
        ("new", {"pose_std": 1.0}, "'pose_std' of term 'new' belongs to another term"),
        ("new", {"new_std": float("nan")}, "new_std of term 'new' is nan"),
    ],
)
def test_registering_what_is_taken_or_not_finite_is_refused(name, params, message):
    with pytest.raises(TaskError, match=message):
        register_reward(name, **params)
    assert list(REWARD_TERMS) == list(DEFAULTS)
