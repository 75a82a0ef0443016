"""The rules that task rows obey; each message names the task, the field, its value and what is valid."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from tensordict import is_tensor_collection
from torch import Tensor

from firmware_bridge.skills.manifest import MAX_COMMAND, MAX_GAIT_HZ, MAX_SKILLS
from hardware.contract import CONTROL_PERIOD_S
from hardware.errors import TaskError
from microduck.rewards import REWARD_TERMS, RewardRegistry
from microduck.tasks.task import ROW_SHAPES, MicroDuckTask, command_box

MAX_NAME = 64
"""Most characters of a task's name: those of a skill in a bundle's manifest."""


@dataclass(frozen=True)
class Bound:
    """An interval that values must lie in.

    Attributes:
        low: least value.
        high: greatest value.
        unit: unit of both.
        above: whether values must be above `low`, not at it.
    """

    low: float
    high: float
    unit: str = ""
    above: bool = False

    def allows(self, value: Tensor) -> Tensor:
        """Return which rows of `value` (num_tasks, ...) lie inside, (num_tasks,)."""
        over = value > self.low if self.above else value >= self.low
        return _whole_rows(over & (value <= self.high))

    def __str__(self) -> str:
        ends = f"{self.low:g}, {self.high:g}{')' if math.isinf(self.high) else ']'}"
        return f"{'(' if self.above else '['}{ends} {self.unit}".rstrip()


BOUNDS: Mapping[str, Bound] = {
    # A bundle's manifest takes no greater command or clock, and a skill is trained to be exported.
    "command_low": Bound(-MAX_COMMAND, MAX_COMMAND, "m/s"),
    "command_high": Bound(-MAX_COMMAND, MAX_COMMAND, "m/s"),
    "yaw_rate_interval": Bound(-MAX_COMMAND, MAX_COMMAND, "rad/s"),
    "gait_frequency_hz": Bound(0.0, MAX_GAIT_HZ, "Hz", above=True),
    "gait_frequency_per_mps": Bound(0.0, MAX_GAIT_HZ, "Hz s/m"),
    "warm_start_velocity": Bound(0.0, math.inf, "m/s"),
    "warm_start_fraction": Bound(0.0, 1.0),
    "joint_reset_noise_scale": Bound(0.0, math.inf, "rad"),
    "command_resample_interval": Bound(0.0, math.inf, "s"),
    "command_zero_fraction": Bound(0.0, 1.0),
    "weight": Bound(0.0, math.inf),
}
"""Valid values of the numeric fields."""


def validate(library: MicroDuckTask, *, registry: RewardRegistry = REWARD_TERMS) -> None:
    """Refuse a library that no environment could run as it is; `stack_tasks` also fits it to the registry.

    Args:
        library: rows, (num_tasks,).
        registry: the terms that its weights must belong to, in this order.

    Raises:
        TaskError: names the task, the field, its value and what is valid.
    """
    check_registry(registry)
    if len(library.batch_size) != 1:
        raise TaskError(
            f"a library has one batch dimension, not the batch shape {tuple(library.batch_size)}; "
            "stack the rows with stack_tasks"
        )
    for row in library.unbind(0):
        check_structure(row, registry)
        if terms_of(row, registry) != list(registry) or set(row.params.keys()) != set(registry.params):
            raise TaskError(
                f"reward_weights and params of task {row.name!r} are those of {terms_of(row, registry)}; "
                f"fit them to the registered terms, {list(registry)}, with stack_tasks"
            )
    check_values(library, registry)
    check_together(library)


def terms_of(row: MicroDuckTask, registry: RewardRegistry) -> list[str]:
    """Return the names of the terms that a row's weights belong to: its own, or else the registered ones."""
    return row.reward_terms.split(",") if row.reward_terms else list(registry)


def check_registry(registry: RewardRegistry) -> None:
    """Refuse a registry without terms, or with a parameter that overrides could not tell from a field."""
    if not registry:
        raise TaskError("the registry has no reward terms; register one, or leave registry= out")
    taken = {*ROW_SHAPES, "reward_weights", "params", "name", "reward_terms", "registry"}
    for term, entry in registry.items():
        for param in entry.params.keys() & taken:
            raise TaskError(
                f"parameter {param!r} of reward term {term!r} has the name of a task's field; "
                f"register it under another name than {sorted(taken)}"
            )


