"""One simulation, stepped by hand, with the face of a batch of one."""

from __future__ import annotations

import mujoco
import torch
from torch import Tensor


class SingleModel:
    """A model and its data as a batch of one: what is written for batches is written for it as well.

    Args:
        model: the model; writes go to it.
        data: its state.
    """

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        self.model, self.data, self.num_envs = model, data, 1
        self.qvel = self.derived("qvel")

    def expand(self, name: str) -> Tensor:
        """Return the live values of model field `name`, (1, ...)."""
        return torch.from_numpy(getattr(self.model, name)).unsqueeze(0)

    def expanded(self, name: str) -> bool:
        """Return True: there is no other simulation to share a field with."""
        return True

    def derived(self, name: str) -> Tensor:
        """Return the live values of a field of the data, (1, ...)."""
        return torch.from_numpy(getattr(self.data, name)).unsqueeze(0)

    def set_constants(self, ids: Tensor) -> None:
        """Compute anew what the model derives from masses, inertias and positions."""
        mujoco.mj_setConst(self.model, mujoco.MjData(self.model))
