"""Named task libraries that train well."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from hardware.errors import TaskError
from microduck.tasks import (
    MicroDuckTask,
    load_library,
    speed_range_task,
    stack_tasks,
    standing_task,
    tracking_task,
)

# A walker that follows its command: the speed outweighs the gait terms, overshooting costs, heading is held.
# Warm starts and large joint noise let it meet a walk long before it can start one.
WALK_WEIGHTS = {
    "tracking": 5.0,
    "progress": 0.0,
    "speed_error": 2.0,
    "swing_height": 1.0,
    "phase_contact": 1.5,
    "heading_hold": 2.0,
}
EXPLORING_STARTS: dict[str, Any] = {
    "warm_start_velocity": (0.05, 0.25),
    "warm_start_fraction": 0.5,
    "joint_reset_noise_scale": 0.25,
}


def walking_task(low: float = 0.0, high: float = 0.3, **overrides: Any) -> MicroDuckTask:
    """Return the row of the shipped walker: forward at the commanded speed [m/s], heading held.

    The box begins at zero, where it steps in place: a robot whose commands stop must be able to stop.
    """
    weights = {**WALK_WEIGHTS, **(overrides.pop("reward_weights", None) or {})}
    preset = {"name": "walk", **EXPLORING_STARTS, **overrides}
    return speed_range_task(low, high, reward_weights=weights, **preset)


LIBRARIES: dict[str, Callable[[], list[MicroDuckTask]]] = {
    "walk": lambda: [walking_task()],
    "speed_range": lambda: [speed_range_task(**EXPLORING_STARTS)],
    "tracking": lambda: [tracking_task()],
    "standing": lambda: [standing_task()],
}
"""Libraries by name."""


def find_library(name: str) -> MicroDuckTask:
    """Return a library by its name or from a `.tdz` file.

    Raises:
        TaskError: no library has that name and no such file exists.
    """
    if name in LIBRARIES:
        return stack_tasks(LIBRARIES[name]())
    path = Path(name)
    if path.suffix == ".tdz" and path.is_file():
        return load_library(path)
    raise TaskError(
        f"{name!r} is no task library; choose one of {sorted(LIBRARIES)} or the path of a .tdz file"
    )
