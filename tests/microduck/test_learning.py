"""The pieces of learning, each against numbers worked out by hand; and a short training from nothing."""

import dataclasses
import json
import math
import os
import signal

import pytest
import torch
from tensordict import TensorDict

from hardware.errors import ConfigError, TaskError, TrainingError
from microduck.cli.console import asked_to_stop
from microduck.learning.config import TrainConfig, load_config, save_config
from microduck.learning.log import LogRow, TrainingLog, read_log
from microduck.learning.ppo import PPO
from microduck.learning.recipes import find_library
from microduck.learning.run_folder import RunFolder, load_policy, make_networks
from microduck.learning.train import Trainer
from microduck.policy import Normaliser, SkillPolicy

SMALL = TrainConfig(num_envs=32, steps=8, minutes=5, transitions=512, minibatches=2, threads=1)


def train(folder, config=SMALL):
    rows = []
    trainer = Trainer.start(RunFolder(folder), config)
    trainer.train(rows.append)
    return trainer, rows


class Table(torch.nn.Module):
    """A value network that knows its states by heart."""

    def forward(self, observation, task_id):
        return observation[..., :1] * 10


@pytest.mark.parametrize(("terminated", "advantage"), [(False, 10.9), (True, 1.0)])
def test_a_time_limit_bootstraps_from_the_true_last_observation(terminated, advantage):
    config = TrainConfig(gamma=0.99, lmbda=0.95)
    ppo = PPO(*make_networks(config, 1), config)
    ppo.critic = Table()
    # Two steps of one duck: the episode ends after the first; its last observation is worth 10.
    batch = TensorDict(
        {
            "observation": torch.zeros(1, 2, 1),
            "task_id": torch.zeros(1, 2, 1, dtype=torch.int64),
            "next": {
                "observation": torch.tensor([[[1.0], [0.0]]]),
                "task_id": torch.zeros(1, 2, 1, dtype=torch.int64),
                "reward": torch.tensor([[[1.0], [0.0]]]),
                "done": torch.tensor([[[True], [False]]]),
                "terminated": torch.tensor([[[terminated], [False]]]),
            },
        },
        batch_size=[1, 2],
    )
    ppo.estimate(batch)
    assert float(batch["advantage"][0, 0]) == pytest.approx(advantage)


def test_the_normaliser_centres_and_scales_what_it_was_shown():
    normaliser = Normaliser(1)
    values = torch.tensor([[1.0], [3.0], [5.0], [7.0]])
    normaliser.update(values[:1])
    normaliser.update(values[1:])
    # mean 4, variance 5, and 0.01 added to it
    assert float(normaliser.mean) == pytest.approx(4.0)
    assert float(normaliser.variance) == pytest.approx(5.0)
    assert float(normaliser(torch.tensor([[9.0]]))) == pytest.approx(5 / 5.01**0.5)
    assert float(normaliser(torch.tensor([[900.0]]))) == 10.0


def test_the_normaliser_only_learns_when_told():
    normaliser = Normaliser(2).train()
    normaliser(torch.randn(100, 2) + 5)
    assert normaliser.mean.tolist() == [0.0, 0.0]


def test_tasks_start_alike_and_can_grow_apart():
    policy = SkillPolicy(55, 3)
    observation, tasks = torch.randn(3, 55), torch.arange(3).unsqueeze(-1)
    same = observation[:1].expand(3, -1)
    assert torch.allclose(policy(same, tasks), policy(same, tasks.flip(0)))
    with torch.no_grad():
        policy.task.weight[1] += 1.0
    assert not torch.allclose(policy(same, tasks)[0], policy(same, tasks)[1])


def one_step_each(ppo, observation, gain=1.0):
    """Return episodes of one step that pay `gain` times the action's mean, for observations (n, 1, 55)."""
    count = len(observation)
    inputs = {"observation": observation, "task_id": torch.zeros(count, 1, 1, dtype=torch.int64)}
    batch = ppo.actor(TensorDict(inputs, batch_size=[count, 1])).detach()
    done = torch.ones(count, 1, 1, dtype=torch.bool)
    reward = gain * batch["action"].mean(-1, keepdim=True)
    batch["next"] = TensorDict({**inputs, "reward": reward, "done": done, "terminated": done}, [count, 1])
    return batch


