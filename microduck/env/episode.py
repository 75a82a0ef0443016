"""What the environment remembers of each duck's episode, one row per duck."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from hardware import contract
from hardware.contract import GaitClock
from hardware.joints import NUM_JOINTS


@dataclass
class Episodes:
    """Live state of a batch of episodes, besides the simulator's.

    Attributes:
        task_id: row of the library, (n,) int64.
        command: vx, vy, yaw rate, (n, 3) [m/s, m/s, rad/s].
        steps: control steps since the reset, (n,) int64.
        steps_to_draw: control steps until the next command is drawn, (n,) int64; negative for never.
        phase: phase of the gait clock, (n,) float64 [rad].
        elapsed: time since the clock started, (n,) float64 [s].
        frequency: frequency of the clock, (n,) float64 [Hz].
        heading_error: how far the gyro says that the trunk turned beyond its command, (n,) [rad].
        action: last action, (n, 14).
        earlier_action: the one before it, (n, 14).
        wanted_heading: heading to keep, (n,) [rad].
        air_time: how long each foot has been in the air, (n, 2) [s].
        contacts: which feet touched at the last step, (n, 2) bool.
        foot_positions: planar positions of the feet at the last step, (n, 2, 2) [m, world].
        velocity_error: mean planar velocity less its command, of late, (n, 2) [m/s, body frame].
    """

    task_id: Tensor
    command: Tensor
    steps: Tensor
    steps_to_draw: Tensor
    phase: Tensor
    elapsed: Tensor
    frequency: Tensor
    heading_error: Tensor
    action: Tensor
    earlier_action: Tensor
    wanted_heading: Tensor
    air_time: Tensor
    contacts: Tensor
    foot_positions: Tensor
    velocity_error: Tensor

    @classmethod
    def new(cls, count: int, device: torch.device) -> Episodes:
        """Return the state of `count` ducks that have not been reset yet."""

        def zeros(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
            return torch.zeros(count, *shape, dtype=dtype, device=device)

        return cls(
            task_id=zeros(dtype=torch.int64),
            command=zeros(3),
            steps=zeros(dtype=torch.int64),
            steps_to_draw=zeros(dtype=torch.int64) - 1,
            phase=zeros(dtype=torch.float64) + contract.GAIT_PHASE_OFFSET,
            elapsed=zeros(dtype=torch.float64),
            frequency=zeros(dtype=torch.float64),
            heading_error=zeros(),
            action=zeros(NUM_JOINTS),
            earlier_action=zeros(NUM_JOINTS),
            wanted_heading=zeros(),
            air_time=zeros(2),
            contacts=zeros(2, dtype=torch.bool),
            foot_positions=zeros(2, 2),
            velocity_error=zeros(2),
        )

    def clear(self, ids: Tensor) -> None:
        """Set everything about ducks `ids` (k,) to zero, for a reset to fill in."""
        for entry in fields(self):
            getattr(self, entry.name).index_fill_(0, ids, 0)

    def take(self, ids: Tensor) -> Episodes:
        """Return a copy of ducks `ids` (k,)."""
        return Episodes(**{entry.name: getattr(self, entry.name)[ids] for entry in fields(self)})

    def put(self, ids: Tensor, other: Episodes) -> None:
        """Write the rows of `other` (k) into ducks `ids` (k,)."""
        for entry in fields(self):
            getattr(self, entry.name)[ids] = getattr(other, entry.name)

    def advance_clock(self) -> None:
        """Move every clock one control period on."""
        clock = contract.advance_clock(GaitClock(self.phase, self.elapsed), self.frequency)
        self.phase, self.elapsed = clock.phase, clock.elapsed

    def advance_heading(self, sensed: Mapping[str, Tensor]) -> None:
        """Take in what the gyro and the direction of gravity say of the period that has passed."""
        measured = sensed["angular_velocity"], sensed["projected_gravity"]
        self.heading_error = contract.advance_heading(self.heading_error, *measured, self.command[:, 2])

    def remember(self, features: Mapping[str, Tensor]) -> None:
        """Keep copies of what the next step compares with, of a step's features."""
        self.earlier_action, self.action = self.action.clone(), features["action"].clone()
        contacts = features["contacts"]
        self.air_time = (self.air_time + contract.CONTROL_PERIOD_S) * ~contacts
        self.contacts, self.foot_positions = contacts.clone(), features["foot_positions"].clone()
        self.velocity_error = features["mean_velocity_error"].clone()
