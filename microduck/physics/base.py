"""The narrow interface between the environment and whatever simulates the ducks."""

from __future__ import annotations

from typing import Any, Protocol

import mujoco
import torch
from torch import Tensor

from microduck.physics.servo_bank import ServoBank

MAX_SPEED = 1e4
"""Base or joint velocities beyond this have diverged [m/s, rad/s]; a falling duck stays below 100."""
STATE = (
    "time", "qpos", "qvel", "act", "history", "qacc_warmstart", "ctrl", "qfrc_applied", "xfrc_applied",
)  # fmt: skip
"""What decides a simulation's future, by MjData's names; the rest of the state is constant for a duck."""


class Physics(Protocol):
    """A batch of simulations of one model, on one torch device.

    Attributes:
        num_envs: number of simulations.
        device: where every tensor below lives.
        model: the compiled model.
        substeps: physics steps in one control period.
        qpos: live base pose and joints, (num_envs, 21) [m, quaternion w x y z, rad]; may be written.
        qvel: live velocities, (num_envs, 20) [m/s world, rad/s body, rad/s]; may be written.
        stand_qpos: the STAND keyframe, (21,).
        servos: what the servos of each simulation are like.
    """

    num_envs: int
    device: torch.device
    model: mujoco.MjModel
    substeps: int
    qpos: Tensor
    qvel: Tensor
    stand_qpos: Tensor
    servos: ServoBank

    def step(self, targets: Tensor) -> None:
        """Advance one control period with joint targets (num_envs, 14) [rad].

        As after any `mj_step`, and as in TorchRL, every derived quantity below is that of the last substep's
        start; computing them again at its end would cost a seventh of the speed.
        """

    def reset(self, ids: Tensor, qpos: Tensor, qvel: Tensor) -> None:
        """Put simulations `ids` (k,) at time 0, STAND's controls, and qpos (k, 21) and qvel (k, 20).

        Servos and model fields stay as they are. A delayed command follows on the joints' own angles.
        The derived quantities follow at the next `step` or `refresh`.
        """

    def refresh(self, ids: Tensor) -> None:
        """Compute the derived quantities of simulations `ids` (k,) at their present state."""

    def time(self) -> Tensor:
        """Return the time simulated since each reset, (num_envs,) [s]."""

    def contacts(self) -> Tensor:
        """Return whether the left and right foot touch anything, (num_envs, 2) bool."""

    def foot_positions(self) -> Tensor:
        """Return the world positions of the left and right foot site, (num_envs, 2, 3) [m]."""

    def foot_rotations(self) -> Tensor:
        """Return the world rotation matrices of the left and right foot site, (num_envs, 2, 3, 3)."""

    def gaze(self) -> Tensor:
        """Return the direction the head looks in, world frame, (num_envs, 3): minus z of site `head_imu`."""

    def joint_torques(self) -> Tensor:
        """Return the torques of the actuators, (num_envs, 14) [N m]."""

    def self_contacts(self) -> Tensor:
        """Return the number of contacts between parts of each duck, (num_envs,)."""

    def diverged(self) -> Tensor:
        """Return which simulations hold a NaN, an infinity or an impossible speed, (num_envs,) bool."""

    def expand(self, name: str) -> Tensor:
        """Return the values of model field `name` for each simulation, (num_envs, ...), to be written.

        They start as the model's own and last through resets. `set_constants` must follow a change of masses,
        inertias, armatures or positions. Friction of joints, gains and delays belong to `servos`.
        """

    def set_constants(self, ids: Tensor) -> None:
        """Compute anew what models of `ids` (k,) derive from masses, inertias and positions."""

    def save(self, ids: Tensor) -> Any:
        """Return everything that decides the future of simulations `ids` (k,), solver warm start included.

        That is their state, their servos and their model fields.
        """

    def load(self, ids: Tensor, saved: Any) -> None:
        """Put what `save` returned into simulations `ids` (k,) and `refresh` them."""

    def like(self, num_envs: int) -> Physics:
        """Return a new batch of `num_envs` simulations of the same model and options, none of them varied."""
