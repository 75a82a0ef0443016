"""Many ducks on MuJoCo's own batch: C threads in one process, one state row per simulation."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib import resources

import mujoco
import mujoco.batch
import numpy as np
import torch
from torch import Tensor

from hardware.contract import CONTROL_PERIOD_S
from hardware.errors import ConfigError
from hardware.joints import JOINT_NAMES

STAND_KEY = "STAND"
SOLE_BIT = 1
"""Contact bit of the soles in duck.xml."""
MAX_SPEED = 1e4
"""Base or joint velocities beyond this have diverged [m/s, rad/s]; a falling duck stays below 100."""


@dataclass(frozen=True)
class PhysicsOptions:
    """How physics is stepped.

    Attributes:
        substeps: physics steps in one control period of 20 ms.
        threads: worker threads; None for the CPUs this process may use.
        body_contacts: whether parts other than the soles meet the floor. Off, as in the upstream model for
            walking: a duck that could rest on its battery or beak would learn that instead.
    """

    substeps: int = 4
    threads: int | None = None
    body_contacts: bool = False

    def worker_threads(self) -> int:
        """Return the number of threads to start: never more than the CPUs this process may use by default."""
        return self.threads or len(os.sched_getaffinity(0))


def load_model(substeps: int = 4, *, visuals: bool = True, body_contacts: bool = True) -> mujoco.MjModel:
    """Compile the duck.

    Args:
        substeps: physics steps in one control period.
        visuals: keep geoms that only pictures need.
        body_contacts: let parts other than the soles meet the floor.

    Raises:
        ConfigError: `substeps` is not a positive whole number.
    """
    if substeps < 1 or substeps != int(substeps):
        raise ConfigError(f"substeps is {substeps}; it must be 1 or more (4 gives steps of 5 ms)")
    text = resources.files("hardware").joinpath("duck.xml").read_text(encoding="utf-8")
    spec = mujoco.MjSpec.from_string(text)
    spec.compiler.discardvisual = not visuals
    if not body_contacts:
        spec.geom("floor").conaffinity = SOLE_BIT
    spec.option.timestep = CONTROL_PERIOD_S / substeps
    return spec.compile()


class NativePhysics:
    """A batch of simulations of one model.

    Args:
        num_envs: number of simulations.
        options: substeps and threads.

    Attributes:
        qpos: live base pose and joints, (num_envs, 21) float64 [m, quaternion w x y z, rad].
        qvel: live velocities, (num_envs, 20) float64 [m/s world, rad/s body, rad/s].
        stand_qpos: the STAND keyframe, (21,) float64.
    """

    def __init__(self, num_envs: int, options: PhysicsOptions) -> None:
        self.model = load_model(options.substeps, visuals=False, body_contacts=options.body_contacts)
        # A diverged simulation must show its NaN and be terminated, not start over unseen.
        self.model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_AUTORESET
        self.substeps = options.substeps
        self.batch = mujoco.batch.Batch(self.model, num_envs, options.worker_threads())
        self._bind()
        self._key = self.model.keyframe(STAND_KEY).id
        self.stand_qpos = torch.from_numpy(self.model.key_qpos[self._key].copy())
        actuators = tuple(self.model.actuator(i).name for i in range(self.model.nu))
        if actuators != JOINT_NAMES:
            raise ConfigError(
                f"the model's actuators are {actuators}; the contract's joints are {JOINT_NAMES}"
            )

    def _bind(self) -> None:
        model, bind = self.model, self.batch.bind
        self.qpos, self.qvel = torch.from_numpy(bind("qpos")), torch.from_numpy(bind("qvel"))
        self._ctrl = torch.from_numpy(bind("ctrl"))
        self._sensors = bind("sensordata")
        self._contact_columns = [model.sensor(f"{side}_foot_contact").adr[0] for side in ("left", "right")]
        self._site_position, self._site_rotation = bind("site_xpos"), bind("site_xmat")
        self._feet = [model.site(f"{side}_foot").id for side in ("left", "right")]
        self._head = model.site("head_imu").id

    def step(self, targets: Tensor) -> None:
        """Advance one control period with joint targets (num_envs, 14) [rad].

        As after any `mj_step`, and as in TorchRL, contacts, foot heights and gaze are those of the last
        substep's start; computing them again at its end would cost a seventh of the speed.
        """
        self._ctrl.copy_(targets)
        self.batch.step(nstep=self.substeps)

    def reset(self, ids: np.ndarray, qpos: Tensor, qvel: Tensor) -> None:
        """Put simulations `ids` (k,) at STAND's controls, then at qpos (k, 21) and qvel (k, 20).

        Contacts, foot heights and gaze follow at the next `step` or `refresh`.
        """
        self.batch.reset(ids, keyframe=self._key, stage=mujoco.mjtStage.mjSTAGE_NONE)
        rows = torch.from_numpy(ids)
        self.qpos[rows] = qpos
        self.qvel[rows] = qvel

    def refresh(self, ids: np.ndarray) -> None:
        """Compute contacts, foot heights and gaze of simulations `ids` (k,) at their present state."""
        self.batch.forward(ids, stage=mujoco.mjtStage.mjSTAGE_VEL)

    def contacts(self) -> Tensor:
        """Return whether the left and right foot touch anything, (num_envs, 2) bool."""
        return torch.from_numpy(self._sensors[:, self._contact_columns] > 0)

    def foot_heights(self) -> Tensor:
        """Return the heights of the left and right foot site, (num_envs, 2) [m]."""
        return torch.from_numpy(self._site_position[:, self._feet, 2])

    def gaze(self) -> Tensor:
        """Return the direction the head looks in, world frame, (num_envs, 3): minus z of site `head_imu`."""
        return torch.from_numpy(-self._site_rotation[:, self._head, 2::3])

    def diverged(self) -> Tensor:
        """Return which simulations hold a NaN, an infinity or an impossible speed, (num_envs,) bool."""
        fast = ~(self.qvel.abs().amax(-1) <= MAX_SPEED)  # NaN compares false
        return fast | ~torch.isfinite(self.qpos.sum(-1))
