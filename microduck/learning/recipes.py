"""Named task libraries that train well."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hardware.errors import TaskError
from microduck.learning.nine_skills import MOVING_STARTS, nine_skills, stepping_row
from microduck.learning.polish import polish
from microduck.tasks import (
    MicroDuckTask,
    load_library,
    speed_range_task,
    stack_tasks,
    standing_task,
    tracking_task,
)

LIBRARIES: dict[str, Callable[[], list[MicroDuckTask]]] = {
    "walk": lambda: [stepping_row("walk", (0.0, 0.0), (0.3, 0.0))],
    "nine-skills": nine_skills,
    "nine-skills-polish": polish,
    "speed-range": lambda: [speed_range_task(**MOVING_STARTS)],
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
