import math

import pytest
import torch
from tensordict import TensorDict

from microduck import MicroDuckEnv


def build(**settings):
    tasks = [MicroDuckEnv.tracking_task(0.2), MicroDuckEnv.jump_task()]
    return MicroDuckEnv(tasks=tasks, num_envs=6, seed=0, diagnostics=True, **settings)


def step(env, action):
    return env.step(TensorDict({"action": action}, batch_size=env.batch_size))["next"]


def test_the_earnings_of_all_terms_add_up_to_the_reward():
    env = build()
    rollout = env.rollout(60, break_when_any_done=False)
    earned = [rollout["next", f"diagnostic_reward_{name}"] for name in MicroDuckEnv.REWARD_TERMS]
    assert torch.allclose(sum(earned), rollout["next", "reward"], atol=1e-5)
    assert len(earned) == len(MicroDuckEnv.REWARD_TERMS) >= 20
    assert float(sum(earned).abs().max()) > 1  # a fall costs 4


def test_every_key_of_torchrl_is_there_at_reset_and_at_every_step():
    env = build()
    first, after = env.reset(), step(env, torch.zeros(6, 14))
    names = [
        "height", "upright", "pitch", "roll", "body_velocity_x", "body_velocity_y", "body_velocity_z",
        "action_saturation_fraction", "target_clamp_fraction", "action_rate_rms", "left_foot_contact",
        "right_foot_contact", "left_foot_height", "right_foot_height", "head_pitch", "head_yaw", "yaw_rate",
        "height_gain", "position_x", "position_y", "time", "heading", "height_failure", "upright_failure",
        "nonfinite_failure",
    ]  # fmt: skip
    for name in names:
        for told in (first, after):
            assert told[f"diagnostic_{name}"].shape == (6, 1), name
    assert len(env.observation_spec.keys()) == len(first.keys()) - 3  # the flags are not observed


def test_numbers_of_a_leaning_duck():
    env = build()
    env.reset()
    state = env.get_state()
    half = math.radians(20) / 2
    state["qpos"][:, 3:7] = torch.tensor([math.cos(half), 0, math.sin(half), 0])  # nose down by 20 degrees
    state["qpos"][:, :3] = torch.tensor([1.5, -0.5, 0.2])
    state["qvel"][:] = 0
    state["qvel"][:, 0] = 0.3
    seen = env.reset(state.select("qpos", "qvel"), set_state=True)
    values = {key: float(seen[f"diagnostic_{key}"][0]) for key in (
        "pitch", "roll", "upright", "height", "height_gain", "position_x", "position_y", "heading", "time",
        "body_velocity_x", "body_velocity_z", "head_pitch",
    )}  # fmt: skip
    assert values == pytest.approx(
        {
            "pitch": math.radians(20),
            "roll": 0.0,
            "upright": 0.9396926,  # cos 20 degrees
            "height": 0.2,
            "height_gain": 0.08,
            "position_x": 1.5,
            "position_y": -0.5,
            "heading": 0.0,
            "time": 0.0,
            "body_velocity_x": 0.3 * 0.9396926,
            "body_velocity_z": 0.3
            * 0.3420201,  # sin 20 degrees: forward is upwards for a nose that points down
            "head_pitch": -math.radians(20),
        },
        abs=0.03,  # the joints start with noise
    )


def test_saturated_and_cut_actions_are_counted():
    env = build(action_scale=1.0)
    env.reset()
    action = torch.zeros(6, 14)
    action[0, :7] = 1.0
    action[1, 1] = -1.0  # left hip roll: STAND -0.087 - 1 rad, but its range ends at -0.384
    seen = step(env, action)
    assert seen["diagnostic_action_saturation_fraction"][:3, 0].tolist() == pytest.approx([0.5, 1 / 14, 0])
    assert float(seen["diagnostic_target_clamp_fraction"][1]) == pytest.approx(1 / 14)
    assert float(seen["diagnostic_action_rate_rms"][1]) == pytest.approx(math.sqrt(1 / 14))


def test_the_reason_of_an_ending_is_told():
    env = build()
    env.reset()
    on_its_side = torch.tensor([math.cos(0.7), math.sin(0.7), 0, 0])  # 80 degrees
    env.physics.qpos[:2, 3:7] = on_its_side
    env.physics.qpos[0, 2] = 0.03  # lower than 0.55 of 0.12 m
    env.physics.qpos[1, 2] = 0.5
    env.physics.qvel[2, 0] = math.nan
    seen = step(env, torch.zeros(6, 14))
    reasons = torch.cat(
        [seen[f"diagnostic_{name}_failure"] for name in ("height", "upright", "nonfinite")], -1
    )
    assert reasons[3:].sum() == 0
    assert reasons[0].tolist() == [True, True, False]
    assert reasons[1].tolist() == [False, True, False]
    assert reasons[2].tolist() == [False, False, True]
    assert seen["terminated"].squeeze(-1).tolist() == [True, True, True, False, False, False]


def test_a_duck_that_diverges_has_not_travelled():
    env = build()
    env.reset()
    env.physics.qpos[:, 0] = 2.0
    seen = step(env, torch.zeros(6, 14))
    env.physics.qvel[2, 0] = math.nan
    env.physics.qvel[3, 0] = 1e5  # finite, but no duck is so fast
    after = step(env, torch.zeros(6, 14))
    assert after["diagnostic_nonfinite_failure"].squeeze(-1).tolist() == [
        False,
        False,
        True,
        True,
        False,
        False,
    ]
    for name in ("position_x", "position_y", "heading", "time"):
        assert torch.equal(after[f"diagnostic_{name}"][2:4], seen[f"diagnostic_{name}"][2:4])


def test_diagnostics_change_nothing_else():
    plain = MicroDuckEnv(
        tasks=[MicroDuckEnv.tracking_task(0.2), MicroDuckEnv.jump_task()], num_envs=6, seed=0
    )
    told = build()
    generators = [torch.Generator().manual_seed(0) for _ in range(2)]
    runs = []
    for env, generator in zip((plain, told), generators, strict=True):
        state, seen = env.reset(), []
        for _ in range(60):
            state["action"] = 2 * torch.rand((6, 14), generator=generator) - 1
            row, state = env.step_and_maybe_reset(state)
            seen.append(torch.cat([row["next", "observation"], row["next", "reward"]], -1))
        runs.append(torch.stack(seen))
    assert torch.equal(*runs)