def check_structure(row: MicroDuckTask, registry: RewardRegistry) -> None:
    """Refuse a single row with a field of another type or shape than it must have."""
    name = row.name
    if not isinstance(name, str) or not (0 < len(name) <= MAX_NAME and name.isprintable()):
        raise TaskError(f"a task is named {name!r}; a name has 1 to {MAX_NAME} printable characters")
    for field, shape in ROW_SHAPES.items():
        _check_number(f"{field} of task {name!r}", getattr(row, field), shape)
    if not isinstance(row.reward_terms, str):
        raise TaskError(f"reward_terms of task {name!r} is {row.reward_terms!r}; it must be names and commas")
    terms = terms_of(row, registry)
    if len(set(terms)) != len(terms):
        raise TaskError(f"reward_terms of task {name!r} has a name twice: {terms}; name each term once")
    whose = "" if row.reward_terms else "registered "
    _check_number(
        f"reward_weights of task {name!r}",
        row.reward_weights,
        (len(terms),),
        f", one for each of the {whose}terms {terms}",
    )
    if not is_tensor_collection(row.params):
        raise TaskError(f"params of task {name!r} is a {type(row.params).__name__}; it must be a TensorDict")
    for param, value in row.params.items():
        _check_number(f"{param} of task {name!r}", value, ())


def _check_number(what: str, value: Any, shape: tuple[int, ...], why: str = "") -> None:
    if not isinstance(value, Tensor) or value.is_complex() or value.dtype == torch.bool:
        kind = value.dtype if isinstance(value, Tensor) else type(value).__name__
        raise TaskError(f"{what} is of type {kind}; it must be a tensor of real numbers")
    if tuple(value.shape) != shape:
        raise TaskError(f"{what} has the shape {tuple(value.shape)}; it must be {shape}{why}")


def check_values(library: MicroDuckTask, registry: RewardRegistry) -> None:
    """Refuse rows of the right structure with a number that is not valid."""
    weights = zip(registry, library.reward_weights.unbind(-1), strict=True)
    numbers = {
        **{field: getattr(library, field) for field in ROW_SHAPES},
        **{f"reward weight {term!r}": column for term, column in weights},
        **dict(library.params.items()),
    }
    for field, value in numbers.items():
        _refuse(library, field, value, value.isfinite(), "finite")
    for field in ("yaw_rate_interval", "warm_start_velocity", "command_resample_interval"):
        value = getattr(library, field)
        _refuse(library, field, value, value[:, 0] <= value[:, 1], "(low, high) with low <= high")
    for field, bound in BOUNDS.items():
        value = getattr(library, field)
        _refuse(library, field, value, bound.allows(value), f"in {bound}")
    _check_box(library)
    _check_zero(library)
    interval = library.command_resample_interval
    rare = (interval == 0).all(-1) | (interval[:, 0] >= CONTROL_PERIOD_S)
    wanted = f"(0, 0) for never, or at least the control period, {CONTROL_PERIOD_S:g} s"
    _refuse(library, "command_resample_interval", interval, rare, wanted)


def _check_box(library: MicroDuckTask) -> None:
    low, high = library.command_low, library.command_high
    row = _first((low <= high).all(-1))
    if row is not None:
        raise TaskError(
            f"command_low of task {library.names[row]!r} is {_shown(low[row])}; "
            f"it must not exceed command_high, {_shown(high[row])}"
        )


def _check_zero(library: MicroDuckTask) -> None:
    low, high = command_box(library)
    inside = ((low <= 0) & (high >= 0)).split([2, 1], dim=-1)
    possible = torch.stack([part.all(-1) for part in inside], dim=-1)
    value = library.command_zero_fraction
    wanted = "zero where the command box does not hold zero"
    _refuse(library, "command_zero_fraction", value, possible | (value == 0), wanted)


def _refuse(library: MicroDuckTask, field: str, value: Tensor, good: Tensor, wanted: str) -> None:
    row = _first(_whole_rows(good))
    if row is not None:
        raise TaskError(
            f"{field} of task {library.names[row]!r} is {_shown(value[row])}; it must be {wanted}"
        )


def _whole_rows(good: Tensor) -> Tensor:
    """Return which rows (num_tasks, ...) are good in all they hold, (num_tasks,)."""
    return good.reshape(len(good), -1).all(1)


def _first(good: Tensor) -> int | None:
    """Return the first row that is not good, None where all are."""
    bad = (~good).nonzero()
    return int(bad[0]) if len(bad) else None


def _shown(value: Tensor) -> str:
    """Return numbers as a user would write them, without the digits that float32 adds."""
    texts = [str(np.float32(number)) for number in value.flatten().tolist()]
    return f"({', '.join(texts)})" if value.ndim else texts[0]


def check_together(library: MicroDuckTask) -> None:
    """Refuse rows that are valid one by one and yet make no library."""
    names = library.names
    if len(names) > MAX_SKILLS:
        raise TaskError(f"the library has {len(names)} tasks; a bundle holds at most {MAX_SKILLS}")
    doubled = sorted(name for name, count in Counter(names).items() if count > 1)
    if doubled:
        raise TaskError(f"several tasks are named {doubled}; give each its own with name=")
    if float(library.weight.sum()) <= 0:
        raise TaskError(f"weight is zero in every task of {list(names)}; at least one must be drawn")
