"""Tasks as data: rows, the presets that make them, libraries, their rules and their archives."""

from microduck.rewards import COMMAND_THRESHOLD
from microduck.tasks.library_file import load_library, save_library
from microduck.tasks.presets import (
    GAIT_TERMS,
    POSE_STD_MOVING,
    POSE_STD_STANDING,
    TURN_WEIGHT,
    jump_task,
    make_task,
    sidestep_task,
    speed_range_task,
    standing_task,
    tracking_task,
    turning_task,
)
from microduck.tasks.stacking import stack_tasks
from microduck.tasks.task import GAIT_FREQUENCY_HZ, JOINT_RESET_NOISE, MicroDuckTask, command_box
from microduck.tasks.validation import validate

__all__ = [
    "COMMAND_THRESHOLD",
    "GAIT_FREQUENCY_HZ",
    "GAIT_TERMS",
    "JOINT_RESET_NOISE",
    "POSE_STD_MOVING",
    "POSE_STD_STANDING",
    "TURN_WEIGHT",
    "MicroDuckTask",
    "command_box",
    "jump_task",
    "load_library",
    "make_task",
    "save_library",
    "sidestep_task",
    "speed_range_task",
    "stack_tasks",
    "standing_task",
    "tracking_task",
    "turning_task",
    "validate",
]
