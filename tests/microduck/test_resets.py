import math

import pytest
import torch
from tensordict import TensorDict
from torchrl.envs import RewardSum, TransformedEnv

from hardware import rotations
from hardware.errors import CommandError, ConfigError, TaskError
from microduck import MicroDuckEnv


def walk(**overrides):
    return MicroDuckEnv.speed_range_task(0.1, 0.3, **overrides)


def step(env, state):
    return env.step(state.set("action", torch.zeros(env.action_spec.shape)))["next"]


def test_a_refused_reset_leaves_the_environment_as_it_was():
    env = MicroDuckEnv(tasks=[walk(), MicroDuckEnv.standing_task()], num_envs=3, seed=0)
    state = step(env, env.reset())
    before, qpos = env.episodes.take(torch.arange(3)), env.physics.qpos.clone()
    given = {"task_id": torch.tensor([[1], [1], [0]]), "command": torch.tensor([[0.0, 0], [0, 0], [9, 9]])}
    with pytest.raises(
        CommandError, match=r"vx = 9 is outside \[0.1, 0.3\].*environment 2 is on task 'speed"
    ):
        env.reset(TensorDict(given, batch_size=[3]))
    assert torch.equal(env.physics.qpos, qpos)
    assert all(torch.equal(value, vars(env.episodes)[name]) for name, value in vars(before).items())
    assert torch.isfinite(step(env, state)["observation"]).all()


def test_a_reset_of_nobody_changes_nothing_and_returns_what_was_seen():
    env = MicroDuckEnv(tasks=walk(), num_envs=2, seed=0)
    seen = step(env, env.reset())
    again = env.reset(seen.clone().set("_reset", torch.zeros(2, 1, dtype=torch.bool)))
    assert torch.equal(again["observation"], seen["observation"])
    assert env.episodes.steps.tolist() == [1, 1]


def test_the_first_reset_must_be_of_all_ducks():
    env = MicroDuckEnv(num_envs=2, seed=0)
    with pytest.raises(ConfigError, match="the first reset must be of all ducks"):
        env.reset(TensorDict({"_reset": torch.tensor([[True], [False]])}, batch_size=[2]))


def test_a_partial_reset_hands_out_tensors_of_its_own():
    env = MicroDuckEnv(tasks=walk(), num_envs=2, seed=0)
    seen = step(env, env.reset())
    kept = seen.clone()
    mask = torch.tensor([[True], [False]])
    fresh = env._reset(TensorDict({"_reset": mask}, batch_size=[2]))
    fresh["observation"].fill_(7.0)
    assert torch.equal(seen["observation"], kept["observation"])
    again = env._reset(TensorDict({"_reset": mask}, batch_size=[2]))
    assert torch.equal(again["observation"][1], kept["observation"][1])


def test_a_state_given_with_set_state_is_where_the_episode_begins():
    env = MicroDuckEnv(tasks=walk(), num_envs=3, seed=0)
    state = env.reset()
    for _ in range(5):
        state = step(env, state)
    there = env.get_state()
    assert there["time"].tolist() == pytest.approx([0.1] * 3)
    env.rollout(7)
    state = env.reset(there.select("qpos", "qvel"), set_state=True)
    assert torch.equal(env.physics.qpos, there["qpos"]) and torch.equal(env.physics.qvel, there["qvel"])
    assert env.episodes.steps.tolist() == [0, 0, 0] and env.get_state()["time"].tolist() == [0.0] * 3
    assert state["observation"][:, 39:42].numpy() == pytest.approx(  # the clock at its start
        torch.tensor([[-0.9988910, 0.0470789, 0.0]] * 3).numpy(), abs=1e-6
    )


def test_a_state_given_without_set_state_is_ignored_when_so_told():
    env = MicroDuckEnv(tasks=walk(), num_envs=1, seed=0)
    env.reset()
    far = env.get_state().select("qpos", "qvel")
    far["qpos"][:, 0] = 5.0
    env.reset(far, set_state=False)
    assert abs(float(env.physics.qpos[0, 0])) <= 0.02


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("qpos", torch.full((1, 21), math.nan), r"qpos of environments \[0\] is not finite"),
        ("qpos", torch.zeros(1, 21), r"qpos of environments \[0\] .* no unit quaternion"),
        ("qvel", torch.full((1, 20), math.inf), r"qvel of environments \[0\] is not finite"),
        ("qvel", torch.zeros(1, 19), r"qvel must have shape \(1, 20\), not \(1, 19\)"),
    ],
)
def test_a_state_no_duck_can_be_in_is_refused(key, value, message):
    env = MicroDuckEnv(seed=0)
    env.reset()
    given = env.get_state().select("qpos", "qvel").set(key, value)
    with pytest.raises(TaskError, match=message):
        env.reset(given, set_state=True)


def test_a_quaternion_of_another_length_means_the_same_rotation():
    env = MicroDuckEnv(seed=0)
    env.reset()
    given = env.get_state().select("qpos", "qvel")
    given["qpos"][0, 3:7] = 2 * torch.tensor([math.cos(0.2), math.sin(0.2), 0.0, 0.0])  # a roll of 0.4 rad
    gravity = env.reset(given, set_state=True)["observation"][0, :3]
    assert gravity.tolist() == pytest.approx([0.0, -math.sin(0.4), -math.cos(0.4)], abs=1e-6)


