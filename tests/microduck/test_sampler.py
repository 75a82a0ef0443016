import pytest
import torch
from tensordict import TensorDict
from torchrl.envs import Compose, PendulumEnv, RewardSum, SerialEnv, StepCounter, TransformedEnv
from torchrl.envs import MicroDuckTaskSampler as TorchRLTaskSampler
from torchrl.envs.utils import check_env_specs

from hardware.errors import ConfigError, TaskError, TaskNameError
from microduck.env import MicroDuckEnv
from microduck.gait import MicroDuckGait
from microduck.metrics import trajectory_metrics
from microduck.sampler import MicroDuckTaskSampler
from microduck.success_sampler import SuccessTaskSampler


def ducks(num_envs=4, **settings):
    rows = [MicroDuckEnv.standing_task(), MicroDuckEnv.tracking_task(0.2), MicroDuckEnv.jump_task()]
    return MicroDuckEnv(tasks=rows, num_envs=num_envs, seed=0, **settings)


def with_sampler(sampler, **settings):
    return TransformedEnv(ducks(**settings), sampler)


def tasks(env, resets=1):
    return torch.cat([env.reset()["task_id"].flatten() for _ in range(resets)])


def test_a_seed_draws_the_same_tasks_as_torchrl():
    ours, theirs = (kind([1.0, 2.0, 1.0], seed=0) for kind in (MicroDuckTaskSampler, TorchRLTaskSampler))
    for size in ([6], [2, 3]):
        drawn = ours.sample(size)
        assert drawn.shape == (*size, 1)
        assert torch.equal(drawn, theirs.sample(torch.Size(size)))


def test_tasks_are_drawn_by_their_weights_and_absent_names_never():
    env = with_sampler(MicroDuckTaskSampler({"jump": 3.0, "standing": 1.0}), num_envs=100)
    drawn = tasks(env, resets=10)
    assert (drawn == 1).sum() == 0
    # 750 of 1000 expected, with a deviation of 13.7
    assert abs(int((drawn == 2).sum()) - 750) < 55


def test_fixed_tasks_stay_through_every_reset():
    env = with_sampler(Compose(RewardSum(), MicroDuckTaskSampler.fixed(["jump", "standing", 1, 0])))
    env.append_transform(StepCounter(3))
    check_env_specs(env)
    rollout = env.rollout(10, break_when_any_done=False)
    assert rollout["next", "done"].any()
    assert rollout["next", "task_id"].squeeze(-1).tolist() == [[2] * 10, [0] * 10, [1] * 10, [0] * 10]
    sampler = MicroDuckTaskSampler(task_ids=torch.tensor([1, 1, 2, 0]))
    sampler.sample([4]).zero_()  # a copy
    assert tasks(with_sampler(sampler)).tolist() == [1, 1, 2, 0]


def test_a_partial_reset_draws_for_its_own_rows_only():
    env = with_sampler(MicroDuckTaskSampler({"standing": 1.0}))
    state = env.reset()
    env.transform.set_weights({"jump": 1.0})
    state["_reset"] = torch.tensor([[True], [False], [False], [True]])
    assert env.reset(state)["task_id"].flatten().tolist() == [2, 0, 0, 2]


def test_probabilities_edited_in_place_hold_from_the_next_reset():
    env = with_sampler(MicroDuckTaskSampler([1.0, 0.0, 0.0]))
    assert tasks(env).tolist() == [0] * 4
    env.transform.probabilities.copy_(torch.tensor([0.0, 0.0, 7.0]))
    assert tasks(env).tolist() == [2] * 4
    env.transform.set_weights([0.0, 2.0, 0.0])
    assert env.transform.probabilities.tolist() == [0.0, 1.0, 0.0]
    assert tasks(env).tolist() == [1] * 4


def test_the_seed_of_the_environment_decides_the_draws():
    env = with_sampler(MicroDuckTaskSampler([1.0, 1.0, 1.0]), num_envs=50)
    draws = []
    for seed in (3, 3, 4):
        torch.manual_seed(len(draws))
        env.set_seed(seed)
        draws.append(tasks(env, resets=2))
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])
    assert not torch.equal(env.transform.sample([50]), env.transform.sample([50]))


