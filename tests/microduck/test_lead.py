"""One task that learns alone at first."""

import pytest
import torch

from microduck.env import MicroDuckEnv
from microduck.learning.config import TrainConfig
from microduck.learning.lead import Lead, first_mover
from microduck.learning.run_folder import RunFolder, make_networks
from microduck.learning.train import Trainer
from microduck.tasks import save_library, speed_range_task, stack_tasks, standing_task, tracking_task

EVEN = torch.tensor([0.5, 0.5])


@pytest.fixture
def env():
    rows = [standing_task(name="stand"), speed_range_task(name="walk")]
    return MicroDuckEnv(tasks=rows, num_envs=64, seed=0)


def test_the_leading_task_is_the_only_one_that_is_drawn(env):
    Lead(env, 1)
    assert env.reset()["task_id"].unique().tolist() == [1]


def test_without_a_lead_all_tasks_are_drawn_and_none_is_over(env):
    lead = Lead(env, None)
    assert env.reset()["task_id"].unique().tolist() == [0, 1]
    assert not lead.on and not lead.follow(1.0)


def test_the_lead_is_over_once_the_mean_progress_is_seven_tenths(env):
    lead = Lead(env, 1)
    over = [lead.follow(1.0) for _ in range(30)]
    # 1 - 0.95 ** n first reaches 0.7 at n = 24.
    assert over.index(True) == 23


def test_every_task_starts_from_the_leading_one(env):
    lead = Lead(env, 1)
    policy, critic = make_networks(TrainConfig(layout="state"), 2)
    observation, privileged = torch.randn(5, 56), torch.randn(5, critic.first.in_features)
    first, second = torch.zeros(5, 1, dtype=torch.int64), torch.ones(5, 1, dtype=torch.int64)
    with torch.no_grad():
        for network in (policy, critic):
            network.task.weight.normal_()
            network.heads.weight.normal_()
            network.heads.bias.normal_()
        policy.log_std[1] = -1.0
        led = policy(observation, second), critic(privileged, second), policy.std(second)
        assert not torch.allclose(policy(observation, first), led[0])
        lead.hand_over(policy, critic, EVEN)
        followed = policy(observation, first), critic(privileged, first), policy.std(first)
    assert all(torch.equal(one, other) for one, other in zip(led, followed, strict=True))
    assert not lead.on
    assert env.reset()["task_id"].unique().tolist() == [0, 1]


def test_a_run_that_is_resumed_knows_whether_its_lead_is_over(tmp_path):
    path = tmp_path / "two.tdz"
    save_library([standing_task(name="stand"), speed_range_task(name="walk")], path)
    small = {"num_envs": 4, "steps": 4, "minibatches": 1, "epochs": 1, "threads": 1, "transitions": 16}
    config = TrainConfig(library=str(path), evaluate_every_minutes=0, **small)
    trainer = Trainer.start(RunFolder(tmp_path / "run"), config)
    assert trainer._lead.on
    trainer._lead.hand_over(trainer.policy, trainer.critic, EVEN)
    trainer.save()
    again = Trainer.resume(RunFolder(tmp_path / "run"), config)
    assert not again._lead.on and again.env.task_shares.tolist() == [0.5, 0.5]


def test_the_first_task_that_is_told_to_move_leads():
    still, slow = standing_task(name="stand"), speed_range_task(0.0, 0.05, name="slow")
    back = tracking_task(-0.2, name="back")
    assert first_mover(stack_tasks([still, slow, back, speed_range_task()])) == 2
    assert first_mover(stack_tasks([still, slow])) is None
    assert first_mover(stack_tasks([back])) is None
    assert first_mover(stack_tasks([tracking_task(0.2, weight=0.0), back])) == 1


def test_a_run_without_a_lead_draws_all_tasks_from_the_start(tmp_path):
    path = tmp_path / "two.tdz"
    save_library([standing_task(name="stand"), speed_range_task(name="walk")], path)
    config = TrainConfig(library=str(path), lead=False, num_envs=4, steps=4, minibatches=1, threads=1)
    assert Trainer.start(RunFolder(tmp_path / "run"), config).env.task_shares.tolist() == [0.5, 0.5]