def test_an_update_raises_the_probability_of_the_better_action():
    torch.manual_seed(0)
    config = TrainConfig(minibatches=1, epochs=8, entropy=0.0)
    ppo = PPO(*make_networks(config, 1), config)
    batch = one_step_each(ppo, torch.zeros(256, 1, 55))
    seen = batch["observation"][:1], batch["task_id"][:1]
    before = float(ppo.policy(*seen).detach().mean())
    ppo.update(batch)
    assert float(ppo.policy(*seen).detach().mean()) > before + 0.01


@pytest.mark.parametrize(
    ("kl", "learning_rate"),
    [(0.03, 4e-4), (0.001, 9e-4), (0.01, 6e-4)],  # over 0.02, under 0.005, between
)
def test_the_step_size_shrinks_when_an_update_went_too_far_and_grows_when_it_went_nowhere(kl, learning_rate):
    config = TrainConfig(learning_rate=6e-4)
    ppo = PPO(*make_networks(config, 1), config)
    ppo._adapt(kl)
    assert ppo.learning_rate == pytest.approx(learning_rate)


def test_the_critic_sees_observations_as_the_actor_does():
    torch.manual_seed(0)
    config = TrainConfig(minibatches=1, epochs=1)
    ppo = PPO(*make_networks(config, 1), config)
    ppo.update(one_step_each(ppo, 5 + 3 * torch.randn(512, 1, 55)))
    # 512 observations of mean 5 and deviation 3
    assert ppo.critic.normaliser.mean.numpy() == pytest.approx(5.0, abs=0.6)
    assert torch.equal(ppo.critic.normaliser.mean, ppo.policy.normaliser.mean)


def test_no_gradient_is_longer_than_it_may_be():
    torch.manual_seed(0)
    config = TrainConfig(minibatches=1, epochs=1, max_grad_norm=0.25)
    ppo = PPO(*make_networks(config, 1), config)
    ppo.update(one_step_each(ppo, torch.randn(64, 1, 55), gain=1e6))  # whose values are far off
    for network in (ppo.policy, ppo.critic):
        squares = [
            float(value.grad.square().sum()) for value in network.parameters() if value.grad is not None
        ]
        assert 0 < math.sqrt(sum(squares)) <= 0.25 + 1e-5


def test_the_divergence_of_an_update_is_that_of_two_gaussians():
    config = TrainConfig()
    ppo = PPO(*make_networks(config, 1), config)
    rows = TensorDict(
        {"observation": torch.zeros(3, 55), "task_id": torch.zeros(3, 1, dtype=torch.int64)}, [3]
    )
    rows["loc"] = torch.zeros(3, 14)
    with torch.no_grad():
        ppo.policy.rest[-1].weight.zero_()
        ppo.policy.rest[-1].bias.fill_(0.1)
    # 14 joints moved by a tenth of their standard deviation: 14 * 0.1 ** 2 / 2
    assert ppo._divergence(rows, torch.ones(14)) == pytest.approx(0.07)
    ppo.policy.log_std.data.fill_(math.log(2.0))
    # and twice as wide: 14 * (ln 2 + (1 + 0.01) / 8 - 1 / 2)
    assert ppo._divergence(rows, torch.ones(14)) == pytest.approx(4.47156, abs=1e-4)


def test_a_reward_that_is_not_finite_stops_training_and_is_named():
    config = TrainConfig()
    ppo = PPO(*make_networks(config, 1), config)
    batch = TensorDict(
        {
            "observation": torch.zeros(2, 2, 55),
            "next": {"reward": torch.tensor([[[0.0], [float("nan")]]] * 2)},
        },
        [2, 2],
    )
    with pytest.raises(TrainingError, match="reward"):
        ppo.update(batch)


def test_equal_seeds_train_equal_policies(tmp_path):
    one, rows = train(tmp_path / "one")
    two, _ = train(tmp_path / "two")
    assert len(rows) == 2
    for name, value in one.policy.state_dict().items():
        assert torch.equal(value, two.policy.state_dict()[name]), name
    other, _ = train(tmp_path / "other", dataclasses.replace(SMALL, seed=1))
    assert not torch.equal(one.policy.first.weight, other.policy.first.weight)


