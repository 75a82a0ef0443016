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
    def update(self, observation: Tensor) -> None:
        """Take observations (..., width) into the statistics (parallel-variance formula of Chan et al.)."""
        rows = observation.reshape(-1, observation.shape[-1])
        added, total = rows.shape[0], self.count + rows.shape[0]
        delta = rows.mean(0) - self.mean
        fraction = (added / total).to(self.mean.dtype)
        spread = self.variance * (1 - fraction) + rows.var(0, correction=0) * fraction
        self.variance.copy_(spread + delta.square() * fraction * (1 - fraction))
        self.mean.add_(delta * fraction)
        self.count.copy_(total)

    def forward(self, observation: Tensor) -> Tensor:
        """Return the scaled observation, (..., width)."""
        scaled = (observation - self.mean) / torch.sqrt(self.variance + self.FLOOR)
        return scaled.clamp(-self.CLIP, self.CLIP)


class SkillNetwork(nn.Module):
    """Observation and task id to a vector: normalise, add the task's embedding, ELU layers.

    Args:
        width: number of values in an observation.
        num_tasks: rows of the task library.
        outputs: number of values returned.
        hidden: widths of the hidden layers.
        output_gain: factor on the last layer's initial weights.
    """

    def __init__(
        self, width: int, num_tasks: int, outputs: int, hidden: Sequence[int], output_gain: float = 1.0
    ) -> None:
        super().__init__()
        self.normaliser = Normaliser(width)
        self.first = nn.Linear(width, hidden[0])
        self.task = nn.Embedding(num_tasks, hidden[0])
        nn.init.zeros_(self.task.weight)  # tasks start alike and grow apart
        layers: list[nn.Module] = [nn.ELU(inplace=True)]
        for before, after in pairwise(hidden):
            layers += [nn.Linear(before, after), nn.ELU(inplace=True)]
        last = nn.Linear(hidden[-1], outputs)
        with torch.no_grad():
            last.weight.mul_(output_gain)
            last.bias.zero_()
        self.rest = nn.Sequential(*layers, last)

    def forward(self, observation: Tensor, task_id: Tensor) -> Tensor:
        """Return the outputs for observations (..., width) and task ids (..., 1)."""
        first = self.first(self.normaliser(observation)) + self.task(task_id.squeeze(-1))
        return self.rest(first)


class SkillPolicy(SkillNetwork):
    """The actor: mean action of a Gaussian whose log standard deviation does not depend on the state.

    Args:
        width: number of values in an observation.
        num_tasks: rows of the task library.
        num_actions: number of joints.
        hidden: widths of the hidden layers.
        initial_std: standard deviation at the start, in action units.
    """

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
        self.log_std = nn.Parameter(torch.full((num_actions,), initial_std).log())
