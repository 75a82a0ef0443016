"""Proximal policy optimisation on TorchRL's GAE and ClipPPOLoss."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, repeat

import torch
from tensordict import TensorDict
from tensordict.nn import ProbabilisticTensorDictModule, ProbabilisticTensorDictSequential, TensorDictModule
from torch import Tensor, nn
from torchrl.modules import IndependentNormal, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

from microduck.learning.config import TrainConfig
from microduck.learning.faults import NotFiniteError
from microduck.learning.ranks import ALONE, Ranks
from microduck.learning.symmetry import Mirror
from microduck.policy import SkillNetwork, SkillPolicy

INPUTS = ["observation", "task_id"]
CRITIC_INPUTS = ["privileged", "true_task_id"]
"""The critic trains on what happened, whatever image of it the actor is shown."""
PROBE_EVERY = 4
"""Every so many transitions of a batch measure the divergence of an update."""


class _Gaussian(nn.Module):
    """The policy's mean and standard deviation, as a distribution needs them."""

    def __init__(self, policy: SkillPolicy) -> None:
        super().__init__()
        self.policy = policy

    def forward(self, observation: Tensor, task_id: Tensor) -> tuple[Tensor, Tensor]:
        return self.policy(observation, task_id), self.policy.std(task_id)


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
        mirror: shows the actor about half of the transitions mirrored; None shows them as they were.
        ranks: this process among those that train together.
    """

    def __init__(
        self,
        policy: SkillPolicy,
        critic: SkillNetwork,
        config: TrainConfig,
        mirror: Mirror | None = None,
        ranks: Ranks = ALONE,
    ) -> None:
        self.policy, self.critic, self.config, self.mirror, self.ranks = policy, critic, config, mirror, ranks
        self.actor = make_actor(policy)
        value = ValueOperator(critic, in_keys=CRITIC_INPUTS)
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
            NotFiniteError: the batch of some process holds a reward or observation that is not finite.
        """
        self._refuse_nonfinite(batch)
        self.estimate(batch)
        probe = batch.reshape(-1)[::PROBE_EVERY]
        std = self.policy.std(probe["task_id"]).detach()
        losses = [loss for rows in self._passes(batch) for loss in self._pass(rows)]
        last = torch.stack(losses[-self.config.minibatches :]).mean(0)
        policy_loss, value_loss = self.ranks.mean(last).tolist()
        kl = float(self.ranks.mean(self._divergence(probe, std)))
        self._adapt(kl)
        self.policy.normaliser.update(*self.ranks.moments(batch["observation"]))
        self.critic.normaliser.update(*self.ranks.moments(batch["privileged"]))
        return UpdateStats(kl, policy_loss, value_loss, self.learning_rate)

    def _refuse_nonfinite(self, batch: TensorDict) -> None:
        names = ("observation", "privileged", ("next", "reward"))
        bad = [str(name) for name in names if not bool(torch.isfinite(batch[name]).all())]
        if self.ranks.agree(bool(bad)):
            raise NotFiniteError(
                f"{', '.join(bad) or 'what another process saw'} holds a value that is not finite; check the "
                "reward terms of the library"
            )

    def _passes(self, batch: TensorDict) -> Iterator[TensorDict]:
        """Yield the transitions of a batch as each pass is to see them, (n,)."""
        keys = (*INPUTS, "privileged", "action", "action_log_prob", "advantage", "value_target")
        flat = batch.select(*keys).reshape(-1)
        flat["true_task_id"] = flat["task_id"]
        flat["advantage"] = self._normalised(flat["advantage"], flat["task_id"])
        passes = repeat(flat) if self.mirror is None else self.mirror.passes(flat)
        yield from islice(passes, self.config.epochs)

    def _pass(self, rows: TensorDict) -> Iterator[Tensor]:
        order = torch.randperm(rows.shape[0])
        for chosen in order.chunk(self.config.minibatches):
            yield self._minibatch(rows[chosen])

    def _normalised(self, advantage: Tensor, task_id: Tensor) -> Tensor:
        """Return advantages (n, 1) with mean 0 and deviation 1 for each task: none drowns another."""
        ids, values = task_id.squeeze(-1), advantage.squeeze(-1)

        def total(value: Tensor) -> Tensor:
            zeros = torch.zeros(self.policy.task.num_embeddings)
            return self.ranks.sum(zeros.index_add(0, ids, value))

        count = total(torch.ones_like(values)).clamp(min=1)
        centred = values - (total(values) / count)[ids]
        deviation = (total(centred.square()) / count).sqrt()
        return (centred / (deviation[ids] + 1e-8)).unsqueeze(-1)

    @torch.no_grad()
    def estimate(self, batch: TensorDict) -> None:
        """Write values, advantages and value targets into a batch (num_envs, steps).

        The state after a step is the next row's, so its value is known; it is computed apart where an episode
        or the batch ends, from the true last observation.
        """
        value = self.critic(batch["privileged"], batch["task_id"])
        following = torch.roll(value, -1, dims=1)
        apart = batch["next", "done"].squeeze(-1).clone()
        apart[:, -1] = True
        after = batch["next"]
        following[apart] = self.critic(after["privileged"][apart], after["task_id"][apart])
        batch["state_value"], batch["next", "state_value"] = value, following
        self._gae(batch)

    def _minibatch(self, rows: TensorDict) -> Tensor:
        out = self.loss(rows)
        total = out["loss_objective"] + out["loss_critic"] + out["loss_entropy"]
        self.optimiser.zero_grad(set_to_none=True)
        total.backward()
        self.ranks.average_gradients([*self.policy.parameters(), *self.critic.parameters()])
        for network in (self.policy, self.critic):  # apart, so that the critic's size does not slow the actor
            nn.utils.clip_grad_norm_(network.parameters(), self.config.max_grad_norm)
        self.optimiser.step()
        return torch.stack([out["loss_objective"], out["loss_critic"]]).detach()

    @torch.no_grad()
    def _divergence(self, rows: TensorDict, old_std: Tensor) -> Tensor:
        """Return the mean KL divergence of the policy that collected the rows from the present one.

        In closed form: what the loss estimates from samples also counts how far mirrored ones are off.
        """
        mean, std = self.policy(rows["observation"], rows["task_id"]), self.policy.std(rows["task_id"])
        moved = (old_std**2 + (rows["loc"] - mean) ** 2) / (2 * std**2)
        return (torch.log(std / old_std) + moved - 0.5).sum(-1).mean()

    def _adapt(self, kl: float) -> None:
        """Keep the divergence of an update inside its interval by the step size."""
        factor = 1 / 1.5 if kl > self.config.kl_high else 1.5 if kl < self.config.kl_low else 1.0
        for group in self.optimiser.param_groups:
            group["lr"] = min(max(group["lr"] * factor, 1e-5), 1e-2)

    @property
    def learning_rate(self) -> float:
        """Present step size."""
        return float(self.optimiser.param_groups[0]["lr"])
