"""Running one task with a policy and keeping the poses, for a film."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from tensordict import TensorDict

from hardware import contract
from hardware.contract import CONTROL_PERIOD_S
from hardware.errors import ConfigError, TaskError
from microduck.env import MicroDuckEnv
from microduck.learning.config import TrainConfig
from microduck.policy import SkillPolicy
from microduck.tasks import MicroDuckTask, command_box

MOST_SECONDS = 3600.0
"""Longest film [s]."""


@dataclass(frozen=True)
class Scene:
    """What to play.

    Attributes:
        task: name of the task; None for the library's first.
        command: vx, vy, yaw rate [m/s, m/s, rad/s]; None for the middle of the task's box.
        seconds: length [s].
        seed: seed of the reset.
    """

    task: str | None = None
    command: tuple[float, float, float] | None = None
    seconds: float = 10.0
    seed: int = 0


def play(policy: SkillPolicy, library: MicroDuckTask, config: TrainConfig, scene: Scene) -> np.ndarray:
    """Return the poses (T, 21) of one duck at 50 Hz, from its reset on; ends early when it falls.

    Raises:
        TaskError: the library has no such task.
        CommandError: the command lies outside the task's box.
        ConfigError: the length is not positive.
    """
    names = list(library.name)
    if not CONTROL_PERIOD_S <= scene.seconds <= MOST_SECONDS:  # false for NaN as well
        raise ConfigError(f"seconds is {scene.seconds:g}; it must be in [0.02, {MOST_SECONDS:g}]")
    steps = round(scene.seconds / CONTROL_PERIOD_S)
    if scene.task is not None and scene.task not in names:
        raise TaskError(f"{scene.task!r} is no task of this run; choose one of {names}")
    task_id = 0 if scene.task is None else names.index(scene.task)
    low, high = (corner[task_id] for corner in command_box(library))
    command = (low + high) / 2 if scene.command is None else torch.tensor(scene.command)
    contract.check_command(command, low, high)
    env = MicroDuckEnv(
        tasks=library,
        layout=config.layout,
        action_scale=config.action_scale,
        max_episode_steps=steps,
        seed=scene.seed,
    )
    given = {
        "task_id": torch.tensor([[task_id]]),
        "command": command[None, :2],
        "yaw_rate_command": command[None, 2:],
    }
    state = env.reset(TensorDict(given, batch_size=[1]))
    poses = [env.physics.qpos[0].numpy().copy()]
    with torch.no_grad():
        while not bool(state["done"]):
            state["action"] = policy(state["observation"], state["task_id"])
            state = env.step(state)["next"]
            poses.append(env.physics.qpos[0].numpy().copy())
    return np.stack(poses)
