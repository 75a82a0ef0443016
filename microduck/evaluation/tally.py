"""Sums over the steps of a batch of episodes, each for as long as its duck is upright."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from hardware import rotations
from hardware.contract import CONTROL_PERIOD_S
from hardware.joints import NUM_JOINTS
from hardware.servo import STALL_TORQUE

SETTLE_STEPS = 50
"""Steps left out of mean velocities and turn rates: the duck starts at rest."""
FLIGHT_STEPS = 2
"""A flight without a foot down lasts this many steps or more; shorter ones are bounces of a foot."""
HARD = 0.9
"""Share of the servo's torque limit beyond which a joint works hard."""
TORQUE_BINS = 120
"""Torques are counted in hundredths of the servo's limit, up to 1.2 of it: a fresh battery pulls harder."""


class Tally:
    """What happened in a batch of episodes.

    Args:
        qpos: poses at the start, (n, 21) [m, quaternion w x y z, rad].
        yaw_rate: yaw rates that are wanted, (n,) [rad/s].

    Attributes:
        alive: who has not fallen, (n,) bool.
        sums: sums over the steps in which a duck was upright, (n,) each; see `_each_step` and `_settled`.
        steps: number of those steps, (n,).
        settled: those of them after the first second, (n,).
        heading: how far the duck turned beyond what was wanted, (n,) [rad].
        place: where it is, or fell, (n, 2) [m].
        start: where it started, (n, 2) [m].
        foot_height: highest point of each foot so far, (n, 2) [m].
        torques: steps of each joint by its torque, in hundredths of the limit, (n, 14, 120).
        flights: number of flights that have ended, (n,).
        apex: sum of their heights above STAND, (n,) [m].
        clearance: sum of the heights of their lower foot, (n,) [m].
    """

    def __init__(self, qpos: Tensor, yaw_rate: Tensor) -> None:
        count = len(qpos)
        self._yaw_rate, self._yaw = yaw_rate, rotations.heading(qpos[:, 3:7]).float()
        self._feet: Tensor | None = None
        self.alive = torch.ones(count, dtype=torch.bool)
        self.sums: dict[str, Tensor] = {}
        self.steps, self.settled, self.heading = torch.zeros(3, count)
        self.start = qpos[:, :2].float().clone()
        self.place, self.foot_height = self.start.clone(), torch.zeros(count, 2)
        self.torques = torch.zeros(count, NUM_JOINTS, TORQUE_BINS)
        self.flights, self.apex, self.clearance = torch.zeros(3, count)
        self._aloft, self._highest, self._clear = torch.zeros(3, count)

    def add(self, features: Mapping[str, Tensor], step: int) -> None:
        """Take a step in.

        Args:
            features: those of `microduck.rewards.features`, `joint_torque` included.
            step: its number, the first is 0.
        """
        self.alive = self.alive & ~features["fallen"]
        yaw = rotations.heading(features["quaternion"])
        turned = rotations.wrap(yaw - self._yaw)
        self._yaw = yaw
        self._sum(_each_step(features) | self._slip(features))
        self.steps += self.alive
        self.heading += (turned - self._yaw_rate * CONTROL_PERIOD_S) * self.alive
        if step >= SETTLE_STEPS:
            self._sum(_settled(features, turned))
            self.settled += self.alive
        upright = self.alive.unsqueeze(-1)
        self.place = torch.where(upright, features["position"], self.place)
        higher = torch.maximum(self.foot_height, features["foot_heights"])
        self.foot_height = torch.where(upright, higher, self.foot_height)
        self._count_torques(features["joint_torque"])
        self._follow_flight(features)

    def _sum(self, values: Mapping[str, Tensor]) -> None:
        for name, value in values.items():
            # A fallen duck's numbers may be anything, so they are left out, not multiplied by zero.
            added = torch.where(self.alive, value.float(), 0.0)
            self.sums[name] = self.sums.get(name, 0.0) + added

    def _slip(self, features: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the speeds of the feet that stay down, summed [m/s], and how many feet those are."""
        positions = features["foot_positions"]
        before = positions if self._feet is None else self._feet
        self._feet = positions.clone()
        stays = features["contacts"] & features["previous_contacts"]
        speed = (positions - before).norm(dim=-1) / CONTROL_PERIOD_S
        return {"slip": (speed * stays).sum(-1), "feet_down": stays.sum(-1)}

    def _count_torques(self, torque: Tensor) -> None:
        hundredths = (torque.abs() * (100 / STALL_TORQUE)).clamp(max=TORQUE_BINS - 1)
        bins = hundredths.long().unsqueeze(-1)
        one = self.alive.float()[:, None, None].expand(-1, NUM_JOINTS, 1)
        self.torques.scatter_add_(2, bins, one)

    def _follow_flight(self, features: Mapping[str, Tensor]) -> None:
        aloft = ~features["contacts"].any(-1) & self.alive
        landed = ~aloft & (self._aloft >= FLIGHT_STEPS) & self.alive
        self.flights += landed
        self.apex += self._highest * landed
        self.clearance += self._clear * landed
        gain = features["base_height"] - features["standing_height"]
        lower = features["foot_heights"].amin(-1)
        first = self._aloft == 0
        self._highest = torch.where(first, gain, torch.maximum(self._highest, gain))
        self._clear = torch.where(first, lower, torch.maximum(self._clear, lower))
        self._aloft = (self._aloft + 1) * aloft


def _each_step(features: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return what is summed in every step, (n,) each."""
    torque, contacts = features["joint_torque"], features["contacts"]
    change = features["action"] - features["previous_action"]
    return {
        "power": (torque * features["joint_velocity"]).abs().sum(-1),
        "hard": (torque.abs() > HARD * STALL_TORQUE).any(-1),
        "action_change": change.square().mean(-1),
        "airborne": ~contacts.any(-1),
        "double_support": contacts.all(-1),
        "head_pitch": features["head_pitch"].abs(),
    }


def _settled(features: Mapping[str, Tensor], turned: Tensor) -> dict[str, Tensor]:
    """Return what is summed after the first second, (n,) each."""
    velocity = features["body_velocity"]
    return {
        "forward": velocity[:, 0],
        "left": velocity[:, 1],
        "pace": velocity[:, :2].norm(dim=-1),
        "turned": turned,
    }
