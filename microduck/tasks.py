"""A task is a row of tensors and a name; a library is a stack of rows.

Fields, defaults and presets follow TorchRL's MicroDuckEnv; the yaw-rate interval is ours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from tensordict import TensorClass, TensorDict
from torch import Tensor

from firmware_bridge.archive import read_archive
from hardware.errors import TaskError
from hardware.files import replacing
from microduck.rewards import COMMAND_THRESHOLD, REWARD_TERMS, reward_params

RESET_NOISE_SCALE = 0.02
"""Default joint noise at reset [rad]."""
GAIT_FREQUENCY_HZ = 1.8913
"""Default frequency of the gait clock at zero command [Hz]."""
POSE_STD_STANDING, POSE_STD_MOVING = 0.1, 0.5
GAIT_TERMS = ("air_time", "swing_height", "phase_contact", "double_support")


class MicroDuckTask(TensorClass):
    """One task, or a library of them when stacked.

    Attributes:
        command_low: lower corner of the command box (vx, vy), (2,) [m/s].
        command_high: upper corner, (2,) [m/s].
        yaw_rate_interval: lowest and highest commanded yaw rate, (2,) [rad/s].
        warm_start_velocity: interval of the base speed of a warm start, (2,) [m/s].
        warm_start_fraction: probability of a warm start, ().
        joint_reset_noise_scale: uniform joint noise at reset, () [rad].
        gait_frequency_hz: clock frequency at zero command, () [Hz].
        gait_frequency_per_mps: frequency added per m/s of planar command, () [Hz s/m].
        reward_weights: one weight per registered term, (num_terms,).
        params: one value per reward parameter, each ().
        weight: relative share when tasks are drawn, ().
        name: label.
    """

    command_low: Tensor
    command_high: Tensor
    yaw_rate_interval: Tensor
    warm_start_velocity: Tensor
    warm_start_fraction: Tensor
    joint_reset_noise_scale: Tensor
    gait_frequency_hz: Tensor
    gait_frequency_per_mps: Tensor
    reward_weights: Tensor
    params: TensorDict
    weight: Tensor
    name: str


_FIELDS = {
    "yaw_rate_interval": (0.0, 0.0),
    "warm_start_velocity": (0.0, 0.0),
    "warm_start_fraction": 0.0,
    "joint_reset_noise_scale": RESET_NOISE_SCALE,
    "gait_frequency_hz": GAIT_FREQUENCY_HZ,
    "gait_frequency_per_mps": 0.0,
}


def make_task(
    command_low: Sequence[float],
    command_high: Sequence[float],
    *,
    name: str,
    weight: float = 1.0,
    reward_weights: dict[str, float] | None = None,
    **overrides: Any,
) -> MicroDuckTask:
    """Return one row.

    Args:
        command_low: lower corner of the command box (vx, vy) [m/s].
        command_high: upper corner [m/s].
        name: label, not empty.
        weight: relative share when tasks are drawn.
        reward_weights: weights that differ from the registered defaults, by term.
        overrides: reset and clock fields or reward parameters that differ from their defaults, by name.

    Raises:
        TaskError: an unknown name, or a value that `validate` refuses.
    """
    params, fields = reward_params(), dict(_FIELDS)
    for key, value in overrides.items():
        if key not in params and key not in fields:
            raise TaskError(f"{key!r} is no task field; choose one of {sorted([*fields, *params])}")
        (params if key in params else fields)[key] = value
    weights = {term: entry.weight for term, entry in REWARD_TERMS.items()}
    for term, value in (reward_weights or {}).items():
        if term not in weights:
            raise TaskError(f"{term!r} is no reward term; choose one of {sorted(weights)}")
        weights[term] = value
    numbers = {"command_low": command_low, "command_high": command_high, **fields, "weight": weight}
    task = MicroDuckTask(
        **{key: _tensor(key, value) for key, value in numbers.items()},
        reward_weights=_tensor("reward_weights", list(weights.values())),
        params=TensorDict({key: _tensor(key, value) for key, value in params.items()}),
        name=name,
        batch_size=[],
    )
    validate(_stack([task]))
    return task


def _tensor(name: str, value: Any) -> Tensor:
    try:
        return torch.as_tensor(value, dtype=torch.float32)
    except (TypeError, ValueError) as error:
        raise TaskError(f"{name} must be a number or a pair of numbers, not {value!r}") from error


def tracking_task(speed: float = 0.03, *, weight: float = 1.0, **overrides: Any) -> MicroDuckTask:
    """Return a row that walks forward at one speed [m/s]; within 0.01 m/s of zero it is the standing row."""
    if abs(speed) <= COMMAND_THRESHOLD:
        return standing_task(weight=weight, **overrides)
    preset = {"name": f"tracking{speed:+.2f}", "pose_std": POSE_STD_MOVING}
    return make_task((speed, 0.0), (speed, 0.0), weight=weight, **{**preset, **overrides})


def standing_task(*, weight: float = 1.0, **overrides: Any) -> MicroDuckTask:
    """Return a row that stands still, without the gait terms."""
    preset = {"name": "standing", "pose_std": POSE_STD_STANDING}
    weights = {**dict.fromkeys(GAIT_TERMS, 0.0), **(overrides.pop("reward_weights", None) or {})}
    return make_task((0.0, 0.0), (0.0, 0.0), weight=weight, reward_weights=weights, **{**preset, **overrides})


def speed_range_task(
    low: float = 0.1, high: float = 0.3, *, weight: float = 1.0, **overrides: Any
) -> MicroDuckTask:
    """Return a row that walks forward at any speed of an interval [m/s]; its clock quickens with it."""
    preset = {
        "name": f"speed_range{low:+.2f}..{high:+.2f}",
        "pose_std": POSE_STD_MOVING,
        "gait_frequency_hz": 1.0,
        "gait_frequency_per_mps": 5.0,
    }
    return make_task((low, 0.0), (high, 0.0), weight=weight, **{**preset, **overrides})


def stack_tasks(tasks: Sequence[MicroDuckTask] | MicroDuckTask | None = None) -> MicroDuckTask:
    """Return a validated library, (num_tasks,).

    Args:
        tasks: a row, rows, a library, or None for the default tracking row.

    Raises:
        TaskError: not rows, none at all, or a value that `validate` refuses.
    """
    if tasks is None:
        tasks = [tracking_task()]
    if isinstance(tasks, MicroDuckTask):
        library = tasks if tasks.batch_size else _stack([tasks])
    else:
        library = _stack(list(tasks))
    validate(library)
    return library


def _stack(rows: list[MicroDuckTask]) -> MicroDuckTask:
    if not rows or not all(isinstance(row, MicroDuckTask) for row in rows):
        raise TaskError(f"a library needs one or more MicroDuckTask rows, not {rows!r}")
    library: Any = torch.stack(rows)  # type: ignore[arg-type]  # tensorclass rows stack like tensors
    return library


def validate(library: MicroDuckTask) -> None:
    """Refuse a library that no environment could run.

    Raises:
        TaskError: names the row, the field, its value and what is valid.
    """
    if len(library.batch_size) != 1:
        raise TaskError(f"a library has one batch dimension, not {len(library.batch_size)}; stack the rows")
    names = list(library.name)
    if any(not isinstance(name, str) or not name for name in names):
        raise TaskError(f"every task needs a name that is not empty; got {names}")
    _check_shapes(library)
    for row, name in zip(library.unbind(0), names, strict=True):
        _check_row(row, name)
    if float(library.weight.sum()) <= 0:
        raise TaskError(f"every weight is zero ({names}); at least one task must be drawn")


def _check_shapes(library: MicroDuckTask) -> None:
    count, terms = library.batch_size[0], list(REWARD_TERMS)
    if library.reward_weights.shape != (count, len(terms)):
        raise TaskError(
            f"reward_weights is {tuple(library.reward_weights.shape)}; {count} rows of the {len(terms)} "
            f"registered terms need {(count, len(terms))}: {terms}"
        )
    missing = sorted(reward_params().keys() - set(library.params.keys()))
    if missing:
        raise TaskError(f"params lack {missing}; make the rows with make_task")
    for name in ("command_low", "command_high", "yaw_rate_interval", "warm_start_velocity"):
        shape = tuple(getattr(library, name).shape)
        if shape != (count, 2):
            raise TaskError(f"{name} must hold two values per row; its shape is {shape}")


def _check_row(row: MicroDuckTask, name: str) -> None:
    for key, value in (*_numbers(row), *row.params.items()):
        if not bool(torch.isfinite(value).all()):
            raise TaskError(f"{key} of task {name!r} is {value.tolist()}; it must be finite")
    intervals: dict[str, Any] = {
        "command": (row.command_low, row.command_high),
        "yaw_rate_interval": row.yaw_rate_interval,
        "warm_start_velocity": row.warm_start_velocity,
    }
    for key, (low, high) in intervals.items():
        if bool((low > high).any()):
            ends = f"low {low.tolist()} above high {high.tolist()}"
            raise TaskError(f"{key} of task {name!r} has {ends}; swap them")
    bounds = {
        "warm_start_velocity": (0.0, math.inf),
        "warm_start_fraction": (0.0, 1.0),
        "joint_reset_noise_scale": (0.0, math.inf),
        "gait_frequency_per_mps": (0.0, math.inf),
        "weight": (0.0, math.inf),
        "gait_frequency_hz": (1e-6, math.inf),
    }
    for key, (least, most) in bounds.items():
        value = getattr(row, key)
        if bool((value < least).any()) or bool((value > most).any()):
            valid = "above 0" if least == 1e-6 else f"in [{least:g}, {most:g}]"
            raise TaskError(f"{key} of task {name!r} is {value.tolist()}; it must be {valid}")


def _numbers(row: MicroDuckTask) -> list[tuple[str, Tensor]]:
    names = ("command_low", "command_high", *_FIELDS, "reward_weights", "weight")
    return [(name, getattr(row, name)) for name in names]


def command_box(library: MicroDuckTask) -> tuple[Tensor, Tensor]:
    """Return the corners of every row's command box (vx, vy, yaw rate), (num_tasks, 3) each."""
    low = torch.cat([library.command_low, library.yaw_rate_interval[..., :1]], dim=-1)
    high = torch.cat([library.command_high, library.yaw_rate_interval[..., 1:]], dim=-1)
    return low, high


def save_library(tasks: Sequence[MicroDuckTask] | MicroDuckTask, path: str | Path) -> None:
    """Write a library or rows to one `.tdz` file; an older file stays until the new one is whole."""
    library = stack_tasks(tasks)
    with replacing(Path(path)) as temporary:
        library.save(temporary)


def load_library(path: str | Path) -> MicroDuckTask:
    """Read a library.

    Raises:
        ArchiveError: the file is damaged, holds a pickle or reaches outside itself.
        TaskError: its rows do not fit the registered terms.
    """
    path = Path(path)
    read_archive(path)  # refuses what tensordict would load without a word
    library = MicroDuckTask.load(path)
    validate(library)
    return library
