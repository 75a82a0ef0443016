"""Stacking: rows become a library whose weights and parameters are those of one reward registry."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import torch
from tensordict import NonTensorStack, TensorDict, is_tensor_collection
from torch import Tensor

from hardware.errors import TaskError, TaskTypeError, TermNotRegisteredError
from microduck.rewards import REWARD_TERMS, RewardRegistry
from microduck.tasks.presets import tracking_task
from microduck.tasks.task import ROW_SHAPES, MicroDuckTask
from microduck.tasks.validation import (
    check_registry,
    check_structure,
    check_together,
    check_values,
    terms_of,
)

_log = logging.getLogger(__name__)


def stack_tasks(
    tasks: MicroDuckTask | Iterable[MicroDuckTask] | None = None, *, registry: RewardRegistry = REWARD_TERMS
) -> MicroDuckTask:
    """Return a validated library, (num_tasks,), that shares no memory with what was passed.

    Rows that name their reward terms are fitted to the registry: weights take its order, terms that a row
    does not have weigh zero, and their parameters take their defaults. Terms that are not registered are
    dropped if they weigh zero.

    Args:
        tasks: a row, a library, or several of these; None for the default tracking row.
        registry: the reward terms.

    Raises:
        TaskTypeError: something else was passed, or nothing.
        TaskError: a row is not valid, or weighs a term that is not registered.
    """
    check_registry(registry)
    rows = _rows([tracking_task(registry=registry)] if tasks is None else tasks)
    for row in rows:
        check_structure(row, registry)
    library = _fit(rows, registry)
    check_values(library, registry)
    check_together(library)
    return library


def _rows(tasks: Any) -> list[MicroDuckTask]:
    """Return single rows; what is neither row nor library is refused."""
    if isinstance(tasks, MicroDuckTask):
        if len(tasks.batch_size) > 1:
            shape = tuple(tasks.batch_size)
            raise TaskError(f"a library has one batch dimension, not the batch shape {shape}; flatten it")
        return list(tasks.unbind(0)) if tasks.batch_size else [tasks]
    # A TensorDict, or the row of another library, is iterable as well, but not over rows.
    items = list(tasks) if isinstance(tasks, Iterable) and not is_tensor_collection(tasks) else [tasks]
    wrong = [item for item in items if not isinstance(item, MicroDuckTask)]
    if wrong or not items:
        kind = type(wrong[0]) if wrong else None
        found = f"{kind.__module__}.{kind.__name__} {wrong[0]!r:.80}" if kind else "nothing"
        raise TaskTypeError(
            f"a library is made of one or more MicroDuckTask rows, not of {found}; make rows with the "
            "presets or make_task of this toolkit, or read an archive with load_library"
        )
    return [row for item in items for row in _rows(item)]


@dataclass(frozen=True)
class _Fitted:
    """The weights and parameters of a row in the registry's order, and what that took.

    Attributes:
        weights: one weight per registered term, (num_terms,).
        params: the registered parameters, each ().
        absent: registered terms that the row does not have.
        dropped: terms of the row that are not registered.
    """

    weights: Tensor
    params: dict[str, Tensor]
    absent: list[str]
    dropped: list[str]


def _fit(rows: Sequence[MicroDuckTask], registry: RewardRegistry) -> MicroDuckTask:
    fitted = [_fit_row(row, registry) for row in rows]
    _tell("reward terms %s are new to tasks %s, where they weigh zero", rows, [row.absent for row in fitted])
    _tell(
        "reward terms %s of tasks %s are not registered; dropped, as they weigh zero",
        rows,
        [row.dropped for row in fitted],
    )
    count, device = len(rows), rows[0].weight.device
    params = {key: _column([row.params[key] for row in fitted], device) for key in registry.params}
    return MicroDuckTask(
        **{field: _column([getattr(row, field) for row in rows], device) for field in ROW_SHAPES},
        reward_weights=_column([row.weights for row in fitted], device),
        params=TensorDict(params, batch_size=[count]),
        name=NonTensorStack(*(row.name for row in rows)),
        reward_terms=NonTensorStack(*[",".join(registry)] * count),
        batch_size=[count],
    )


def _column(values: list[Tensor], device: torch.device) -> Tensor:
    return torch.stack([value.detach().to(device, torch.float32) for value in values])


def _fit_row(row: MicroDuckTask, registry: RewardRegistry) -> _Fitted:
    weights = dict(zip(terms_of(row, registry), row.reward_weights, strict=True))
    absent = [term for term in registry if term not in weights]
    dropped = [term for term in weights if term not in registry]
    for term in dropped:
        if weights[term] != 0:
            near = get_close_matches(term, registry)
            hint = f" (near it are {near})" if near else ""
            raise TermNotRegisteredError(
                f"reward term {term!r}, which task {row.name!r} weighs {float(weights[term]):g}, is not "
                f"registered{hint}: call register_reward({term!r}) first, "
                "in the same script, or weigh it zero"
            )
    zero = row.reward_weights.new_zeros(())
    ordered = torch.stack([weights.get(term, zero) for term in registry])
    return _Fitted(ordered, _fit_params(row, registry, absent, dropped), absent, dropped)


def _fit_params(
    row: MicroDuckTask, registry: RewardRegistry, absent: list[str], dropped: list[str]
) -> dict[str, Tensor]:
    given, defaults = dict(row.params.items()), registry.params
    unknown = sorted(given.keys() - defaults.keys())
    if unknown and not dropped:  # else they belong to the terms that are dropped
        raise TaskError(
            f"params of task {row.name!r} hold {unknown}, which no registered term reads; "
            f"registered are {sorted(defaults)}"
        )
    new = {param for term in absent for param in registry[term].params}
    lacking = sorted(defaults.keys() - given.keys() - new)
    if lacking:
        raise TaskError(f"params of task {row.name!r} lack {lacking}; make the row with make_task")
    return {key: given.get(key, torch.tensor(default)) for key, default in defaults.items()}


def _tell(note: str, rows: Sequence[MicroDuckTask], terms: Sequence[list[str]]) -> None:
    """Log once which terms were not the same, and in which rows."""
    found = list(dict.fromkeys(term for row in terms for term in row))
    if found:
        _log.info(note, found, [row.name for row, some in zip(rows, terms, strict=True) if some])
