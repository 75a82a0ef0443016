"""What a user may say of tasks, by number or by name, as tensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import torch
from torch import Tensor

from hardware.errors import TaskError, TaskNameError

Weights: TypeAlias = Mapping[str, float] | Sequence[float] | Tensor
"""Relative shares: one per task in the library's order, or by name, where absent names weigh nothing."""
TaskIds: TypeAlias = Sequence[int | str] | Tensor
"""Places in the library, or names."""


def shares(weights: Weights, names: Sequence[str]) -> Tensor:
    """Return what each weight is of their sum, (num_tasks,).

    Args:
        weights: see `Weights`.
        names: names of the library; only needed for weights by name.

    Raises:
        TaskError: they are no numbers, or `check_weights` refuses them.
        TaskNameError: the library has no task of that name.
    """
    if isinstance(weights, Mapping):
        _check_names(weights, names)
        weights = [weights.get(name, 0.0) for name in names]
    try:
        tensor = torch.as_tensor(weights, dtype=torch.float32).reshape(-1)
    except (TypeError, ValueError, RuntimeError) as error:  # torch raises any of them
        raise TaskError(f"weights must be numbers, one per task, not {weights!r}") from error
    check_weights(tensor)
    return tensor / tensor.sum()


def by_success(share: Tensor, success: Tensor, floor: float) -> Tensor:
    """Return shares that raise those of the tasks that lag, (num_tasks,).

    They are

        floor * share + (1 - floor) * share * (1 - success) / sum of share * (1 - success) over all tasks

    Args:
        share: of each task without regard to success, (num_tasks,).
        success: of each task, (num_tasks,) in [0, 1].
        floor: part of its share that a task keeps whatever its success, in [0, 1].
    """
    lag = share * (1 - success)
    wanted = lag / lag.sum() if bool(lag.sum() > 0) else share
    return floor * share + (1 - floor) * wanted


def check_weights(weights: Tensor) -> None:
    """Refuse weights that nothing can be drawn by.

    Raises:
        TaskError: one is negative or not finite, or all are zero.
    """
    if not (bool((weights >= 0).all()) and 0 < float(weights.sum()) < torch.inf):
        raise TaskError(f"weights are {weights.tolist()}; they must be finite, 0 or more, and not all 0")


def places(task_ids: TaskIds, names: Sequence[str]) -> Tensor:
    """Return the place in the library of each task, (k,) int64.

    Args:
        task_ids: see `TaskIds`.
        names: names of the library; only needed for tasks by name.

    Raises:
        TaskError: there is none, or one is negative, no whole number and no name.
        TaskNameError: the library has no task of that name.
    """
    _check_names((entry for entry in task_ids if isinstance(entry, str)), names)
    numbers = [names.index(entry) if isinstance(entry, str) else entry for entry in task_ids]
    try:
        tensor = torch.as_tensor(numbers).reshape(-1)
    except (TypeError, ValueError, RuntimeError) as error:  # torch raises any of them
        raise TaskError(f"task_ids must be whole numbers or names, not {task_ids!r}") from error
    if not len(tensor) or tensor.dtype not in (torch.int64, torch.int32) or bool((tensor < 0).any()):
        raise TaskError(f"task_ids are {tensor.tolist()}; give whole numbers of 0 or more, or names")
    return tensor.to(torch.int64)


def _check_names(wanted: Iterable[str], names: Sequence[str]) -> None:
    unknown = [name for name in wanted if name not in names]
    if unknown:
        raise TaskNameError(f"the library has no task {unknown[0]!r}; choose from {list(names)}")
