import logging

import pytest
import torch
from torchrl.envs import MicroDuckEnv as Peer

from hardware.errors import ConfigError, ContractError
from microduck import EnvOptions, MicroDuckEnv, PhysicsOptions


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"layout": "camera"}, ContractError, "'camera' does not exist; choose one of .'sensor', 'state'."),
        ({"num_envs": 0}, ConfigError, "num_envs is 0; it must be a whole number of 1 or more"),
        ({"num_envs": 2.5}, ConfigError, "num_envs is 2.5; it must be a whole number"),
        ({"num_envs": True}, ConfigError, "num_envs is True"),
        ({"action_scale": 0.0}, ConfigError, r"action_scale is 0.0 rad; it must be finite, in \(0, pi\]"),
        ({"action_scale": float("nan")}, ConfigError, "action_scale is nan"),
        ({"max_episode_steps": float("nan")}, ConfigError, "max_episode_steps is nan"),
        ({"seed": -1}, ConfigError, "seed is -1; it must be a whole number of 0 or more"),
        ({"seed": "0"}, ConfigError, "seed is '0'"),
        ({"reset_yaw": 4.0}, ConfigError, r"reset_yaw is 4.0; it must be in \[0, 3.14159\]"),
        ({"reset_height": -0.1}, ConfigError, "reset_height is -0.1"),
        ({"reset_noise_scale": float("inf")}, ConfigError, "reset_noise_scale is inf"),
        ({"physics": "bullet"}, ConfigError, "physics is 'bullet'; choose one of .'native', 'warp'."),
        ({"device": "cuda"}, ConfigError, "device is cuda, but native physics runs on cpu"),
        ({"pixels_only": True}, ConfigError, "pixels_only is set without from_pixels"),
        ({"render_every": 0}, ConfigError, "render_every is 0"),
        ({"from_pixels": True, "render_width": 5000}, ConfigError, "a picture of 5000 x 64 is too large"),
        ({"camera_id": -1}, ConfigError, "camera_id is -1"),
        ({"device": "mars"}, ConfigError, "device is 'mars'; choose cpu, or cuda with physics='warp'"),
        ({"layout": ["sensor"]}, ConfigError, r"layout is \['sensor'\]; choose one of .'sensor', 'state'."),
        ({"physics_options": None}, ConfigError, "physics_options is None; give PhysicsOptions"),
        ({"diagnostics": "no"}, ConfigError, "diagnostics is 'no'; it must be True or False"),
        ({"root": 5}, ConfigError, "root is 5; it must be the path of a folder, or None"),
        ({"number_of_envs": 3}, ConfigError, "no setting 'number_of_envs'; choose from .'num_envs'"),
    ],
)
def test_a_bad_setting_is_refused_by_name_and_value(arguments, error, message):
    with pytest.raises(error, match=message):
        MicroDuckEnv(**arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"substeps": 0}, "substeps is 0"),
        ({"threads": -1}, "threads is -1"),
        ({"threads": True}, "threads is True"),
        ({"body_contacts": "yes"}, "body_contacts is 'yes'; it must be True or False"),
        ({"threads": 1.5}, "threads is 1.5"),
        ({"iterations": 0}, "iterations is 0"),
        ({"integrator": "euler"}, "integrator is 'euler'; choose one of .'Euler', 'RK4'"),
        ({"timestep": 0.003}, "timestep is 0.003 s; a whole number of steps must make the control period"),
        ({"timestep": 0.0}, "timestep is 0.0 s"),
        ({"timestep": 0.002, "substeps": 4}, "timestep 0.002 s makes 10 steps .* but substeps is 4"),
    ],
)
def test_bad_physics_options_are_refused(arguments, message):
    with pytest.raises(ConfigError, match=message):
        PhysicsOptions(**arguments)


def test_timestep_substeps_integrator_and_iterations_reach_the_model():
    options = PhysicsOptions(timestep=0.002, integrator="RK4", iterations=3)
    env = MicroDuckEnv(physics_options=options)
    assert env.frame_skip == 10 and env.mj_model.opt.timestep == 0.002
    assert env.mj_model.opt.integrator == 1 and env.mj_model.opt.iterations == 3  # mjINT_RK4
    assert env.dt == 0.02


def test_settings_replace_those_of_a_table():
    table = EnvOptions(num_envs=3, layout="sensor")
    env = MicroDuckEnv(options=table, num_envs=2)
    assert env.batch_size == (2,) and env.layout == "sensor" and table.num_envs == 3


def test_code_written_for_torchrl_runs_with_its_keywords(caplog):
    caplog.set_level(logging.INFO)
    env = MicroDuckEnv(
        backend="mujoco", num_workers=3, parallel=True, frame_skip=10, dtype=torch.float32,
        reset_noise_scale=None, compile_step=False, compile_kwargs=None, low_cost_collisions=True,
        download=False, device=None, seed=0,
    )  # fmt: skip
    assert env.batch_size == (3,) and env.frame_skip == 10
    assert "num_workers=3 is not needed" in caplog.text and "parallel=True is not needed" in caplog.text
    assert env.rollout(3)["observation"].shape == (3, 3, MicroDuckEnv.OBSERVATION_DIM)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"backend": "mujoco-torch"}, "backend is 'mujoco-torch'; choose 'mujoco'"),
        ({"num_workers": 4, "num_envs": 2}, "num_workers is 4 and num_envs 2"),
        ({"dtype": torch.float64}, "dtype is torch.float64"),
        ({"compile_step": True}, "leave it out"),
        ({"xml_path": "duck.xml"}, "give the scene 'duck.xml' as microduck_root"),
        ({"patch_xml": False}, "microduck_root"),
    ],
)
def test_what_torchrl_has_and_this_has_not_says_what_to_do(arguments, message):
    with pytest.raises(ConfigError, match=message):
        MicroDuckEnv(**arguments)


def test_class_constants_are_those_of_torchrl():
    different = {
        name: getattr(MicroDuckEnv, name)
        for name, value in vars(Peer).items()
        if name.isupper() and name not in ("REWARD_TERMS", "REWARD_PARAMS")
        and getattr(MicroDuckEnv, name) != value
    }  # fmt: skip
    # 5 ms x 4 instead of 2 ms x 10, and the keys that TorchRL's later versions add.
    assert set(different) <= {"FRAME_SKIP", "POSE_DIAGNOSTICS"}
    assert MicroDuckEnv().frame_skip == MicroDuckEnv.FRAME_SKIP == 4
    assert different["POSE_DIAGNOSTICS"][: len(Peer.POSE_DIAGNOSTICS)] == Peer.POSE_DIAGNOSTICS
    assert MicroDuckEnv.TURN_WEIGHT == 2.0


def test_torchrls_names_add_to_the_options_given():
    table = EnvOptions(physics_options=PhysicsOptions(integrator="RK4", threads=1))
    env = MicroDuckEnv(options=table, frame_skip=10)
    assert env.options.physics_options == PhysicsOptions(integrator="RK4", threads=1, substeps=10)
    with pytest.raises(ConfigError, match="num_workers is 4 and num_envs 2"):
        MicroDuckEnv(options=EnvOptions(num_envs=2), num_workers=4)
