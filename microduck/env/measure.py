"""What observations and rewards are made of, read from the simulator and the episodes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import mujoco
import torch
from torch import Tensor

from hardware import rotations
from hardware.contract import CONTROL_PERIOD_S, ActionMap
from microduck.env.episode import Episodes
from microduck.physics.base import Physics
from microduck.physics.model_parts import FOOT_SITES, in_stand
from microduck.rewards import MIN_UPRIGHT, Features

Rows = Tensor | slice
"""Some ducks of the batch."""
ALL = slice(None)
MIN_HEIGHT_RATIO = 0.55
"""Base height below which a duck has fallen, as a part of its height in STAND."""
MEAN_VELOCITY_S = 0.5
"""Time constant of the mean velocity [s]: a step or a hop takes less, a new command lasts longer."""


class Senses:
    """Reads the simulator for some or all ducks.

    Args:
        physics: the simulations.
        action_map: knows STAND on the right device.

    Attributes:
        stand_height: base height in STAND [m].
    """

    def __init__(self, physics: Physics, action_map: ActionMap) -> None:
        self._physics, self._action_map = physics, action_map
        self.stand_height = float(physics.stand_qpos[2])
        self._soles = _soles_in_stand(physics.model).to(physics.device)

    def motion(self, rows: Rows = ALL) -> dict[str, Tensor]:
        """Return what follows from pose and velocity at the present state."""
        qpos, qvel = self._physics.qpos[rows].float(), self._physics.qvel[rows].float()
        quaternion = qpos[:, 3:7]
        gravity = rotations.projected_gravity(quaternion)
        upright = (-gravity[:, 2]).clamp(-1, 1)
        return {
            "quaternion": quaternion,
            "projected_gravity": gravity,
            "body_velocity": rotations.rotate_inverse(quaternion, qvel[:, :3]),
            "world_velocity": qvel[:, :3],
            "angular_velocity": qvel[:, 3:6],
            "upright": upright,
            "position": qpos[:, :2],
            "base_height": qpos[:, 2],
            "joint_error": self._action_map.joint_error(qpos[:, 7:]),
            "joint_velocity": qvel[:, 6:],
            "fallen": (qpos[:, 2] < MIN_HEIGHT_RATIO * self.stand_height) | (upright < MIN_UPRIGHT),
        }

    def features(self, episodes: Episodes, action: Tensor, rows: Rows = ALL) -> Features:
        """Return all that rewards may read, after a step with `action` (of `rows`, 14).

        Derived quantities of the simulator are those it last computed; see `Physics.step`.
        """
        physics, motion = self._physics, self.motion(rows)
        contacts, feet = physics.contacts()[rows], physics.foot_positions()[rows].float()
        command = episodes.command[rows].clone()
        gaze, yaw = physics.gaze()[rows].float(), rotations.heading(motion["quaternion"])
        measured = {
            **motion,
            "standing_height": torch.full_like(yaw, self.stand_height),
            "heading": rotations.wrap(yaw - episodes.wanted_heading[rows]),
            "head_pitch": torch.asin(gaze[:, 2].clamp(-1, 1)),
            "head_yaw": rotations.wrap(torch.atan2(gaze[:, 1], gaze[:, 0]) - yaw),
            "action": action,
            "previous_action": episodes.action[rows],
            "earlier_action": episodes.earlier_action[rows],
            "contacts": contacts,
            "previous_contacts": episodes.contacts[rows],
            "foot_heights": feet[:, :, 2],
            "foot_positions": feet[:, :, :2],
            "touchdown_air_time": episodes.air_time[rows] * contacts,
            "mean_velocity_error": _mean_velocity_error(episodes, motion["body_velocity"], rows),
            "gait_phase": episodes.phase[rows].float(),
            "command": command[:, :2],
            "yaw_rate_command": command[:, 2],
        }
        sources = {
            "foot_velocity": partial(_foot_velocity, episodes, feet[:, :, :2], rows),
            "foot_tilt": partial(self._foot_tilt, rows),
            "joint_torque": partial(_read, physics.joint_torques, rows),
            "self_contacts": partial(_read, physics.self_contacts, rows),
        }
        return Features(measured, sources)

    def _foot_tilt(self, rows: Rows) -> Tensor:
        rotations_to_world = self._physics.foot_rotations()[rows].float()
        vertical = rotations_to_world[..., 2, :]  # in the frame of each sole
        return torch.acos((vertical * self._soles).sum(-1).clamp(-1, 1))


def _read(quantity: Callable[[], Tensor], rows: Rows) -> Tensor:
    return quantity()[rows].float()


def _foot_velocity(episodes: Episodes, positions: Tensor, rows: Rows) -> Tensor:
    moved = (positions - episodes.foot_positions[rows]) / CONTROL_PERIOD_S
    started = episodes.steps[rows] > 1  # before that, no earlier position is known
    return moved * started[:, None, None]


def _mean_velocity_error(episodes: Episodes, velocity: Tensor, rows: Rows) -> Tensor:
    before = episodes.velocity_error[rows]
    now = velocity[:, :2] - episodes.command[rows, :2]
    return before + (CONTROL_PERIOD_S / MEAN_VELOCITY_S) * (now - before)


def _soles_in_stand(model: mujoco.MjModel) -> Tensor:
    """Return the vertical in the frame of the left and right foot site when the duck is in STAND, (2, 3)."""
    feet = [model.site(name).id for name in FOOT_SITES]
    return torch.from_numpy(in_stand(model).site_xmat[feet].reshape(2, 3, 3)[:, 2].copy()).float()
