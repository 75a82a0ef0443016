"""Writing a duck's properties into the model that simulates it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

import mujoco
import numpy as np
import torch
from torch import Tensor

from hardware.contract import HEAD_NAMES
from hardware.errors import ConfigError
from hardware.joints import JOINT_NAMES
from microduck.physics.model_parts import FOOT_GEOMS

FIELDS: Mapping[str, tuple[str, ...]] = {
    "sole_friction": ("geom_friction",),
    "trunk_mass_scale": ("body_mass", "body_inertia"),
    "trunk_com": ("body_ipos",),
    "head_com": ("body_ipos",),
    "armature_scale": ("dof_armature",),
}
"""Fields of the model that a parameter is written to."""
_WORLD = 0
"""Body of the floor."""


class Simulations(Protocol):
    """What holds the models: `Physics`, or a single model in its clothes."""

    model: mujoco.MjModel

    def expand(self, name: str) -> Tensor:
        """Return the live values of a model field for each simulation, (n, ...)."""

    def set_constants(self, ids: Tensor) -> None:
        """Let what MuJoCo derives from masses and inertias follow, in simulations `ids` (k,)."""


class ModelFields:
    """The parts of models that parameters are written to, always starting from the nominal values.

    Args:
        simulations: whose models are written.
        names: parameters that vary; those that are not in `FIELDS` are left to others.

    Raises:
        ConfigError: a parameter would change nothing in this scene.
    """

    def __init__(self, simulations: Simulations, names: Iterable[str]) -> None:
        self._simulations, model = simulations, simulations.model
        self._names = [name for name in FIELDS if name in set(names)]
        self._live = {field: simulations.expand(field) for name in self._names for field in FIELDS[name]}
        self._nominal = {
            field: torch.from_numpy(np.array(getattr(model, field))).to(live)
            for field, live in self._live.items()
        }
        self._trunk = int(model.jnt_bodyid[0])
        self._head = [int(model.joint(name).bodyid[0]) for name in HEAD_NAMES]
        self._joints = [int(model.joint(name).dofadr[0]) for name in JOINT_NAMES]
        self._ground = _ground(model)
        if "sole_friction" in self._names and model.npair:
            raise ConfigError(
                "the scene gives pairs of geoms a friction of their own, which sole_friction cannot change; "
                "leave it out with .without('sole_friction')"
            )

    def write(self, ids: Tensor, values: Mapping[str, Tensor]) -> None:
        """Write the properties of ducks `ids` (k,) into their models.

        Args:
            ids: whose rows are written; all others stay.
            values: properties by name, (k,) or (k, width) each.
        """
        if not self._names:
            return
        fresh = {field: row.expand(len(ids), *row.shape).clone() for field, row in self._nominal.items()}
        for name in self._names:
            self._put(fresh, name, values[name].to(next(iter(fresh.values()))))
        for field, rows in fresh.items():
            self._live[field][ids] = rows
        if set(self._names) - {"sole_friction"}:
            self._simulations.set_constants(ids)

    def _put(self, fresh: dict[str, Tensor], name: str, value: Tensor) -> None:
        """Put a parameter's values (k,) or (k, width) into copies of the nominal fields (k, ...)."""
        if name == "sole_friction":
            # Floor as well: MuJoCo takes the larger friction of the two that touch.
            fresh["geom_friction"][:, self._ground, 0] = value[:, None]
        elif name == "trunk_mass_scale":
            fresh["body_mass"][:, self._trunk] *= value
            fresh["body_inertia"][:, self._trunk] *= value[:, None]
        elif name == "trunk_com":
            fresh["body_ipos"][:, self._trunk] += value
        elif name == "head_com":
            fresh["body_ipos"][:, self._head] += value.unflatten(-1, (len(self._head), 3))
        else:
            fresh["dof_armature"][:, self._joints] *= value[:, None]


def _ground(model: mujoco.MjModel) -> list[int]:
    """Return the geoms of the feet and of the world."""
    bodies = {_WORLD, *(int(model.geom(name).bodyid[0]) for name in FOOT_GEOMS)}
    return [geom for geom in range(model.ngeom) if int(model.geom_bodyid[geom]) in bodies]
