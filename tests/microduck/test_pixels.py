import pytest
import torch
from tensordict import TensorDict
from torchrl.envs.utils import check_env_specs

from hardware.errors import ConfigError
from microduck import MicroDuckEnv


def step(env):
    action = torch.zeros(env.action_spec.shape)
    return env.step(TensorDict({"action": action}, batch_size=env.batch_size))["next"]


def test_pictures_have_the_size_asked_for_and_show_each_duck():
    env = MicroDuckEnv(num_envs=2, from_pixels=True, render_width=50, render_height=31, seed=0)
    check_env_specs(env)
    env.reset()
    env.physics.qpos[1, 3:7] = torch.tensor([0.7071, 0.7071, 0, 0])  # on its side
    seen = step(env)["pixels"]
    assert seen.shape == (2, 31, 50, 3) and seen.dtype == torch.uint8
    assert (seen[0].int() - seen[1].int()).abs().float().mean() > 3
    env.close()
    env.close()  # nothing left to give back


def test_pixels_may_be_all_that_is_observed():
    env = MicroDuckEnv(num_envs=2, from_pixels=True, pixels_only=True, seed=0)
    check_env_specs(env)
    assert "observation" not in set(env.rollout(2).keys())
    env.close()


def test_a_new_picture_is_drawn_every_few_steps_and_after_a_reset():
    env = MicroDuckEnv(num_envs=2, from_pixels=True, render_every=3, seed=0)
    first = env.reset()["pixels"]
    states = [step(env) for _ in range(6)]
    later = [state["pixels"].clone() for state in states]
    same = [torch.equal(one, other) for one, other in zip([first, *later], later, strict=False)]
    assert same == [True, True, False, True, True, False]
    mask = torch.tensor([[False], [True]])
    again = env.reset(states[-1].set("_reset", mask))["pixels"]
    assert torch.equal(again[0], later[-1][0]) and not torch.equal(again[1], later[-1][1])
    env.close()


def test_any_camera_of_the_scene_draws_by_number_or_name():
    env = MicroDuckEnv(seed=0)
    env.reset()
    side, head = env.render(width=64, height=48), env.render(width=64, height=48, camera_id="head_camera")
    assert side.shape == head.shape == (1, 48, 64, 3) and not torch.equal(side, head)
    assert torch.equal(env.render(width=64, height=48, camera_id=1), head)
    with pytest.raises(
        ConfigError, match=r"camera_id is 2; the scene's cameras are \['side', 'head_camera'\]"
    ):
        env.render(camera_id=2)
    with pytest.raises(ConfigError, match="camera 'tail' does not exist; choose one of"):
        env.render(camera_id="tail")
    env.close()
