import copy
import pickle

import pytest
import torch
from tensordict import TensorDict

from hardware.errors import ConfigError
from microduck import MicroDuckEnv, PhysicsOptions


def make(num_envs=5, **settings):
    tasks = [
        MicroDuckEnv.speed_range_task(0.1, 0.3, command_resample_interval=(0.1, 0.2)),
        MicroDuckEnv.sidestep_task(),
    ]
    return MicroDuckEnv(tasks=tasks, num_envs=num_envs, seed=0, **settings)


def advance(env, actions):
    """Return observations and rewards of raw steps, without resets."""
    seen = []
    for action in actions:
        after = env.step(TensorDict({"action": action}, batch_size=env.batch_size))["next"]
        seen.append(torch.cat([after["observation"], after["reward"], after["terminated"].float()], -1))
    return torch.stack(seen)


def random_actions(count, steps, seed):
    generator = torch.Generator().manual_seed(seed)
    return 2 * torch.rand((steps, count, 14), generator=generator) - 1


@pytest.mark.parametrize("index", [2, -1, slice(1, 4), [4, 0], torch.tensor([3, 3])])
def test_a_snapshot_goes_on_bit_for_bit_and_leaves_its_parent_alone(index):
    env = make()
    env.reset()
    env.episodes.steps_to_draw[:] = -1  # later commands are drawn by order of rows, which a snapshot changes
    advance(env, random_actions(5, 12, 0))
    twin = env[index]
    rows = torch.arange(5)[index].reshape(-1) if not isinstance(index, list) else torch.tensor(index)
    actions = random_actions(5, 20, 1)
    theirs = advance(twin, actions[:, rows])
    ours = advance(env, actions)
    assert twin.batch_size == (len(rows),)
    assert torch.equal(theirs, ours[:, rows])


def test_writing_a_snapshot_back_replays_bit_for_bit_with_the_commands_drawn_on_the_way():
    env = make()
    env.reset()
    advance(env, random_actions(5, 12, 0))
    kept = env[:]
    actions = random_actions(5, 25, 1)
    first = advance(env, actions)
    env[:] = kept
    assert torch.equal(advance(env, actions), first)
    assert env.get_state()["time"].tolist() == pytest.approx([37 * 0.02] * 5)


def test_some_ducks_take_over_from_another_environment():
    env, other = make(), make(2)
    env.reset()
    other.reset()
    advance(other, random_actions(2, 8, 0))
    untouched = env.get_state()[[0, 2, 4]]
    env[[1, 3]] = other
    assert torch.equal(env.get_state()["qpos"][[1, 3]], other.get_state()["qpos"])
    assert env.episodes.steps.tolist() == [0, 8, 0, 8, 0]
    assert torch.equal(env.get_state()[[0, 2, 4]]["qpos"], untouched["qpos"])
    assert torch.equal(env._rows.held["weights"][[1, 3]], other._rows.held["weights"])


def test_a_deep_copy_is_a_snapshot_of_all_and_pickling_says_what_to_do():
    env = make()
    env.reset()
    actions = random_actions(5, 3, 1)
    twin = copy.deepcopy(env)
    assert torch.equal(advance(twin, actions), advance(env, actions))
    with pytest.raises(TypeError, match="cannot be pickled; hand over a function that makes it"):
        pickle.dumps(env)


def test_a_snapshot_can_be_reset_and_rolled_out_like_any_environment():
    env = make()
    env.reset()
    twin = env[1:3]
    before = env.get_state()
    assert twin.rollout(30, break_when_any_done=False)["observation"].shape == (2, 30, 56)
    assert torch.equal(env.get_state()["qpos"], before["qpos"])


@pytest.mark.parametrize(
    ("index", "error", "message"),
    [
        (5, IndexError, "duck 5 does not exist; choose 0 to 4"),
        (slice(5, None), IndexError, "means none of the 5 ducks"),
        ([], TypeError, "must be a whole number, a slice or a list"),
        (True, TypeError, "must be a whole number"),
        (torch.tensor([True] * 5), TypeError, "must be a whole number"),
        ([0.5], TypeError, "must be a whole number"),
        ("first", TypeError, "'first' is no number"),
    ],
)
def test_a_wrong_index_is_refused(index, error, message):
    env = make()
    env.reset()
    with pytest.raises(error, match=message):
        env[index]


