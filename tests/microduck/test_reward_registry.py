import math

import cloudpickle
import pytest
import torch

from hardware.errors import TaskError
from microduck.rewards import REWARD_TERMS, RewardRegistry, register_reward

# TorchRL's main line: its order, default weights and parameters.
TORCHRL = {
    "tracking": (2.0, {"tracking_std": 0.1, "tracking_off_axis_std": 0.05}),
    "yaw_rate": (1.0, {"yaw_rate_std": math.sqrt(0.5)}),
    "turn": (0.0, {"turn_rate": 0.0, "turn_rate_std": 0.5}),
    "head_level": (1.0, {"head_pitch_target": 0.0, "head_level_std": 0.3}),
    "upright": (2.0, {"upright_std": math.sqrt(0.05)}),
    "pose": (1.0, {"pose_std": 0.5}),
    "progress": (2.0, {}),
    "air_time": (3.0, {"air_time_min": 0.125, "air_time_max": 0.3, "gait_progress_floor": 0.5}),
    "swing_height": (2.0, {"swing_target_height": 0.02}),
    "phase_contact": (3.0, {}),
    "double_support": (-1.0, {}),
    "ang_vel_xy": (-0.05, {}),
    "lin_vel_z": (-2.0, {}),
    "action_rate": (-0.1, {}),
    "joint_velocity": (-0.001, {}),
    "drift": (0.0, {"drift_speed_scale": 0.3}),
    "hop_rhythm": (0.0, {"hop_velocity_amplitude": 0.1}),
    "launch": (0.0, {"launch_velocity_scale": 0.5}),
    "jump": (0.0, {"jump_target_height": 0.005}),
    "termination": (-4.0, {}),
}
OURS = {
    "speed_error": {},
    "heading_hold": {"heading_hold_std": 0.3},
    "foot_slip": {},
    "foot_clearance": {"clearance_target_height": 0.02},
    "torque": {},
    "power": {},
    "joint_limit": {"joint_limit_margin": 0.1},
    "self_collision": {},
    "action_acceleration": {},
    "flat_foot": {},
    "air_time_moving": {},
    "flight": {},
    "single_support": {},
    "soar": {"soar_floor": 0.01, "soar_height": 0.01},
    "mean_velocity": {"mean_velocity_std": 0.05},
}


def test_torchrls_terms_come_first_with_its_defaults_and_ours_weigh_nothing():
    expected = TORCHRL | {name: (0.0, params) for name, params in OURS.items()}
    registered = {name: (term.weight, term.params) for name, term in REWARD_TERMS.items()}
    assert list(registered) == list(expected)
    assert registered == expected
    assert REWARD_TERMS.weights == {name: weight for name, (weight, _) in expected.items()}


def test_the_parameters_of_all_terms_are_listed_together():
    params = REWARD_TERMS.params
    assert len(params) == 17 + 6
    assert (params["pose_std"], params["joint_limit_margin"]) == (0.5, 0.1)
    params["pose_std"] = 9.0
    assert REWARD_TERMS.params["pose_std"] == 0.5


def test_only_the_termination_is_not_paid_per_second():
    assert [name for name, term in REWARD_TERMS.items() if not term.per_second] == ["termination"]


@pytest.fixture
def registry():
    """Two terms, one with a parameter."""
    made = RewardRegistry()
    made.register("calm", weight=1.0, calm_std=0.5)(lambda features, params: features["upright"])
    made.register("loud")(lambda features, params: -features["upright"])
    return made


def test_a_registered_function_stays_usable_by_its_name(registry):
    @registry.register("bold", weight=2, per_second=False, bold_scale=3)
    def bold(features, params):
        return features["upright"] * params["bold_scale"]

    term = registry["bold"]
    assert term.function is bold
    assert (term.weight, term.per_second, term.params) == (2.0, False, {"bold_scale": 3.0})
    assert list(registry) == ["calm", "loud", "bold"]
    assert bold({"upright": torch.tensor([0.5])}, {"bold_scale": torch.tensor([3.0])}).tolist() == [1.5]


def test_a_term_registered_on_a_copy_stays_there(registry):
    copied = registry.copy()
    copied.register("bold", bold_scale=1.0)(lambda features, params: features["upright"])
    copied.unregister("calm")
    assert list(copied) == ["loud", "bold"]
    assert list(registry) == ["calm", "loud"]
    assert (copied.params, registry.params) == ({"bold_scale": 1.0}, {"calm_std": 0.5})


def test_a_registry_of_a_dictionarys_terms_keeps_their_order(registry):
    taken = {name: registry[name] for name in ("loud", "calm")}
    made = RewardRegistry.of(taken)
    taken.clear()
    assert (list(made), made.params) == (["loud", "calm"], {"calm_std": 0.5})
    assert made["calm"] is registry["calm"]


def test_an_unregistered_term_takes_its_parameters_along_and_frees_its_names(registry):
    registry.unregister("calm")
    assert (list(registry), registry.params) == (["loud"], {})
    registry.register("calm", calm_std=2.0)(lambda features, params: features["upright"])
    assert (list(registry), registry.params) == (["loud", "calm"], {"calm_std": 2.0})


def test_unregistering_an_unknown_term_names_those_there_are(registry):
    with pytest.raises(TaskError, match=r"no reward term is named 'grace'; the terms are \['calm', 'loud'\]"):
        registry.unregister("grace")


def test_a_term_registered_inside_a_function_reaches_a_worker_process(registry):
    def main():
        gain = 2.0

        @registry.register("local", local_bias=1.0)
        def local(features, params):
            return features["upright"] * gain + params["local_bias"]

    main()
    arrived = cloudpickle.loads(cloudpickle.dumps(registry))
    assert list(arrived) == ["calm", "loud", "local"]
    assert arrived["local"].function is not registry["local"].function
    values = arrived["local"].function({"upright": torch.tensor([3.0])}, {"local_bias": torch.tensor([1.0])})
    assert values.tolist() == [7.0]


@pytest.mark.parametrize(
    ("name", "numbers", "message"),
    [
        ("tracking", {}, "'tracking' is registered already; choose another name"),
        ("new", {"pose_std": 1.0}, "parameter 'pose_std' of term 'new' belongs to another"),
        ("new", {"new_std": float("nan")}, "new_std of term 'new' is nan; it must be a finite number"),
        ("new", {"new_std": "wide"}, "new_std of term 'new' is 'wide'; it must be a finite number"),
        ("new", {"weight": float("inf")}, "weight of term 'new' is inf; it must be a finite number"),
        ("", {}, "'' cannot name a reward term; give a string"),
        ("pose,upright", {}, "'pose,upright' cannot name a reward term; .* without commas"),
        (7, {}, "7 cannot name a reward term; give a string"),
        (["pose"], {}, r"\['pose'\] cannot name a reward term; give a string"),
    ],
)
def test_a_term_that_no_row_could_hold_is_refused(name, numbers, message):
    before = dict(REWARD_TERMS)
    with pytest.raises(TaskError, match=message):
        register_reward(name, **numbers)
    assert dict(REWARD_TERMS) == before
