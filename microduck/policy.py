"""The skill policy: one feed-forward network for all tasks of a library, its normaliser inside."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn


class Normaliser(nn.Module):
    """Scales observations by the mean and variance of all it was shown.

    The statistics change only through `update`, never in `forward`, so an exported network, a training
    network and an evaluating one give the same output.

    Args:
        width: number of values in an observation.
    """

    # Added to the variance: a value that never changed in training stays near zero when it moves on a robot.
    FLOOR = 1e-2
    CLIP = 10.0
    mean: Tensor
    variance: Tensor
    count: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("variance", torch.ones(width))
        self.register_buffer("count", torch.zeros((), dtype=torch.float64))

    @torch.no_grad()
    def update(self, count: int, mean: Tensor, variance: Tensor) -> None:
        """Take more observations into the statistics (parallel-variance formula of Chan et al.).

        Args:
            count: how many.
            mean: theirs, (width,).
            variance: theirs, of the population, (width,).
        """
        total = self.count + count
        delta = mean - self.mean
        fraction = (count / total).to(self.mean.dtype)
        spread = self.variance * (1 - fraction) + variance * fraction
        self.variance.copy_(spread + delta.square() * fraction * (1 - fraction))
        self.mean.add_(delta * fraction)
        self.count.copy_(total)

    def forward(self, observation: Tensor) -> Tensor:
        """Return the scaled observation, (..., width)."""
        scaled = (observation - self.mean) / torch.sqrt(self.variance + self.FLOOR)
        return scaled.clamp(-self.CLIP, self.CLIP)


class SkillNetwork(nn.Module):
    """Observation and task id to a vector: normalise, add the task's embedding, ELU layers, the task's head.

    The tasks share what they see, and each has its own say at both ends: with a common last layer, what one
    task learns late shows in the motion of all others.

    Args:
        width: number of values in an observation.
        num_tasks: rows of the task library.
        outputs: number of values returned.
        hidden: widths of the hidden layers.
        output_gain: factor on the last layer's initial weights.

    Attributes:
        outputs: number of values returned.
    """

    def __init__(
        self, width: int, num_tasks: int, outputs: int, hidden: Sequence[int], output_gain: float = 1.0
    ) -> None:
        super().__init__()
        self.outputs = outputs
        self.normaliser = Normaliser(width)
        self.first = nn.Linear(width, hidden[0])
        self.task = nn.Embedding(num_tasks, hidden[0])
        nn.init.zeros_(self.task.weight)  # tasks start alike and grow apart
        layers: list[nn.Module] = [nn.ELU(inplace=True)]
        for before, after in pairwise(hidden):
            layers += [nn.Linear(before, after), nn.ELU(inplace=True)]
        self.rest = nn.Sequential(*layers)
        self.heads = nn.Linear(hidden[-1], num_tasks * outputs)
        with torch.no_grad():
            self.heads.weight.mul_(output_gain)
            self.heads.bias.zero_()
        SkillNetwork.spread(self, 0)

    def forward(self, observation: Tensor, task_id: Tensor) -> Tensor:
        """Return the outputs for observations (..., width) and task ids (..., 1)."""
        first = self.first(self.normaliser(observation)) + self.task(task_id.squeeze(-1))
        said = self.heads(self.rest(first)).unflatten(-1, (-1, self.outputs))
        own = task_id.unsqueeze(-1).expand(*task_id.shape, self.outputs)
        return said.gather(-2, own).squeeze(-2)

    @torch.no_grad()
    def spread(self, task_id: int) -> None:
        """Let every task go on from where one is."""
        for value in (self.task.weight, self.heads.weight, self.heads.bias):
            rows = value.view(self.task.num_embeddings, -1)
            rows.copy_(rows[task_id].clone().expand_as(rows))


class SkillPolicy(SkillNetwork):
    """The actor: mean action of a Gaussian whose standard deviation depends on the task alone.

    The deviation is kept as a logarithm, so it is never negative, and inside bounds, so it neither dies nor
    explodes: a task that is learned may explore little while a neighbour still explores much.

    Args:
        width: number of values in an observation.
        num_tasks: rows of the task library.
        num_actions: number of joints.
        hidden: widths of the hidden layers.
        initial_std: standard deviation at the start, in action units.
    """

    STD_BOUNDS = (0.02, 2.0)

    def __init__(
        self,
        width: int,
        num_tasks: int,
        num_actions: int = 14,
        hidden: Sequence[int] = (128, 128, 128),
        initial_std: float = 1.0,
    ) -> None:
        # A small last layer starts every joint near STAND.
        super().__init__(width, num_tasks, num_actions, hidden, output_gain=0.01)
        self.log_std = nn.Parameter(torch.full((num_tasks, num_actions), initial_std).log())
        self._most_std = self.STD_BOUNDS[1]

    def limit_std(self, most: float) -> None:
        """Let no action deviate by more than `most` from now on, whatever was learned."""
        self._most_std = min(max(most, self.STD_BOUNDS[0]), self.STD_BOUNDS[1])

    @torch.no_grad()
    def spread(self, task_id: int) -> None:
        """Let every task go on from where one is, in what it explores as well."""
        super().spread(task_id)
        self.log_std.copy_(self.log_std[task_id].clone().expand_as(self.log_std))

    def std(self, task_id: Tensor) -> Tensor:
        """Return the standard deviations of the actions of tasks (..., 1), (..., 14)."""
        return self.log_std[task_id.squeeze(-1)].exp().clamp(self.STD_BOUNDS[0], self._most_std)
