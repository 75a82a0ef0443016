"""The velocity over the last half-second or so, as rewards read it."""

import pytest
import torch
from tensordict import TensorDict

from microduck.env import MicroDuckEnv


def test_the_mean_velocity_follows_the_velocity_in_half_a_second():
    errors = []

    class Watching(MicroDuckEnv):
        pass

    @Watching.register_reward("watch", weight=1.0)
    def watch(features, params):
        errors.append(features["mean_velocity_error"].clone())
        return features["upright"]

    env = Watching(tasks=Watching.tracking_task(0.2), num_envs=2, seed=0)
    env.reset()
    for _ in range(2):
        env.step(TensorDict({"action": torch.zeros(2, 14)}, batch_size=[2]))
    speeds = [step[:, 0] for step in errors]
    # A duck that stands is 0.2 m/s too slow; a fiftieth of a second is a twenty-fifth of half a second.
    assert speeds[0].tolist() == pytest.approx([-0.008, -0.008], abs=1e-3)
    assert speeds[1].tolist() == pytest.approx([-0.0157, -0.0157], abs=2e-3)
    env.reset(TensorDict({"_reset": torch.tensor([[True], [False]])}, batch_size=[2]))
    env.step(TensorDict({"action": torch.zeros(2, 14)}, batch_size=[2]))
    assert errors[2][0, 0] == pytest.approx(-0.008, abs=1e-3) and errors[2][1, 0] < -0.02