def test_a_saved_sampler_goes_on_with_the_same_draws():
    sampler = MicroDuckTaskSampler([1.0, 1.0, 1.0], seed=5)
    env = with_sampler(sampler, num_envs=50)
    env.reset()
    sampler.set_weights([1.0, 2.0, 3.0])
    saved = {name: value.clone() for name, value in env.state_dict().items()}
    expected = tasks(env)
    other = with_sampler(MicroDuckTaskSampler([1.0, 0.0, 0.0]), num_envs=50)
    other.load_state_dict(saved)
    assert torch.equal(tasks(other), expected)


def test_inside_a_worker_names_are_known_and_around_workers_numbers_do():
    inside = SerialEnv(2, lambda: with_sampler(MicroDuckTaskSampler({"jump": 1.0}), num_envs=2))
    assert tasks(inside).tolist() == [2] * 4
    around = TransformedEnv(SerialEnv(2, lambda: ducks(2)), MicroDuckTaskSampler([0.0, 1.0, 0.0]))
    assert tasks(around).tolist() == [1] * 4


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({}, TaskError, "exactly one of weights and task_ids"),
        ({"weights": [1.0], "task_ids": [0]}, TaskError, "exactly one of weights and task_ids"),
        ({"weights": []}, TaskError, r"weights are \[\]"),
        ({"weights": [1.0, -1.0, 1.0]}, TaskError, r"weights are \[1.0, -1.0, 1.0\]; they must be finite"),
        ({"weights": [1.0, float("nan"), 1.0]}, TaskError, "must be finite, 0 or more, and not all 0"),
        ({"weights": [0.0, 0.0, 0.0]}, TaskError, "not all 0"),
        ({"weights": ["jump"]}, TaskError, r"must be numbers, one per task, not \['jump'\]"),
        ({"weights": [1.0, 1.0]}, TaskError, "2 weights do not fit a library of 3 tasks"),
        ({"weights": {"hop": 1.0}}, TaskNameError, r"no task 'hop'; choose from \['standing', .*'jump'\]"),
        ({"task_ids": []}, TaskError, r"task_ids are \[\]"),
        (
            {"task_ids": [0, -1, 0, 0]},
            TaskError,
            r"\[0, -1, 0, 0\]; give whole numbers of 0 or more, or names",
        ),
        ({"task_ids": [0.0, 1.0, 0.0, 0.0]}, TaskError, "give whole numbers"),
        ({"task_ids": [0, None, 0, 0]}, TaskError, "must be whole numbers or names"),
        ({"task_ids": ["hop"] * 4}, TaskNameError, "no task 'hop'"),
        ({"task_ids": [0, 1, 2, 3]}, TaskError, "task 3 does not exist; choose 0 to 2"),
        ({"task_ids": [0, 1]}, TaskError, "2 tasks are fixed for 4 environments"),
    ],
)
def test_tasks_that_do_not_fit_are_refused_when_appended_at_the_latest(given, error, message):
    with pytest.raises(error, match=message):
        with_sampler(MicroDuckTaskSampler(**given))


def test_environments_that_cannot_take_what_is_given_are_named():
    with pytest.raises(
        TaskError, match="SerialEnv does not show the names of its tasks; append the sampler to"
    ):
        TransformedEnv(SerialEnv(2, ducks), MicroDuckTaskSampler({"jump": 1.0}))
    with pytest.raises(TaskError, match="PendulumEnv takes no 'task_id' at a reset"):
        TransformedEnv(PendulumEnv(), MicroDuckTaskSampler([1.0]))
    with pytest.raises(TaskError, match="SuccessTaskSampler measures a MicroDuckEnv, not a PendulumEnv"):
        TransformedEnv(PendulumEnv(), SuccessTaskSampler())


def test_edits_that_do_not_fit_are_refused():
    sampler = MicroDuckTaskSampler([1.0, 1.0, 1.0])
    with pytest.raises(TaskError, match="2 weights do not fit 3 tasks"):
        sampler.set_weights([1.0, 1.0])
    sampler.probabilities[0] = -1
    with pytest.raises(TaskError, match="finite, 0 or more"):
        sampler.sample([4])
    with pytest.raises(TaskError, match="append it to an environment first"):
        MicroDuckTaskSampler({"jump": 1.0}).sample([4])
    with pytest.raises(TaskError, match="the tasks are fixed"):
        MicroDuckTaskSampler.fixed([0]).set_weights([1.0])
    with pytest.raises(TaskError, match="1 tasks are fixed for 2 environments"):
        MicroDuckTaskSampler.fixed([0]).sample([2])