def test_a_refused_reset_draws_nothing():
    env, other = (MicroDuckEnv(tasks=walk(), num_envs=2, seed=0) for _ in range(2))
    with pytest.raises(CommandError):
        env.reset(TensorDict({"command": torch.full((2, 2), 9.0)}, batch_size=[2]))
    assert torch.equal(env.reset()["observation"], other.reset()["observation"])


def test_no_warm_start_under_a_command_that_counts_as_standing():
    row = MicroDuckEnv.make_task((0.005, 0), (0.005, 0), name="hardly", warm_start_fraction=1.0,
                                 warm_start_velocity=(0.2, 0.2))  # fmt: skip
    env = MicroDuckEnv(tasks=row, num_envs=20, seed=0)
    env.reset()
    assert env.physics.qvel[:, 0].abs().max() <= 0.02


def test_set_state_without_a_whole_state_is_refused():
    env = MicroDuckEnv(seed=0)
    env.reset()
    with pytest.raises(TaskError, match=r"a state was given without qvel; give both \['qpos', 'qvel'\]"):
        env.reset(env.get_state().select("qpos"), set_state=True)


def test_a_yaw_rate_given_at_reset_is_kept_through_wrappers_or_refused():
    row = MicroDuckEnv.speed_range_task(yaw_rate_interval=(0.0, 1.0))
    env = TransformedEnv(MicroDuckEnv(tasks=row, num_envs=2, layout="sensor", seed=0), RewardSum())
    given = TensorDict({"yaw_rate_command": torch.tensor([[0.25], [1.0]])}, batch_size=[2])
    seen = env.rollout(5, tensordict=env.reset(given), auto_reset=False)["next"]
    assert seen["yaw_rate_command"][:, -1].tolist() == [[0.25], [1.0]]
    assert seen["observation"][:, -1, 8].tolist() == [0.25, 1.0]
    given["yaw_rate_command"][1] = 2.0
    with pytest.raises(CommandError, match=r"yaw_rate = 2 is outside \[0, 1\]"):
        env.reset(given)
    given["yaw_rate_command"] = torch.zeros(2, 2)
    with pytest.raises(TaskError, match=r"yaw_rate_command must have shape \(2, 1\), not \(2, 2\)"):
        env.base_env.reset(given)


def test_a_task_given_at_reset_raises_no_warning_about_states(recwarn):
    env = MicroDuckEnv(tasks=[walk(), MicroDuckEnv.standing_task()], seed=0)
    state = env.reset(TensorDict({"task_id": torch.tensor([[1]])}, batch_size=[1]))
    assert state["task_id"].tolist() == [[1]] and not recwarn.list


def test_yaw_height_and_clock_are_drawn_when_asked_for():
    env = MicroDuckEnv(
        tasks=walk(), num_envs=400, seed=0, reset_yaw=math.pi, reset_height=0.05, reset_clock=True,
        reset_noise_scale=0.0,
    )  # fmt: skip
    seen = env.reset()["observation"]
    yaw = rotations.heading(env.physics.qpos[:, 3:7])
    assert yaw.min() < -2.8 and yaw.max() > 2.8 and abs(float(yaw.mean())) < 0.3
    lift = env.physics.qpos[:, 2] - 0.12
    assert lift.min() >= 0 and lift.max() <= 0.05 and float(lift.mean()) == pytest.approx(0.025, abs=0.003)
    phase = torch.atan2(seen[:, 39], seen[:, 40])
    assert phase.min() < -2.8 and phase.max() > 2.8
    assert env.features == {} and env.physics.qvel.abs().max() == 0
    # The heading to keep is the one that was drawn.
    env.step(TensorDict({"action": torch.zeros(400, 14)}, batch_size=[400]))
    assert env.features["heading"].abs().max() < 0.1


def test_a_turned_duck_starts_warm_along_its_own_command():
    row = walk(warm_start_fraction=1.0, warm_start_velocity=(0.2, 0.2))
    env = MicroDuckEnv(tasks=row, num_envs=50, seed=0, reset_yaw=math.pi)
    body = env.reset()["observation"][:, 6:9]
    assert body.numpy() == pytest.approx(torch.tensor([[0.2, 0.0, 0.0]] * 50).numpy(), abs=1e-5)


def test_commands_are_drawn_again_within_an_episode_where_the_row_says_so():
    often = walk(command_resample_interval=(0.1, 0.1), name="often")
    env = MicroDuckEnv(tasks=[often, walk(name="never")], num_envs=2, layout="sensor", seed=0)
    given = {"task_id": torch.tensor([[0], [1]]), "command": torch.tensor([[0.1, 0.0], [0.1, 0.0]])}
    state, seen, phases = env.reset(TensorDict(given, batch_size=[2])), [], []
    for _ in range(26):
        state = step(env, state)
        seen.append(state["command"][:, 0].clone())
        phases.append(env.episodes.phase.clone())
    seen = torch.stack(seen)
    changes = (seen[1:] != seen[:-1]).nonzero()
    assert changes[:, 1].tolist() == [0] * 5  # only the first duck's
    assert changes[:, 0].tolist() == [3, 8, 13, 18, 23]  # after steps 5, 10, 15, 20 and 25: every 0.1 s
    assert ((seen >= 0.1) & (seen <= 0.3)).all()
    # The clock goes on from where it was: 1 to 2.5 Hz make 0.126 to 0.314 rad a step.
    moved = torch.stack(phases).diff(dim=0)[:, 0].remainder(2 * math.pi)
    assert moved.min() > 0.125 and moved.max() < 0.315
