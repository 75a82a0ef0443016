"""What may go wrong in training, and what becomes of it: dropped, undone, or named and ended."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn.utils import get_total_norm

from hardware.errors import TrainingError
from microduck.learning.config import TrainConfig

_log = logging.getLogger(__name__)

MOST_IN_A_ROW = 10
"""So many batches in a row that came to nothing end a run."""
_NO_MEMORY = ("can't allocate memory", "bad_alloc", "out of memory", "not enough memory")
"""What torch and MuJoCo say in errors of other classes when memory runs out."""


class NotFiniteError(TrainingError):
    """An update met a loss or a gradient that is not finite."""


class Faults:
    """Counts batches that were dropped and updates that were undone; too many in a row end the run.

    Args:
        dropped: batches dropped so far.
        undone: updates undone so far.

    Attributes:
        dropped: batches dropped so far.
        undone: updates undone so far.
    """

    def __init__(self, dropped: int = 0, undone: int = 0) -> None:
        self.dropped, self.undone = dropped, undone
        self._in_a_row = 0

    def drop(self, cause: str) -> None:
        """Count a batch that was dropped.

        Raises:
            TrainingError: it was one too many in a row.
        """
        self.dropped += 1
        self._count(f"a batch was dropped: {cause}")

    def undo(self, cause: str) -> None:
        """Count an update that was undone.

        Raises:
            TrainingError: it was one too many in a row.
        """
        self.undone += 1
        self._count(f"an update was undone: {cause}")

    def succeed(self) -> None:
        """Take note of a batch that was learned from."""
        self._in_a_row = 0

    def _count(self, story: str) -> None:
        _log.warning("%s (%d dropped, %d undone so far)", story, self.dropped, self.undone)
        self._in_a_row += 1
        if self._in_a_row >= MOST_IN_A_ROW:
            raise TrainingError(
                f"{MOST_IN_A_ROW} batches in a row came to nothing; the last time {story}. "
                "The run is saved as it was before them: put that right, then microduck resume goes on"
            )


def refuse_bad_steps(optimiser: torch.optim.Optimizer) -> None:
    """Let an optimiser raise NotFiniteError in place of a step along a gradient that is not finite.

    Gradients are looked at when they have been averaged over all processes, so all of them raise, or none.
    """

    def check(optimiser: torch.optim.Optimizer, *arguments: Any) -> None:
        parameters = [value for group in optimiser.param_groups for value in group["params"]]
        norm = get_total_norm([value.grad for value in parameters if value.grad is not None])
        if not bool(norm.isfinite()):
            raise NotFiniteError("a gradient is not finite; look for rewards that are far too large")

    optimiser.register_step_pre_hook(check)


@contextmanager
def all_or_nothing(networks: Sequence[nn.Module], optimiser: torch.optim.Optimizer) -> Iterator[None]:
    """Give networks and optimiser back as they were when the block raises anything, Ctrl-C as well."""
    kept = [deepcopy(holder.state_dict()) for holder in networks]
    kept_optimiser = deepcopy(optimiser.state_dict())
    whole = False
    try:
        yield
        whole = True
    finally:
        if not whole:
            for network, state in zip(networks, kept, strict=True):
                network.load_state_dict(state)
            optimiser.load_state_dict(kept_optimiser)


@contextmanager
def memory_explained(config: TrainConfig) -> Iterator[None]:
    """Say what to lower when the block runs out of memory.

    Raises:
        TrainingError: it did.
    """
    try:
        yield
    except (MemoryError, RuntimeError, ValueError) as error:
        if not (isinstance(error, MemoryError) or any(sign in str(error).lower() for sign in _NO_MEMORY)):
            raise
        size = f"{config.num_envs:,} ducks x {config.steps} steps = {config.num_envs * config.steps:,}"
        raise TrainingError(
            f"out of memory with num_envs x steps = {size} transitions a batch; lower --num-envs, or "
            "--steps. A checkpoint written before is whole: microduck resume takes both options as well"
        ) from error


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Name the file when the block cannot write it.

    Raises:
        TrainingError: it could not.
    """
    try:
        yield
    except OSError as error:
        raise TrainingError(
            f"cannot write {path}: {error.strerror or error}. What was saved before is whole: make room, or "
            "the folder writable, then microduck resume goes on"
        ) from error