def appended(sampler, num_envs=4, **settings):
    rows = [MicroDuckEnv.standing_task(), MicroDuckEnv.tracking_task(0.2)]
    return TransformedEnv(MicroDuckEnv(tasks=rows, num_envs=num_envs, seed=0, **settings), sampler)


def record(sampler, *episodes):
    """Record (task, score) pairs that finish together; return the success of both tasks and their shares."""
    task_ids, scores = zip(*episodes, strict=True)
    sampler.record(torch.tensor(task_ids), torch.tensor(scores))
    return sampler.success.tolist(), sampler.probabilities.tolist()


def test_the_share_of_a_task_rises_while_it_fails_and_falls_when_it_succeeds():
    sampler = SuccessTaskSampler(floor=0.2, smoothing=0.5)
    appended(sampler)
    assert sampler.success.tolist() == [0.0, 0.0]
    assert sampler.probabilities.tolist() == pytest.approx([0.5, 0.5])
    success, share = record(sampler, (0, 1.0), (1, 0.0))
    assert success == pytest.approx([0.5, 0.0])
    assert share == pytest.approx([0.1 + 0.8 / 3, 0.1 + 0.8 * 2 / 3])
    success, share = record(sampler, (0, 1.0), (1, 0.0))
    assert success == pytest.approx([0.75, 0.0])
    assert share == pytest.approx([0.26, 0.74])  # lags of 1/4 and 1, so 1/5 and 4/5 of 0.8, and 0.1 each
    success, share = record(sampler, (1, 1.0))
    assert success == pytest.approx([0.75, 0.5])
    assert share == pytest.approx([0.1 + 0.8 / 3, 0.1 + 0.8 * 2 / 3])
    success, share = record(sampler, (1, 1.0), (1, 1.0))  # both count: 1 - 0.5 / 4
    assert success == pytest.approx([0.75, 0.875])
    assert share == pytest.approx([0.1 + 0.8 * 2 / 3, 0.1 + 0.8 / 3])


def test_a_solved_task_keeps_the_floor_of_its_share():
    sampler = SuccessTaskSampler(floor=0.2, smoothing=1.0)
    appended(sampler)
    assert record(sampler, (0, 1.0))[1] == pytest.approx([0.1, 0.9])  # the other was never drawn
    assert record(sampler, (1, 1.0))[1] == pytest.approx([0.5, 0.5])  # all are solved


def test_episodes_of_one_task_that_finish_together_count_by_their_mean():
    sampler = SuccessTaskSampler(smoothing=0.5)
    appended(sampler)
    success, _ = record(sampler, (0, 1.0), (1, 0.5), (0, 0.0), (0, 0.5))
    assert success == pytest.approx([0.4375, 0.25])  # 7/8 of a mean of 1/2; 1/2 of 1/2


def test_weights_of_the_library_are_the_shares_at_the_start_and_can_be_changed():
    rows = [MicroDuckEnv.standing_task(weight=3.0), MicroDuckEnv.tracking_task(0.2, weight=1.0)]
    sampler = SuccessTaskSampler(floor=0.2, smoothing=1.0)
    TransformedEnv(MicroDuckEnv(tasks=rows), sampler)
    assert sampler.probabilities.tolist() == pytest.approx([0.75, 0.25])
    record(sampler, (0, 1.0))
    assert sampler.probabilities.tolist() == pytest.approx([0.15, 0.85])
    sampler.set_weights({"standing": 1.0, "tracking+0.20": 1.0})
    assert sampler.probabilities.tolist() == pytest.approx([0.1, 0.9])
    sampler.set_weights({"standing": 1.0})
    assert sampler.probabilities.tolist() == pytest.approx([1.0, 0.0])


def rest(tensordict):
    """Keep still; the duck topples within 2 s."""
    return tensordict.set("action", torch.zeros(*tensordict.shape, 14))


def split(tensordict):
    """Balance the ducks that are told to stand; let the others topple."""
    actions = MicroDuckGait().actions(tensordict["observation"])
    return tensordict.set("action", actions * (tensordict["task_id"] == 0))


def test_ducks_that_fall_lower_the_success_of_their_task_alone():
    sampler = SuccessTaskSampler(smoothing=0.5)
    env = appended(sampler, num_envs=8, max_episode_steps=80)
    check_env_specs(env)
    env.set_seed(1)
    rollout = env.rollout(240, split, break_when_any_done=False)["next"]
    fell = rollout["terminated"].squeeze(-1)
    assert rollout["task_id"].squeeze(-1)[fell].unique().tolist() == [1]
    assert sampler.success[0] > 0.9
    assert sampler.success[1] < 0.4
    assert sampler.probabilities[1] > 0.8


