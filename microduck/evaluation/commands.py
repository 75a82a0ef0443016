"""Which commands of a task are tried: along each axis of its box, and in the corners where it also turns."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from microduck.tasks import MicroDuckTask, command_box

Command = tuple[float, float, float]
"""vx, vy, yaw rate [m/s, m/s, rad/s]."""
TICKS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""Distances of round values along an axis, the closest first [m/s, rad/s]."""
YAW = 2
"""Place of the yaw rate in a command."""


class Point(NamedTuple):
    """One command of one task: row of the library, and vx, vy, yaw rate [m/s, m/s, rad/s]."""

    task_id: int
    command: Command


def points(library: MicroDuckTask, grid: int) -> list[Point]:
    """Return the commands to try, task by task.

    From a grid of 3 on they are round values and the ends along every axis of the box, all else at rest, and,
    where a box holds speeds and yaw rates, its fastest corners. A grid of 2 takes the box's two opposite
    corners, which hold all there is to follow; a grid of 1 the faster of them.

    Args:
        library: the tasks, (num_tasks,).
        grid: most commands along the leading axis, 1 or more; further axes get their ends.
    """
    boxes = zip(*command_box(library), strict=True)
    return [
        Point(task_id, command)
        for task_id, (low, high) in enumerate(boxes)
        for command in _of_box(_rounded(low), _rounded(high), grid)
    ]


def _rounded(corner: Tensor) -> Command:
    # The box is kept in float32; 0.30000001 would be no round value.
    vx, vy, yaw = (np.round(corner.double().tolist(), 6) + 0.0).tolist()
    return vx, vy, yaw


def _of_box(low: Command, high: Command, grid: int) -> list[Command]:
    if grid < 3:
        ends = sorted({low, high}, key=lambda corner: _size(corner) + corner)
        return ends[-grid:]
    rest = tuple(min(max(0.0, least), most) for least, most in zip(low, high, strict=True))
    axes = [axis for axis in range(3) if low[axis] < high[axis]]
    found = [] if axes else [rest]
    for axis in axes:
        values = ticks(low[axis], high[axis], grid if axis == axes[0] else 2)
        found += [(*rest[:axis], value, *rest[axis + 1 :]) for value in values]
    if YAW in axes and len(axes) > 1:
        found += _fast_corners(low, high)
    return [(vx, vy, yaw) for vx, vy, yaw in dict.fromkeys(found)]


def _size(command: Command) -> tuple[float, float]:
    """Return the planar and the turning speed of a command [m/s, rad/s]."""
    return float(np.hypot(command[0], command[1])), abs(command[YAW])


def _fast_corners(low: Command, high: Command) -> list[Command]:
    """Return the box's fastest planar corner with both ends of the yaw rate."""
    vx, vy = max(product((low[0], high[0]), (low[1], high[1])), key=lambda corner: np.hypot(*corner))
    return [(vx, vy, low[YAW]), (vx, vy, high[YAW])]


def ticks(low: float, high: float, most: int) -> list[float]:
    """Return both ends of an interval and the round values inside, as many as fit.

    Args:
        low: lower end.
        high: upper end, above it.
        most: how many values at most, 2 or more.
    """
    for step in TICKS if most > 2 else ():
        multiples = np.arange(np.ceil(low / step), np.floor(high / step) + 1) * step
        values = sorted({low, *(np.round(multiples, 6) + 0.0).tolist(), high})
        if len(values) <= most:
            return values
    return [low, high]


def tensors(tried: list[Point]) -> tuple[Tensor, Tensor]:
    """Return the task ids (k,) and commands (k, 3) of points."""
    return torch.tensor([p.task_id for p in tried]), torch.tensor([p.command for p in tried])
