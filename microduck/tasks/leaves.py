"""The leaves of a library's archive, taken out by name with their type and shape checked."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from hardware.errors import ArchiveError
from microduck.tasks.task import ROW_SHAPES

# TorchRL's rows have none of these.
_OPTIONAL = {"yaw_rate_interval", "command_resample_interval", "command_zero_fraction", "reward_terms"}
_FIELDS = {*ROW_SHAPES, "reward_weights", "params", "name", "reward_terms"}


class Leaves:
    """What an archive of a library, or of a single row, holds.

    Args:
        tree: the content as `firmware_bridge.skills.archive` returns it.

    Attributes:
        names: the tasks' names.

    Raises:
        ArchiveError: it lacks a field of a task, or holds something else.
    """

    def __init__(self, tree: dict[str, Any]) -> None:
        lacking, strange = _FIELDS - _OPTIONAL - tree.keys(), tree.keys() - _FIELDS
        if lacking or strange:
            raise ArchiveError(
                f"the leaves {sorted(lacking)} are missing and {sorted(strange)} are no fields of a task; "
                "save the library again"
            )
        self._tree, self._single = tree, isinstance(tree["name"], str)
        self.names: list[str] = [tree["name"]] if self._single else tree["name"]
        if not isinstance(self.names, list) or not self.names:
            raise ArchiveError("leaf 'name' holds no names; save the library again")

    def terms(self) -> list[str]:
        """Return the names of every row's reward terms as the row states them, empty where it does not."""
        value = self._tree.get("reward_terms", [""] * len(self.names))
        texts = [value] if isinstance(value, str) else value
        if not isinstance(texts, list) or len(texts) != len(self.names):
            raise ArchiveError(
                "leaf 'reward_terms' does not hold one text for each task; save the library again"
            )
        return texts

    def fields(self) -> dict[str, Tensor]:
        """Return the numeric fields that the archive has, (num_tasks, ...) each."""
        return {
            field: self._numbers(field, self._tree[field], shape)
            for field, shape in ROW_SHAPES.items()
            if field in self._tree
        }

    def weights(self) -> Tensor:
        """Return the reward weights, (num_tasks, num_terms)."""
        leaf = self._tree["reward_weights"]
        return self._numbers("reward_weights", leaf, getattr(leaf, "shape", ())[-1:])

    def params(self) -> dict[str, Tensor]:
        """Return the reward parameters, (num_tasks,) each."""
        params = self._tree["params"]
        if not isinstance(params, dict):
            raise ArchiveError("leaf 'params' holds no parameters by name; save the library again")
        return {key: self._numbers(f"params/{key}", value, ()) for key, value in params.items()}

    def _numbers(self, leaf: str, value: Any, shape: tuple[int, ...]) -> Tensor:
        wanted = shape if self._single else (len(self.names), *shape)
        is_array = isinstance(value, np.ndarray)
        # Any precision is read: stacking rounds it to float32. Whole numbers are some other file's.
        if not is_array or value.dtype.kind != "f" or value.shape != wanted:
            found = f"{value.dtype} of shape {value.shape}" if is_array else type(value).__name__
            raise ArchiveError(f"leaf {leaf!r} is {found}; it must hold floating-point numbers, {wanted}")
        return torch.from_numpy(value.copy()).reshape(len(self.names), *shape)
