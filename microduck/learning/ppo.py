"""Proximal policy optimisation on TorchRL's GAE and ClipPPOLoss."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice, repeat

import torch
from tensordict import TensorDict
from tensordict.nn import ProbabilisticTensorDictModule, ProbabilisticTensorDictSequential, TensorDictModule
from torch import Tensor, nn
from torchrl.modules import IndependentNormal, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

from hardware.errors import TrainingError
from microduck.learning.config import TrainConfig
from microduck.learning.symmetry import Mirror
from microduck.policy import SkillNetwork, SkillPolicy

INPUTS = ["observation", "task_id"]
PROBE_EVERY = 4
"""Every so many transitions of a batch measure the divergence of an update."""


class _Gaussian(nn.Module):
    """The policy's mean and standard deviation, as a distribution needs them."""

    def __init__(self, policy: SkillPolicy) -> None:
        super().__init__()
        self.policy = policy

    def forward(self, observation: Tensor, task_id: Tensor) -> tuple[Tensor, Tensor]:
        mean = self.policy(observation, task_id)
        return mean, self.policy.log_std.exp().expand_as(mean)


def make_actor(policy: SkillPolicy) -> ProbabilisticTensorDictSequential:
    """Return the policy as a TensorDict module that samples actions and writes their log-probability."""
    sample = ProbabilisticTensorDictModule(
        in_keys=["loc", "scale"],
        out_keys=["action"],
        distribution_class=IndependentNormal,
        default_interaction_type="random",
        return_log_prob=True,
    )
    return ProbabilisticTensorDictSequential(
        TensorDictModule(_Gaussian(policy), INPUTS, ["loc", "scale"]), sample
    )


@dataclass
class UpdateStats:
    """What one update did; losses are means over its last pass."""

    kl: float
    policy_loss: float
    value_loss: float
    learning_rate: float


class PPO:
    """Actor, critic and optimiser, and one update from one batch.

    Args:
        policy: the actor's network.
        critic: the value network, one output.
        config: rates and counts.
        mirror: shows the learner about half of the transitions mirrored; None shows them as they were.
    """

    def __init__(
        self, policy: SkillPolicy, critic: SkillNetwork, config: TrainConfig, mirror: Mirror | None = None
    ) -> None:
        self.policy, self.critic, self.config, self.mirror = policy, critic, config, mirror
        self.actor = make_actor(policy)
        value = ValueOperator(critic, in_keys=INPUTS)
        # Time limits bootstrap from the true last observation: GAE reads `terminated` for the value of the
        # next state and `done` for the end of the trace.
        self._gae = GAE(gamma=config.gamma, lmbda=config.lmbda, value_network=None)
        self.loss = ClipPPOLoss(
            self.actor,
            value,
            clip_epsilon=config.clip,
            entropy_coeff=config.entropy,
            critic_coeff=1.0,
            loss_critic_type="l2",
            normalize_advantage=False,
        )
        self.optimiser = torch.optim.Adam(
            [*policy.parameters(), *critic.parameters()], lr=config.learning_rate
        )

    def update(self, batch: TensorDict) -> UpdateStats:
        """Improve actor and critic from a batch (num_envs, steps) of transitions.

        Raises:
            TrainingError: the batch holds a reward or observation that is not finite.
        """
        _refuse_nonfinite(batch)
        self.estimate(batch)
        flat = batch.select(*INPUTS, "action", "action_log_prob", "advantage", "value_target").reshape(-1)
        advantage = flat["advantage"]
        flat["advantage"] = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        probe, std = batch.reshape(-1)[::PROBE_EVERY], self.policy.log_std.detach().exp()
        passes = repeat(flat) if self.mirror is None else self.mirror.passes(flat)
        losses = []
        for shown in islice(passes, self.config.epochs):
            order = torch.randperm(flat.shape[0])
            losses = [self._minibatch(shown[rows]) for rows in order.chunk(self.config.minibatches)]
        policy_loss, value_loss = torch.stack(losses).mean(0).tolist()  # of the last pass
        kl = self._divergence(probe, std)
        self._adapt(kl)
        self.policy.normaliser.update(batch["observation"])
        self.critic.normaliser.load_state_dict(self.policy.normaliser.state_dict())
        return UpdateStats(kl, policy_loss, value_loss, self.learning_rate)

    @torch.no_grad()
    def estimate(self, batch: TensorDict) -> None:
        """Write values, advantages and value targets into a batch (num_envs, steps).

        The state after a step is the next row's, so its value is known; it is computed apart where an episode
        or the batch ends, from the true last observation.
        """
        value = self.critic(batch["observation"], batch["task_id"])
        following = torch.roll(value, -1, dims=1)
        apart = batch["next", "done"].squeeze(-1).clone()
        apart[:, -1] = True
        after = batch["next"]
        following[apart] = self.critic(after["observation"][apart], after["task_id"][apart])
        batch["state_value"], batch["next", "state_value"] = value, following
        self._gae(batch)

    def _minibatch(self, rows: TensorDict) -> Tensor:
        out = self.loss(rows)
        total = out["loss_objective"] + out["loss_critic"] + out["loss_entropy"]
        self.optimiser.zero_grad(set_to_none=True)
        total.backward()
        for network in (self.policy, self.critic):  # apart, so that the critic's size does not slow the actor
            nn.utils.clip_grad_norm_(network.parameters(), self.config.max_grad_norm)
        self.optimiser.step()
        return torch.stack([out["loss_objective"], out["loss_critic"]]).detach()

    @torch.no_grad()
    def _divergence(self, rows: TensorDict, old_std: Tensor) -> float:
        """Return the mean KL divergence of the policy that collected the rows from the present one.

        In closed form: what the loss estimates from samples also counts how far mirrored ones are off.
        """
        mean, std = self.policy(rows["observation"], rows["task_id"]), self.policy.log_std.exp()
        moved = (old_std**2 + (rows["loc"] - mean) ** 2) / (2 * std**2)
        return float((torch.log(std / old_std) + moved - 0.5).sum(-1).mean())

    def _adapt(self, kl: float) -> None:
        """Keep the divergence of an update inside its interval by the step size."""
        factor = 1 / 1.5 if kl > self.config.kl_high else 1.5 if kl < self.config.kl_low else 1.0
        for group in self.optimiser.param_groups:
            group["lr"] = min(max(group["lr"] * factor, 1e-5), 1e-2)

    @property
    def learning_rate(self) -> float:
        """Present step size."""
        return float(self.optimiser.param_groups[0]["lr"])


def _refuse_nonfinite(batch: TensorDict) -> None:
    for name in ("observation", ("next", "reward")):
        if not bool(torch.isfinite(batch[name]).all()):
            raise TrainingError(
                f"{name} holds a value that is not finite; check the reward terms of the library"
            )
