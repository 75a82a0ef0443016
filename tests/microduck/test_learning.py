"""The pieces of learning, each against numbers worked out by hand."""

import math

import pytest
import torch
from tensordict import TensorDict

from hardware.errors import TrainingError
from microduck.env import privileged
from microduck.learning.config import TrainConfig
from microduck.learning.ppo import PPO
from microduck.learning.run_folder import make_networks
from microduck.policy import Normaliser, SkillPolicy


class Table(torch.nn.Module):
    """A value network that knows its states by heart."""

    def forward(self, privileged, task_id):
        return privileged[..., :1] * 10


@pytest.mark.parametrize(("terminated", "advantage"), [(False, 10.9), (True, 1.0)])
def test_a_time_limit_bootstraps_from_the_true_last_observation(terminated, advantage):
    config = TrainConfig(gamma=0.99, lmbda=0.95)
    ppo = PPO(*make_networks(config, 1), config)
    ppo.critic = Table()
    # Two steps of one duck: the episode ends after the first; its last observation is worth 10.
    batch = TensorDict(
        {
            "privileged": torch.zeros(1, 2, 1),
            "task_id": torch.zeros(1, 2, 1, dtype=torch.int64),
            "next": {
                "privileged": torch.tensor([[[1.0], [0.0]]]),
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
    normaliser.update(1, torch.tensor([1.0]), torch.tensor([0.0]))
    normaliser.update(3, torch.tensor([5.0]), torch.tensor([8.0 / 3]))  # 3, 5 and 7
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
    inputs = {
        "observation": observation,
        "privileged": observation[..., :1].expand(-1, -1, privileged.WIDTH) - 1,
        "task_id": torch.zeros(count, 1, 1, dtype=torch.int64),
    }
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


def test_actor_and_critic_each_normalise_what_they_see():
    torch.manual_seed(0)
    config = TrainConfig(minibatches=1, epochs=1)
    ppo = PPO(*make_networks(config, 1), config)
    ppo.update(one_step_each(ppo, 5 + 3 * torch.randn(512, 1, 55)))
    # 512 observations of mean 5 and deviation 3, of which the critic sees one number less 1
    assert ppo.policy.normaliser.mean.numpy() == pytest.approx(5.0, abs=0.6)
    assert ppo.critic.normaliser.mean.numpy() == pytest.approx(4.0, abs=0.6)
    assert ppo.critic.normaliser.variance.numpy() == pytest.approx(9.0, abs=1.5)


def test_advantages_are_normalised_within_each_task():
    config = TrainConfig()
    ppo = PPO(*make_networks(config, 3), config)
    task_id = torch.tensor([[0], [0], [1], [1], [1]])  # and nothing of task 2
    normalised = ppo._normalised(torch.tensor([[1.0], [3.0], [100.0], [400.0], [700.0]]), task_id)
    assert normalised.squeeze(-1).tolist() == pytest.approx([-1, 1, -1.224745, 0, 1.224745], abs=1e-5)


def test_each_task_explores_by_itself_and_within_bounds():
    policy = SkillPolicy(55, 2, initial_std=0.5)
    with torch.no_grad():
        policy.log_std[1] = 50.0
        policy.log_std[1, 3] = -50.0
    std = policy.std(torch.tensor([[0], [1]]))
    assert std[0].tolist() == pytest.approx([0.5] * 14)
    assert float(std[1, 0]) == pytest.approx(2.0) and float(std[1, 3]) == pytest.approx(0.02)


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
        ppo.policy.heads.weight.zero_()
        ppo.policy.heads.bias.fill_(0.1)
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
            "privileged": torch.zeros(2, 2, privileged.WIDTH),
            "next": {"reward": torch.tensor([[[0.0], [float("nan")]]] * 2)},
        },
        [2, 2],
    )
    with pytest.raises(TrainingError, match="reward"):
        ppo.update(batch)