def test_a_run_goes_on_where_it_stopped(tmp_path):
    first, _ = train(tmp_path)
    longer = dataclasses.replace(SMALL, transitions=1024)
    again = Trainer.resume(RunFolder(tmp_path), longer)
    assert again.transitions == 512
    assert torch.equal(again.policy.first.weight, first.policy.first.weight)
    assert again.ppo.learning_rate == first.ppo.learning_rate
    again.train(lambda row: None)
    rows = read_log(tmp_path / "log.csv")
    assert [row.transitions for row in rows] == [256, 512, 768, 1024]
    assert (tmp_path / "training.png").read_bytes().startswith(b"\x89PNG")
    policy, library, config, counters = load_policy(RunFolder(tmp_path))
    assert torch.equal(policy.first.weight, again.policy.first.weight)
    assert (counters["transitions"], list(library.name), config.num_envs) == (1024, ["walk"], 32)


def test_a_signal_ends_training_between_two_updates_and_the_run_is_saved(tmp_path):
    trainer = Trainer.start(RunFolder(tmp_path), dataclasses.replace(SMALL, transitions=10**9))
    usual = signal.getsignal(signal.SIGINT)
    with asked_to_stop() as stopped:
        trainer.train(lambda row: os.kill(os.getpid(), signal.SIGINT), stopped)
    assert RunFolder(tmp_path).load_checkpoint()["transitions"] == 256
    assert signal.getsignal(signal.SIGINT) is usual


def test_an_exception_saves_the_run(tmp_path):
    trainer = Trainer.start(RunFolder(tmp_path), dataclasses.replace(SMALL, transitions=10**9))

    def interrupt(row):
        if row.transitions >= 768:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trainer.train(interrupt)
    assert RunFolder(tmp_path).load_checkpoint()["transitions"] == 768


def test_a_run_can_be_resumed_before_its_first_update(tmp_path):
    Trainer.start(RunFolder(tmp_path), SMALL)
    assert Trainer.resume(RunFolder(tmp_path), SMALL).transitions == 0


def test_a_run_is_not_overwritten(tmp_path):
    train(tmp_path)
    before = (tmp_path / "checkpoint.pt").read_bytes()
    with pytest.raises(TrainingError, match="holds a run already; go on with it"):
        Trainer.start(RunFolder(tmp_path), SMALL)
    assert (tmp_path / "checkpoint.pt").read_bytes() == before


def test_damaged_and_foreign_checkpoints_are_refused(tmp_path):
    train(tmp_path)
    run = RunFolder(tmp_path)
    save_config(dataclasses.replace(SMALL, layout="state"), run.config_file)
    with pytest.raises(TrainingError, match="does not fit its configuration"):
        load_policy(run)
    run.checkpoint_file.write_bytes(b"not a checkpoint")
    with pytest.raises(TrainingError, match="damaged or no checkpoint"):
        load_policy(run)
    run.checkpoint_file.unlink()
    with pytest.raises(TrainingError, match=r"has no checkpoint\.pt; train a run there first"):
        load_policy(run)


def test_a_folder_without_a_run_is_named(tmp_path):
    with pytest.raises(
        TrainingError, match="nowhere is no training run; make one there with microduck train"
    ):
        load_policy(RunFolder(tmp_path / "nowhere"))


def test_a_log_row_that_a_kill_cut_short_is_left_out(tmp_path):
    log = TrainingLog(tmp_path / "log.csv")
    log.append(LogRow(100, *[1.0] * 10))
    with log.path.open("a", encoding="utf-8") as file:
        file.write("200,3.5,1")
    assert [row.transitions for row in read_log(log.path)] == [100]


def test_configurations_read_back_equal_and_bad_ones_are_refused(tmp_path):
    path = tmp_path / "config.json"
    save_config(TrainConfig(seed=7), path)
    assert load_config(path) == TrainConfig(seed=7)
    path.write_text(json.dumps({"speed": 3}), encoding="utf-8")
    with pytest.raises(ConfigError, match="speed"):
        load_config(path)
    with pytest.raises(ConfigError, match="minutes is -1; it must be above 0"):
        TrainConfig(minutes=-1)
    with pytest.raises(ConfigError, match="gamma is nan"):
        TrainConfig(gamma=float("nan"))
    with pytest.raises(TaskError, match=r"'run' is no task library; choose one of .*'walk'"):
        find_library("run")