def episode(sampler, steps, policy, **settings):
    """Return the recording of one duck's first episode."""
    rows = settings.pop("tasks", MicroDuckEnv.tracking_task(0.2))
    env = TransformedEnv(MicroDuckEnv(tasks=rows, seed=0, **settings), sampler)
    return env.rollout(steps, policy)


@pytest.mark.parametrize("layout", ["state", "sensor"])
def test_success_of_an_episode_that_lasts_is_its_task_score(layout):
    sampler = SuccessTaskSampler(smoothing=1.0)
    rollout = episode(sampler, 20, None, max_episode_steps=20, layout=layout, diagnostics=layout == "sensor")
    assert rollout["next", "truncated"][0, -1]
    rollout["collector"] = TensorDict({"mask": torch.ones(1, 20, dtype=torch.bool)}, batch_size=[1, 20])
    assert float(sampler.success[0]) == pytest.approx(trajectory_metrics(rollout)["task_score"], abs=1e-6)


class Scripted(SuccessTaskSampler):
    """Scores every step with `value`."""

    value = 1.0

    def score(self, features):
        return torch.full_like(features["upright"], self.value)


def test_steps_lost_to_a_fall_count_as_nothing():
    sampler = Scripted(smoothing=1.0)
    rollout = episode(sampler, 200, rest, max_episode_steps=200)
    assert rollout["next", "terminated"][0, -1]
    assert 20 < rollout.shape[1] < 150
    # nor does the step of the fall
    assert float(sampler.success[0]) == pytest.approx((rollout.shape[1] - 1) / 200)


def test_episodes_that_another_transform_ends_count_and_those_broken_off_do_not():
    sampler = Scripted(smoothing=1.0)
    env = MicroDuckEnv(tasks=MicroDuckEnv.standing_task(), seed=0)
    env = TransformedEnv(env, Compose(sampler, StepCounter(10)))
    sampler.value = 0.25
    env.rollout(5, MicroDuckGait())
    env.reset()
    assert sampler.success.tolist() == [0.0]
    sampler.value = 0.75
    env.rollout(12, MicroDuckGait(), break_when_any_done=False)
    assert sampler.success.tolist() == [0.75]


def test_success_and_shares_are_saved():
    sampler = SuccessTaskSampler(smoothing=0.5)
    env = appended(sampler)
    record(sampler, (0, 1.0), (1, 0.25))
    other = SuccessTaskSampler(smoothing=0.5)
    appended(other).load_state_dict(env.state_dict())
    assert torch.equal(other.success, sampler.success)
    assert torch.equal(other.probabilities, sampler.probabilities)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"floor": -0.1}, r"floor is -0.1; it must be in \[0, 1\]"),
        ({"floor": 1.5}, "floor is 1.5"),
        ({"smoothing": 0.0}, r"smoothing is 0.0; it must be in \(0, 1\]"),
        ({"smoothing": float("nan")}, "smoothing is nan"),
    ],
)
def test_options_out_of_range_are_refused(given, message):
    with pytest.raises(ConfigError, match=message):
        SuccessTaskSampler(**given)


def test_records_that_make_no_sense_are_refused():
    sampler = SuccessTaskSampler()
    with pytest.raises(TaskError, match="append it to an environment first"):
        record(sampler, (0, 1.0))
    appended(sampler)
    with pytest.raises(TaskError, match=r"scores are \[1.5\]; they must be in \[0, 1\]"):
        record(sampler, (0, 1.5))


def test_a_reset_after_an_episode_draws_a_command_for_the_new_task():
    rows = [MicroDuckEnv.tracking_task(0.1), MicroDuckEnv.standing_task()]
    env = TransformedEnv(
        MicroDuckEnv(tasks=rows, num_envs=8, seed=0), MicroDuckTaskSampler([1.0, 1.0], seed=0)
    )
    state = env.reset()
    for _ in range(3):
        state = env.reset(env.step(state.set("action", torch.zeros(8, 14)))["next"])
        assert torch.allclose(state["command"][:, 0], torch.where(state["task_id"][:, 0] == 0, 0.1, 0.0))
