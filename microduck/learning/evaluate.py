"""Evaluation: the policy's mean action, cold starts, held-out seeds, every episode counted."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from math import pi
from pathlib import Path

import torch
from tensordict import TensorDict
from torch import Tensor

from hardware import rotations
from hardware.contract import CONTROL_PERIOD_S
from hardware.files import replacing
from microduck.env import MicroDuckEnv
from microduck.policy import SkillPolicy
from microduck.rewards import Features
from microduck.tasks import COMMAND_THRESHOLD, JOINT_RESET_NOISE, MicroDuckTask, command_box

SETTLE_STEPS = 50
"""Steps left out of mean speeds: the duck starts at rest."""


@dataclass(frozen=True)
class EvaluationOptions:
    """How to evaluate.

    Attributes:
        layout: observation layout of the policy.
        action_scale: its joint travel for an action of 1 [rad].
        episodes: episodes for each task and command.
        steps: length of an episode [control steps].
        seed: seed of the resets.
        grid: commands per task, spread evenly over its box.
    """

    layout: str
    action_scale: float
    episodes: int = 64
    steps: int = 500
    seed: int = 10_000
    grid: int = 4


@dataclass(frozen=True)
class Evaluation:
    """Result for one task and command; means over its episodes, velocities over the time upright.

    Attributes:
        task: name of the task.
        command: vx, vy, yaw rate [m/s, m/s, rad/s].
        episodes: number of episodes.
        survival: part of the episodes without a fall.
        speed: velocity along the command, or the planar speed at zero command [m/s].
        speed_std: standard deviation of the episodes' speeds [m/s].
        speed_error: mean distance of an episode's speed from the command [m/s].
        speed_error_worst: largest such distance [m/s].
        heading_drift_p95: 95th percentile of the final heading's distance from the wanted one [rad].
        action_rate: root mean square change of the action per step.
        foot_height: mean of the highest point of each foot's site [m].
    """

    task: str
    command: tuple[float, float, float]
    episodes: int
    survival: float
    speed: float
    speed_std: float
    speed_error: float
    speed_error_worst: float
    heading_drift_p95: float
    action_rate: float
    foot_height: float


class _Tally:
    """Sums over the steps of a batch of episodes, for as long as each duck is upright."""

    def __init__(self, env: MicroDuckEnv) -> None:
        self.alive = torch.ones(env.num_envs, dtype=torch.bool)
        self.speed, self.counted, self.change, self.steps, self.drift = torch.zeros(5, env.num_envs)
        self.foot_height = torch.zeros(env.num_envs, 2)
        self._yaw = rotations.heading(env.physics.qpos[:, 3:7]).float()

    def add(self, env: MicroDuckEnv, step: int) -> None:
        features, alive = env.features, self.alive.float()
        if step >= SETTLE_STEPS:
            self.speed += _speed(features) * alive
            self.counted += alive
        change = (features["action"] - features["previous_action"]).square().mean(-1)
        self.change += change * alive
        self.steps += alive
        yaw = rotations.heading(env.physics.qpos[:, 3:7]).float()
        turned = rotations.wrap(yaw - self._yaw)
        self.drift += (turned - features["yaw_rate_command"] * CONTROL_PERIOD_S) * alive
        self._yaw = yaw
        higher = torch.maximum(self.foot_height, features["foot_heights"])
        self.foot_height = torch.where(self.alive.unsqueeze(-1), higher, self.foot_height)
        self.alive &= ~features["fallen"]


def _speed(features: Features) -> Tensor:
    velocity, command = features["body_velocity"][:, :2], features["command"]
    wanted = command.norm(dim=-1)
    along = (velocity * command).sum(-1) / wanted.clamp(min=COMMAND_THRESHOLD)
    return torch.where(wanted > COMMAND_THRESHOLD, along, velocity.norm(dim=-1))


def commands(library: MicroDuckTask, grid: int) -> list[tuple[int, Tensor]]:
    """Return task ids and commands (3,) spread over each row's box: corners' diagonal, `grid` points."""
    points = []
    for task_id, (low, high) in enumerate(zip(*command_box(library), strict=True)):
        count = grid if bool((high > low).any()) else 1
        points += [(task_id, low + (high - low) * k / max(count - 1, 1)) for k in range(count)]
    return points


def evaluate(
    policy: SkillPolicy,
    library: MicroDuckTask,
    options: EvaluationOptions,
    notify: Callable[[int], None] = lambda step: None,
) -> list[Evaluation]:
    """Run every task and command and return one result each.

    Args:
        policy: the actor; its mean action is used.
        library: the tasks.
        options: counts, layout and seed.
        notify: called with each control step taken.
    """
    points = commands(library, options.grid)
    library = library.clone()
    library.warm_start_fraction.zero_()
    library.joint_reset_noise_scale.fill_(JOINT_RESET_NOISE)
    library.command_resample_interval.zero_()
    count = options.episodes
    env = MicroDuckEnv(
        tasks=library,
        num_envs=count * len(points),
        layout=options.layout,
        action_scale=options.action_scale,
        max_episode_steps=options.steps,
        seed=options.seed,
    )
    task_id = torch.tensor([task for task, _ in points]).repeat_interleave(count)
    command = torch.stack([command for _, command in points]).repeat_interleave(count, dim=0)
    given = {"task_id": task_id, "command": command[:, :2], "yaw_rate_command": command[:, 2:]}
    state = env.reset(TensorDict(given, batch_size=env.batch_size))
    tally = _Tally(env)
    with torch.no_grad():
        for step in range(options.steps):
            state["action"] = policy(state["observation"], state["task_id"])
            state = env.step(state)["next"]
            tally.add(env, step)
            notify(step + 1)
    names = list(library.name)
    return [
        _summarise(tally, slice(i * count, (i + 1) * count), names[task], point)
        for i, (task, point) in enumerate(points)
    ]


def _summarise(tally: _Tally, rows: slice, task: str, command: Tensor) -> Evaluation:
    wanted = float(command[:2].norm())
    speed = tally.speed[rows] / tally.counted[rows].clamp(min=1)
    error = (speed - wanted).abs()
    vx, vy, yaw_rate = command.tolist()
    return Evaluation(
        task=task,
        command=(vx, vy, yaw_rate),
        episodes=len(speed),
        survival=float(tally.alive[rows].float().mean()),
        speed=float(speed.mean()),
        speed_std=float(speed.std(correction=0)),
        speed_error=float(error.mean()),
        speed_error_worst=float(error.max()),
        heading_drift_p95=float(tally.drift[rows].abs().quantile(0.95)),
        action_rate=float((tally.change[rows].sum() / tally.steps[rows].sum()).sqrt()),
        foot_height=float(tally.foot_height[rows].mean()),
    )


def save_evaluation(results: list[Evaluation], path: Path) -> None:
    """Write the results as JSON."""
    text = json.dumps([asdict(result) for result in results], indent=2)
    with replacing(path) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")


def plot_evaluation(results: list[Evaluation], path: Path) -> None:
    """Draw survival, reached against commanded speed, heading drift and action rate."""
    import matplotlib.figure  # noqa: PLC0415  (slow to import, needed here alone)

    figure = matplotlib.figure.Figure(figsize=(11, 7), layout="constrained")
    speed_axes, *bars = figure.subplots(2, 2).flat
    labels = [f"{result.task}\n{_label(result.command)}" for result in results]
    wanted = [(result.command[0] ** 2 + result.command[1] ** 2) ** 0.5 for result in results]
    most = max(0.35, *wanted, *(result.speed for result in results))
    speed_axes.plot([0, most], [0, most], "--", color="0.6", label="as commanded")
    spread = [result.speed_std for result in results]
    reached = [result.speed for result in results]
    speed_axes.errorbar(
        wanted, reached, spread, fmt="o", color="#e07b00", capsize=3, label="mean and deviation"
    )
    speed_axes.set(xlabel="commanded speed [m/s]", ylabel="reached speed [m/s]")
    speed_axes.legend()
    panels = {
        "survival [%]": [100 * result.survival for result in results],
        "heading drift, p95 [deg]": [result.heading_drift_p95 * 180 / pi for result in results],
        "action rate, RMS per step": [result.action_rate for result in results],
    }
    for axes, (label, values) in zip(bars, panels.items(), strict=True):
        axes.bar(labels, values, color="#f2b705")
        axes.set_ylabel(label)
        axes.tick_params(axis="x", labelsize=8)
    figure.savefig(path, dpi=110)


def _label(command: tuple[float, float, float]) -> str:
    return " ".join(f"{value:.2g}" for value in command)
