"""Two gaits of one policy under one command: walking as told must earn more than stepping in place."""

import numpy as np
import pytest
import torch

from firmware_bridge.skills.bundle import load_bundle, shipped_bundle
from hardware import contract
from microduck import MicroDuckEnv
from microduck.learning.nine_skills import STEPPING_WEIGHTS

SPEED, STEPS, SEED = 0.3, 250, 1
VX = contract.offsets("sensor")["command"]
WEIGHTS = {
    "TorchRL's defaults": {},
    "the walker's own": STEPPING_WEIGHTS,
    "air time that only pays on motion": {"air_time": 0.0},
}


def walk(env, seen_speed):
    """Return the rollout of the shipped walker, told `seen_speed` whatever the row commands."""
    bundle = load_bundle(shipped_bundle("walk"))
    skill = bundle.skill("walk")

    def policy(td):
        observation = td["observation"][0].numpy().copy()
        observation[VX] = seen_speed
        return td.set("action", torch.from_numpy(np.asarray(bundle.act(observation, skill)))[None])

    return env.rollout(STEPS, policy)


def rollout(row, told, seed):
    env = MicroDuckEnv(tasks=row, layout="sensor", action_scale=1.0, diagnostics=True, seed=seed)
    return walk(env, told)["next"]


@pytest.mark.parametrize("name", WEIGHTS)
def test_stepping_in_place_under_a_command_earns_less_than_walking_it(name):
    weights = {"air_time_moving": 3.0, **WEIGHTS[name]}
    row = MicroDuckEnv.speed_range_task(SPEED, SPEED, reward_weights=weights, air_time_min=0.03)
    walked, stepped = rollout(row, SPEED, SEED), rollout(row, 0.0, SEED)
    assert walked.shape[1] == stepped.shape[1] == STEPS  # neither falls
    speeds = [float(one["diagnostic_body_velocity_x"][0, 50:].mean()) for one in (walked, stepped)]
    assert speeds[0] == pytest.approx(SPEED, abs=0.03) and speeds[1] == pytest.approx(0.0, abs=0.03)
    assert float(stepped["diagnostic_left_foot_height"].max()) > 0.005  # it does step
    earned = [float(one["reward"].sum()) for one in (walked, stepped)]
    assert earned[1] < 0.7 * earned[0]
    moving = [float(one["diagnostic_reward_air_time_moving"].sum()) for one in (walked, stepped)]
    assert moving[0] > 0.1 and moving[1] < 0.1 * moving[0]
