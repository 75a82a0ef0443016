"""The processes that train together: one process alone, or those that torchrun started.

Every process steps its own ducks; gradients, observation statistics and divergences are averaged, so that all
of them hold the same networks at any time. Tensors on the CPU travel by gloo, those on CUDA by nccl.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, distributed
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from microduck.physics.threads import usable_cpus


@dataclass(frozen=True)
class Ranks:
    """This process among those that train together; the default is one alone, which changes nothing.

    All methods that exchange something must be called by every process, in the same order.

    Attributes:
        rank: number of this process, from 0; only 0 writes files.
        count: number of processes.
        neighbours: how many of them run on this machine, and share its CPUs.
    """

    rank: int = 0
    count: int = 1
    neighbours: int = 1

    @property
    def first(self) -> bool:
        """Whether this is the process that decides and writes."""
        return self.rank == 0

    @property
    def cpus(self) -> int:
        """CPUs for this process, at least 1: its part of those that the machine lets it use."""
        return max(1, usable_cpus() // self.neighbours)

    def average_gradients(self, parameters: Iterable[Tensor]) -> None:
        """Replace the gradients of parameters by their means over all processes, in one exchange."""
        gradients = [value.grad for value in parameters if value.grad is not None]
        if self.count == 1 or not gradients:
            return
        vector_to_parameters(self.mean(parameters_to_vector(gradients)), gradients)

    def sum(self, value: Tensor) -> Tensor:
        """Return the sum over all processes of a tensor that has the same shape in each."""
        if self.count == 1:
            return value
        total = value.detach().clone()
        distributed.all_reduce(total)
        return total

    def mean(self, value: Tensor) -> Tensor:
        """Return the mean over all processes of a tensor that has the same shape in each."""
        return value if self.count == 1 else self.sum(value) / self.count

    def moments(self, rows: Tensor) -> tuple[int, Tensor, Tensor]:
        """Return count, mean (width,) and variance (width,) of rows (..., width) over all processes.

        Each process must bring equally many rows. The variance is that of the population.
        """
        rows = rows.reshape(-1, rows.shape[-1])
        local = rows.mean(0)
        mean = self.mean(local)
        # The mean of the variances, and the variance of the means: no difference of large squares.
        variance = self.mean(rows.var(0, correction=0) + (local - mean).square())
        return self.count * rows.shape[0], mean, variance

    def agree(self, flag: bool) -> bool:
        """Return, in every process alike, whether any of them says so."""
        return float(self.sum(torch.tensor(float(flag)))) > 0

    def from_first(self, value: float) -> float:
        """Return the number that process 0 has, in every process alike."""
        return float(self.sum(torch.tensor(value if self.first else 0.0, dtype=torch.float64)))


ALONE = Ranks()
"""One process."""


@contextmanager
def joined() -> Iterator[Ranks]:
    """Give this process its place among those that torchrun started; without torchrun it is alone."""
    if not distributed.is_torchelastic_launched():
        yield ALONE
        return
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    distributed.init_process_group()
    ranks = Ranks(distributed.get_rank(), distributed.get_world_size(), int(os.environ["LOCAL_WORLD_SIZE"]))
    # Torchrun sets one thread for each process, however many CPUs there are.
    torch.set_num_threads(ranks.cpus)
    try:
        yield ranks
    finally:
        distributed.destroy_process_group()
