"""Many ducks on MuJoCo's own batch: C threads in one process, one state row per simulation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mujoco
import mujoco.batch
import numpy as np
import torch
from torch import Tensor

from hardware.errors import ConfigError
from microduck.physics.base import MAX_SPEED, STATE
from microduck.physics.model import load_model
from microduck.physics.model_parts import FOOT_SENSORS, FOOT_SITES, HEAD_SITE, SELF_SENSOR, STAND_KEY
from microduck.physics.options import PhysicsOptions
from microduck.physics.servo_model import past_commands
from microduck.physics.xl330_bank import make_servos

_DISABLED = (
    # A diverged simulation must show its NaN and be terminated, not start over unseen.
    mujoco.mjtDisableBit.mjDSBL_AUTORESET,
    # Searching for pairs by parts of a body, and for groups of constraints that can be solved apart, costs a
    # single small robot a tenth of its step and finds nothing: the same bits come out.
    mujoco.mjtDisableBit.mjDSBL_MIDPHASE,
    mujoco.mjtDisableBit.mjDSBL_ISLAND,
)


def native_model(options: PhysicsOptions, scene: Path | None = None) -> mujoco.MjModel:
    """Return the model that the batch steps; see `load_model`."""
    model = load_model(options, scene=scene, only_motion=True)
    for flag in _DISABLED:
        model.opt.disableflags |= flag
    return model


class NativePhysics:
    """A batch of simulations of one model; see `microduck.physics.base.Physics`.

    Args:
        num_envs: number of simulations.
        options: how they are stepped.
        model: what `native_model` gives; None for the built-in duck.
    """

    def __init__(self, num_envs: int, options: PhysicsOptions, model: mujoco.MjModel | None = None) -> None:
        self.num_envs, self.device, self._options = num_envs, torch.device("cpu"), options
        self.model = native_model(options) if model is None else model
        self.substeps = options.substeps_for(self.model.opt.timestep)
        self.batch = mujoco.batch.Batch(self.model, num_envs, options.worker_threads())
        self._bind()
        self.batch.reset(keyframe=self.model.keyframe(STAND_KEY).id, stage=mujoco.mjtStage.mjSTAGE_NONE)
        self._start = {name: field[0].copy() for name, field in self._state.items()}
        self.stand_qpos = torch.from_numpy(self._start["qpos"])
        self._expanded: dict[str, Tensor] = {}
        self._constants_set = False
        self.servos = make_servos(self, options)

    def _bind(self) -> None:
        model, bind = self.model, self.batch.bind
        self.qpos, self.qvel = torch.from_numpy(bind("qpos")), torch.from_numpy(bind("qvel"))
        self._ctrl, self._time = torch.from_numpy(bind("ctrl")), torch.from_numpy(bind("time"))
        self._state = {name: bind(name) for name in STATE}
        self._sensors, self._torques = bind("sensordata"), bind("actuator_force")
        self._contact_columns = [model.sensor(name).adr[0] for name in FOOT_SENSORS]
        self._self_column = model.sensor(SELF_SENSOR).adr[0]
        self._site_position, self._site_rotation = bind("site_xpos"), bind("site_xmat")
        self._feet = [model.site(name).id for name in FOOT_SITES]
        self._head = model.site(HEAD_SITE).id
        self._past = past_commands(model)

    def step(self, targets: Tensor) -> None:
        """Advance one control period with joint targets (num_envs, 14) [rad]."""
        self._ctrl.copy_(targets)
        self.batch.step(nstep=self.substeps)
        self.servos.feel()

    def reset(self, ids: Tensor, qpos: Tensor, qvel: Tensor) -> None:
        """Put simulations `ids` (k,) at time 0, STAND's controls, and the given qpos and qvel."""
        rows = ids.numpy()
        for name, field in self._state.items():  # as the batch's own reset, in half of its time
            field[rows] = self._start[name]
        self.qpos[ids] = qpos.double()
        self.qvel[ids] = qvel.double()
        self._remember(rows)
        self.servos.rest(ids)

    def _remember(self, rows: np.ndarray) -> None:
        """Let the present joint angles be what was commanded before; a delayed command follows on them."""
        joints = self.qpos.numpy()[rows, 7:]
        self._state["history"][rows[:, None, None], self._past] = joints[:, :, None]

    def refresh(self, ids: Tensor) -> None:
        """Compute contacts, sites and torques of simulations `ids` (k,) at their present state."""
        self.batch.forward(np.unique(ids.numpy()))

    def time(self) -> Tensor:
        """Return the time simulated since each reset, (num_envs,) [s]."""
        return self._time.reshape(self.num_envs).clone()

    def contacts(self) -> Tensor:
        """Return whether the left and right foot touch anything, (num_envs, 2) bool."""
        return torch.from_numpy(self._sensors[:, self._contact_columns] > 0)

    def foot_positions(self) -> Tensor:
        """Return the world positions of the left and right foot site, (num_envs, 2, 3) [m]."""
        return torch.from_numpy(self._site_position[:, self._feet])

    def foot_rotations(self) -> Tensor:
        """Return the world rotation matrices of the left and right foot site, (num_envs, 2, 3, 3)."""
        return torch.from_numpy(self._site_rotation[:, self._feet].reshape(self.num_envs, 2, 3, 3))

    def gaze(self) -> Tensor:
        """Return the direction the head looks in, world frame, (num_envs, 3): minus z of site `head_imu`."""
        return torch.from_numpy(-self._site_rotation[:, self._head, 2::3])

    def joint_torques(self) -> Tensor:
        """Return the torques of the actuators, (num_envs, 14) [N m]."""
        return torch.from_numpy(self._torques.copy())

    def self_contacts(self) -> Tensor:
        """Return the number of contacts between parts of each duck, (num_envs,)."""
        return torch.from_numpy(self._sensors[:, self._self_column].copy())

    def diverged(self) -> Tensor:
        """Return which simulations hold a NaN, an infinity or an impossible speed, (num_envs,) bool."""
        fast = ~(self.qvel.abs().amax(-1) <= MAX_SPEED)  # NaN compares false
        return fast | ~torch.isfinite(self.qpos.sum(-1))

    def expand(self, name: str) -> Tensor:
        """Return the values of model field `name` for each simulation, (num_envs, ...); may be written.

        Raises:
            ConfigError: MuJoCo has no such field, or cannot have it differ between simulations.
        """
        if name not in self._expanded:
            try:
                self._expanded[name] = torch.from_numpy(self.batch.expand(name))
            except ValueError as problem:
                raise ConfigError(f"{problem}; see mujoco.batch.MODEL_FIELDS") from problem
        return self._expanded[name]

    def expanded(self, name: str) -> bool:
        """Return whether `expand` gave each simulation values of its own."""
        return name in self._expanded

    def derived(self, name: str) -> Tensor:
        """Return a quantity that MuJoCo derives, (num_envs, ...), for reading; it follows each step."""
        values = self.batch.bind(name).view()
        values.flags.writeable = True  # torch takes nothing less
        return torch.from_numpy(values)

    def set_constants(self, ids: Tensor) -> None:
        """Compute anew what models of `ids` (k,) derive from masses, inertias and positions."""
        self.batch.set_const(np.unique(ids.numpy()))
        self._constants_set = True

    def save(self, ids: Tensor) -> dict[str, Any]:
        """Return everything that decides the future of simulations `ids` (k,), solver warm start included."""
        return {
            **{name: field[ids.numpy()].copy() for name, field in self._state.items()},
            "servos": self.servos.save(ids),
            "model": {name: field[ids] for name, field in self._expanded.items()},
            "constants": self._constants_set,
        }

    def load(self, ids: Tensor, saved: dict[str, Any]) -> None:
        """Put what `save` returned into simulations `ids` (k,) and compute what derives from it.

        What is missing stays as it is: parts of the state, or servos and model fields together.
        """
        for name in saved.keys() & self._state.keys():
            self._state[name][ids.numpy()] = saved[name]
        if "servos" in saved:
            self._load_model(ids, saved["model"])
            self.servos.load(ids, saved["servos"])
            if saved["constants"] or self._constants_set:
                self.set_constants(ids)
        self.refresh(ids)

    def _load_model(self, ids: Tensor, saved: dict[str, Tensor]) -> None:
        for name in saved.keys() | self._expanded.keys():
            self.expand(name)[ids] = saved[name] if name in saved else self._shared(name)

    def _shared(self, name: str) -> Tensor:
        """Return the model's own values of a field."""
        holder = self.model.opt if name.startswith("opt.") else self.model
        return torch.as_tensor(np.array(getattr(holder, name.removeprefix("opt."))))

    def like(self, num_envs: int) -> NativePhysics:
        """Return a new batch of `num_envs` simulations of the same model and options, none of them varied."""
        return NativePhysics(num_envs, self._options, self.model)