def test_ducks_are_written_back_in_any_order_but_each_once():
    env = make()
    env.reset()
    advance(env, random_actions(5, 6, 0))
    twin = env[[3, 1]]
    advance(twin, random_actions(2, 6, 1))
    env[[3, 1]] = twin
    assert torch.equal(env.get_state()["qpos"][[3, 1]], twin.get_state()["qpos"])
    assert torch.equal(env[::-1].get_state()["qpos"], env.get_state()["qpos"].flip(0))
    before = env.get_state()
    with pytest.raises(ConfigError, match=r"index \[2, 2\] means a duck twice"):
        env[[2, 2]] = twin
    assert torch.equal(env.get_state()["qpos"], before["qpos"])


def test_an_environment_never_reset_goes_on_from_another_in_any_order():
    source, env = make(), make()
    source.reset()
    env[::-1] = source
    mask = torch.tensor([[True], [False], [False], [False], [False]])
    again = env._reset(TensorDict({"_reset": mask}, batch_size=[5]))["observation"]
    theirs = source._seen["observation"].flip(0)
    assert torch.equal(again[1:], theirs[1:]) and not torch.equal(again[0], theirs[0])


def test_a_snapshot_keeps_each_ducks_task_and_draws_as_its_parent_does():
    rows = [MicroDuckEnv.speed_range_task(), MicroDuckEnv.jump_task()]
    env = MicroDuckEnv(tasks=rows, num_envs=6, seed=0)
    given = TensorDict({"task_id": torch.tensor([[0], [1], [0], [1], [1], [0]])}, batch_size=[6])
    env.reset(given)
    twin = env[:]
    action = torch.zeros(6, 14)
    assert torch.equal(advance(twin, [action]), advance(env, [action]))
    weights = env._rows.held["weights"].clone()
    assert torch.equal(twin._rows.held["weights"], weights) and not torch.equal(weights[0], weights[1])
    env[[0, 1]] = env[[1, 0]]  # which hands their rows on as well
    assert torch.equal(env._rows.held["weights"][[1, 0]], weights[[0, 1]])
    assert torch.equal(twin.reset()["observation"], env.reset()["observation"])


def test_a_snapshot_shows_the_picture_its_parent_shows():
    env = MicroDuckEnv(num_envs=2, from_pixels=True, render_every=3, seed=0)
    env.reset()
    advance(env, random_actions(2, 1, 0))
    twin, action = env[1], random_actions(2, 1, 1)[0]
    ours = env.step(TensorDict({"action": action}, batch_size=[2]))["next", "pixels"]
    theirs = twin.step(TensorDict({"action": action[1:]}, batch_size=[1]))["next", "pixels"]
    assert torch.equal(theirs[0], ours[1])
    env.close()
    twin.close()


def test_pictures_follow_their_ducks_into_an_environment_never_reset():
    source, env = (MicroDuckEnv(num_envs=2, from_pixels=True, render_every=9, seed=0) for _ in range(2))
    shown = source.reset()["pixels"]
    assert not torch.equal(shown[0], shown[1])
    env[::-1] = source
    again = env.step(TensorDict({"action": torch.zeros(2, 14)}, batch_size=[2]))["next", "pixels"]
    assert torch.equal(again, shown.flip(0))
    source.close()
    env.close()


def test_what_does_not_fit_is_not_written_back():
    env = make()
    env.reset()
    with pytest.raises(TypeError, match="a str cannot be written into a MicroDuckEnv"):
        env[0] = "duck"
    with pytest.raises(ConfigError, match="the source has 5 ducks where the index means 2"):
        env[[0, 1]] = make()
    with pytest.raises(ConfigError, match="layout is 'sensor' in the source and 'state' here"):
        env[0] = make(1, layout="sensor")
    with pytest.raises(ConfigError, match=r"action_scale is 1\.0 in the source and 0\.35 here"):
        env[0] = make(1, action_scale=1.0)
    source = make(1)
    source.reset()
    with pytest.raises(ConfigError, match="this environment has not been reset yet"):
        make()[0] = source
    with pytest.raises(ConfigError, match="physics_options is"):
        env[0] = make(1, physics_options=PhysicsOptions(substeps=10))
    with pytest.raises(ConfigError, match="diagnostics is True in the source and False here"):
        env[0] = make(1, diagnostics=True)
    with pytest.raises(ConfigError, match="the source has not been reset yet"):
        env[0] = make(1)
    heavier = [MicroDuckEnv.speed_range_task(0.1, 0.3, tracking_std=0.2), MicroDuckEnv.sidestep_task()]
    with pytest.raises(ConfigError, match="or their numbers differ; build both from one library"):
        env[0] = MicroDuckEnv(tasks=heavier)


def test_a_snapshot_needs_no_scene_file_any_more(plain_scene):
    env = MicroDuckEnv(plain_scene, seed=0)
    env.reset()
    plain_scene.unlink()
    assert env[0].rollout(2)["observation"].shape == (1, 2, 56)
