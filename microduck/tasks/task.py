"""A task as data: a row of tensors and a name; a library is a stack of rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from tensordict import TensorClass, TensorDict
from torch import Tensor

from hardware.errors import TaskError, TaskNameError

JOINT_RESET_NOISE = 0.02
"""Default joint noise at reset [rad]."""
GAIT_FREQUENCY_HZ = 1.8913
"""Default frequency of the gait clock at zero command [Hz]."""

ROW_SHAPES: Mapping[str, tuple[int, ...]] = {
    "command_low": (2,),
    "command_high": (2,),
    "warm_start_velocity": (2,),
    "warm_start_fraction": (),
    "joint_reset_noise_scale": (),
    "gait_frequency_hz": (),
    "gait_frequency_per_mps": (),
    "weight": (),
    "yaw_rate_interval": (2,),
    "command_resample_interval": (2,),
    "command_zero_fraction": (2,),
}
"""Shape of each numeric field in one row; `reward_weights` is (num_terms,) and every parameter ()."""

FIELD_DEFAULTS: Mapping[str, Any] = {
    "warm_start_velocity": (0.0, 0.0),
    "warm_start_fraction": 0.0,
    "joint_reset_noise_scale": JOINT_RESET_NOISE,
    "gait_frequency_hz": GAIT_FREQUENCY_HZ,
    "gait_frequency_per_mps": 0.0,
    "yaw_rate_interval": (0.0, 0.0),
    "command_resample_interval": (0.0, 0.0),
    "command_zero_fraction": (0.0, 0.0),
}
"""Reset, clock and command fields that a row may override, with their defaults."""


class MicroDuckTask(TensorClass):
    """One task, or a library of them when stacked.

    The first eleven fields are TorchRL's, in its order; the last four are ours and may be left out. Besides
    what tensors can be indexed with, a library takes names: `library["jump"]`, `"jump" in library`.

    Attributes:
        command_low: lower corner of the command box (vx, vy), (2,) [m/s].
        command_high: upper corner, (2,) [m/s].
        warm_start_velocity: interval of the base speed of a warm start, (2,) [m/s].
        warm_start_fraction: probability of a warm start, ().
        joint_reset_noise_scale: uniform joint noise at reset, () [rad].
        gait_frequency_hz: clock frequency at zero command, () [Hz].
        gait_frequency_per_mps: frequency added per m/s of planar command, () [Hz s/m].
        reward_weights: one weight per reward term, (num_terms,).
        params: one value per reward parameter, each ().
        weight: relative share when tasks are drawn, ().
        name: label.
        yaw_rate_interval: lowest and highest commanded yaw rate, (2,) [rad/s]; zeros when left out.
        command_resample_interval: least and most time between draws of a new command within an episode,
            (2,) [s]; zeros, as when left out, keep the command of the reset.
        command_zero_fraction: probability that a drawn planar command, and a drawn yaw rate, is exactly zero,
            (2,); zeros when left out. What a robot is told most often would otherwise never be drawn.
        reward_terms: names of the terms that the weights belong to, in order, joined by commas; empty, as
            when left out, for the terms of the registry that the row is used with.
    """

    command_low: Tensor
    command_high: Tensor
    warm_start_velocity: Tensor
    warm_start_fraction: Tensor
    joint_reset_noise_scale: Tensor
    gait_frequency_hz: Tensor
    gait_frequency_per_mps: Tensor
    reward_weights: Tensor
    params: TensorDict
    weight: Tensor
    name: str
    yaw_rate_interval: Tensor = None  # type: ignore[assignment]  # left out until __post_init__, never after
    command_resample_interval: Tensor = None  # type: ignore[assignment]
    command_zero_fraction: Tensor = None  # type: ignore[assignment]
    reward_terms: str = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        """Fill in what TorchRL's rows do not have, so that any two rows stack."""
        for field in ("yaw_rate_interval", "command_resample_interval", "command_zero_fraction"):
            if getattr(self, field) is None:
                setattr(self, field, torch.zeros(*self.batch_size, 2, device=self.device))
        if self.reward_terms is None:
            self.reward_terms = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the rows in order; a single row's own name."""
        return tuple(_atoms(self.name))

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __getitem__(self, index: Any) -> MicroDuckTask:
        """Return the row of a name, or what the index selects from a stack of tensors.

        Raises:
            TaskNameError: no row has that name.
            TaskError: a name is looked up in what is no library.
        """
        if not isinstance(index, str):
            return super().__getitem__(index)
        if len(self.batch_size) != 1:
            raise TaskError(
                f"no task can be looked up in rows of batch shape {tuple(self.batch_size)}; stack them into "
                "a library with stack_tasks"
            )
        if index not in self.names:
            raise TaskNameError(f"the library has no task {index!r}; choose one of {list(self.names)}")
        return super().__getitem__(self.names.index(index))


# Archives state a class by its home; this is the one that users know, and that the oldest state.
MicroDuckTask.__module__ = "microduck.tasks"


def _atoms(value: Any) -> Iterator[Any]:
    """Yield what nested lists hold: rows with several batch dimensions have nested names."""
    if not isinstance(value, list):
        yield value
        return
    for item in value:
        yield from _atoms(item)


def command_box(library: MicroDuckTask) -> tuple[Tensor, Tensor]:
    """Return the corners of every row's command box (vx, vy, yaw rate), (num_tasks, 3) each."""
    low = torch.cat([library.command_low, library.yaw_rate_interval[..., :1]], dim=-1)
    high = torch.cat([library.command_high, library.yaw_rate_interval[..., 1:]], dim=-1)
    return low, high
