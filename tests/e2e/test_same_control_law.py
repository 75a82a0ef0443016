"""Simulator and robot run one control law: the same state gives the same observation and the same targets."""

import numpy as np
import pytest
import torch
from tensordict import TensorDict

from firmware_bridge.drive.controller import Controller
from firmware_bridge.robot.body import BodySample
from firmware_bridge.skills.bundle import load_bundle, shipped_bundle
from hardware import rotations
from microduck.env import MicroDuckEnv
from microduck.tasks import load_library


def measured(env):
    """What perfect sensors on the simulated duck would report."""
    qpos, qvel = env.physics.qpos[0].numpy(), env.physics.qvel[0].numpy()
    gravity = rotations.projected_gravity(qpos[3:7])
    return BodySample(0.0, qpos[7:].copy(), qvel[6:].copy(), np.zeros(14), qvel[3:6].copy(), gravity, ())


@pytest.mark.parametrize("vx", [0.1, 0.25])
def test_observation_and_targets_agree_over_a_walk(vx):
    folder = shipped_bundle("walk")
    bundle, library = load_bundle(folder), load_library(folder / "tasks.tdz")
    library.command_resample_interval.zero_()  # both are told one thing
    env = MicroDuckEnv(tasks=library, layout="sensor", action_scale=bundle.action_scale, seed=0)
    command = torch.tensor([[vx, 0.0]])
    state = env.reset(TensorDict({"task_id": torch.tensor([[0]]), "command": command}, batch_size=[1]))
    controller = Controller(bundle, bundle.skill("walk"))
    asked = np.array([vx, 0.0, 0.0])
    controller.state.command = asked
    for _ in range(150):
        targets = controller.targets(measured(env))
        seen = state["observation"][0].numpy()
        assert np.abs(controller.observation - seen).max() <= 1e-6
        state["action"] = torch.from_numpy(controller.state.previous_action).float()[None]
        state = env.step(state)["next"]
        assert np.abs(targets - env.physics.batch.ctrl[0]).max() <= 1e-6
        controller.advance(asked, np.zeros(4), measured(env), 1)
    assert not bool(state["fallen"])
