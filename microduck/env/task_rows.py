"""The task rows of a batch as plain tensors: gathering tensorclass rows with their names is slow."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from hardware import contract
from hardware.errors import RewardError, TaskError
from microduck.env.measure import ALL, Rows
from microduck.rewards import Features, RewardRegistry
from microduck.tasks import MicroDuckTask, command_box
from microduck.tasks.shares import Weights, shares

_FIELDS = (
    "warm_start_velocity",
    "warm_start_fraction",
    "joint_reset_noise_scale",
    "gait_frequency_hz",
    "gait_frequency_per_mps",
    "command_resample_interval",
    "command_zero_fraction",
)


class TaskRows:
    """The library, and the row that each duck holds.

    Args:
        library: validated rows, (num_tasks,).
        registry: the terms its weights belong to.
        num_envs: number of ducks.
        device: where the tensors live.

    Attributes:
        terms: names of the terms that some row weighs; the others are never computed.
        columns: their places in the registry.
        low: lower corner of each task's command box, (num_tasks, 3).
        high: upper corner, (num_tasks, 3).
        resamples: whether some task has commands drawn within an episode.
        draws_zeros: whether some task draws commands of exactly zero on purpose.
        shares: probability that a reset draws each task, (num_tasks,).
        held: the row of each duck: fields, reward parameters, and `weights` (num_envs, terms), those of
            terms paid per second multiplied by the control period.
    """

    def __init__(
        self, library: MicroDuckTask, registry: RewardRegistry, num_envs: int, device: torch.device
    ) -> None:
        self._registry = registry
        used = (library.reward_weights != 0).any(0).tolist()
        names = list(registry)
        self.columns = [column for column, weighed in enumerate(used) if weighed]
        self.terms = [names[column] for column in self.columns]
        seconds = [contract.CONTROL_PERIOD_S if registry[name].per_second else 1.0 for name in self.terms]
        weights = library.reward_weights[:, self.columns] * torch.tensor(seconds)
        numbers = {name: getattr(library, name) for name in _FIELDS}
        table = {"weights": weights, **numbers, **dict(library.params.items())}
        self._table = {name: column.to(device, copy=True) for name, column in table.items()}
        self.low, self.high = (corner.to(device) for corner in command_box(library))
        self.resamples = bool(library.command_resample_interval.any())
        self.draws_zeros = bool(library.command_zero_fraction.any())
        self._names = library.names
        self.set_shares(library.weight)
        first = torch.zeros(num_envs, dtype=torch.int64, device=device)
        self.held = self.of(first)

    def set_shares(self, weights: Weights) -> None:
        """Let resets draw the tasks by other weights from now on.

        Raises:
            TaskError: they are not valid or do not fit the library.
        """
        new = shares(weights, self._names)
        if len(new) != len(self._names):
            raise TaskError(f"{len(new)} weights were given for {len(self._names)} tasks; give one for each")
        self.shares = new.to(self.low.device)

    def weighted(self, features: Features, rows: Rows = ALL) -> Tensor:
        """Return what each term in use adds to the reward of some ducks, (k, terms).

        Raises:
            TaskError: a term asks for a feature that does not exist, or returns another shape than (k,).
            RewardError: what a term adds is not finite.
        """
        if not self.terms:  # rows that leave the reward to a transform
            return features["upright"].new_zeros(len(features["upright"]), 0)
        held = {name: column[rows] for name, column in self.held.items()}
        columns = [self._value(name, features, held) for name in self.terms]
        weighted = torch.stack(columns, dim=-1) * held["weights"]
        if not bool(torch.isfinite(weighted).all()):
            sound = weighted.isfinite().all(0).tolist()
            bad = [name for name, fine in zip(self.terms, sound, strict=True) if not fine]
            raise RewardError(f"reward terms {bad} returned NaN or infinity; keep their divisors from zero")
        return weighted

    def _value(self, name: str, features: Features, params: Mapping[str, Tensor]) -> Tensor:
        try:
            value = self._registry[name].function(features, params)
        except KeyError as error:
            known = sorted(features.known())
            raise TaskError(f"reward term {name!r} asks for {error}; features are {known}") from error
        count = len(features["upright"])
        if not isinstance(value, Tensor) or value.shape != (count,) or value.is_complex():
            found = f"shape {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
            raise TaskError(
                f"reward term {name!r} returned {found}; one value per environment, ({count},), is needed"
            )
        return value.float()

    def of(self, task_id: Tensor, *names: str) -> dict[str, Tensor]:
        """Return the rows of tasks `task_id` (k,), or some fields of them, each value (k, ...)."""
        return {name: self._table[name][task_id] for name in names or self._table}

    def hand_out(self, ids: Tensor, task_id: Tensor) -> None:
        """Let ducks `ids` (k,) hold the rows of tasks `task_id` (k,)."""
        if len(ids):
            for name, column in self._table.items():
                self.held[name][ids] = column[task_id]
