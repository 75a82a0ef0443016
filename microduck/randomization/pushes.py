"""Pushes: the base's planar velocity jumps now and then."""

from __future__ import annotations

import torch
from torch import Tensor

from hardware.contract import CONTROL_PERIOD_S


class Pushes:
    """When each duck of a batch is pushed, and how.

    Args:
        count: number of ducks; none is pushed before its `begin`.
        interval: shortest and longest time between two pushes [s].
        generator: draws times and velocities; its device is that of all tensors.

    Attributes:
        last: what the last `advance` added to the velocities, world frame, (count, 2) [m/s].
        speed: most that a push adds along x and along y, (count,) [m/s].
        steps: control periods until the next push, (count,) int64; below 1 for none.
    """

    def __init__(self, count: int, interval: tuple[float, float], generator: torch.Generator) -> None:
        device = generator.device
        self._interval, self._generator = interval, generator
        self.last = torch.zeros(count, 2, device=device)
        self.speed = torch.zeros(count, device=device)
        self.steps = torch.zeros(count, dtype=torch.int64, device=device)

    def begin(self, ids: Tensor, speed: Tensor) -> None:
        """Push ducks `ids` (k,) by up to `speed` (k,) [m/s] from now on."""
        self.last[ids] = 0.0
        self.speed[ids] = speed
        self._wait(ids)

    def advance(self, velocity: Tensor) -> None:
        """Let a control period begin: change the velocities (count, 2 or more) of ducks whose time is up."""
        self.last.zero_()
        self.steps -= 1
        due = (self.steps == 0).nonzero().squeeze(-1)
        if len(due):
            self.last[due] = self.speed[due, None] * (2 * self._uniform(len(due), 2) - 1)
            velocity[due, :2] += self.last[due].to(velocity)
            self._wait(due)

    def _wait(self, ids: Tensor) -> None:
        low, high = self._interval
        seconds = low + (high - low) * self._uniform(len(ids))
        self.steps[ids] = (seconds / CONTROL_PERIOD_S).round().clamp(min=1).to(torch.int64)

    def _uniform(self, *shape: int) -> Tensor:
        return torch.rand(shape, generator=self._generator, device=self.last.device)
