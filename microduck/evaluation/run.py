"""Evaluation: the policy's mean action, cold starts, held-out seeds, every episode counted."""

from __future__ import annotations

from collections.abc import Callable

import torch
from tensordict import TensorDict
from torch import Tensor

from microduck.env import MicroDuckEnv
from microduck.evaluation.commands import YAW, Point, points, tensors
from microduck.evaluation.criteria import TaskResult, judge
from microduck.evaluation.demands import demands
from microduck.evaluation.options import EvaluationOptions
from microduck.evaluation.results import Wanted, figures
from microduck.evaluation.tally import Tally
from microduck.evaluation.traces import Recorder
from microduck.tasks import JOINT_RESET_NOISE, MicroDuckTask

Actor = Callable[[Tensor, Tensor], Tensor]
"""Takes observations (n, width) and task ids (n, 1), returns mean actions (n, 14); a `SkillPolicy` is one."""


def evaluate(
    policy: Actor,
    library: MicroDuckTask,
    options: EvaluationOptions,
    notify: Callable[[int], None] = lambda step: None,
    recorder: Recorder | None = None,
) -> list[TaskResult]:
    """Run every task and return one result each, in the library's order.

    All episodes of all commands run at once, each to its end; what the library says of warm starts, joint
    noise at reset and new commands within an episode is left aside.

    Args:
        policy: the actor, on the CPU.
        library: the tasks.
        options: counts, layout, physics and seed.
        notify: called with the number of control steps taken, after each.
        recorder: keeps the first episode of every command.

    Raises:
        TaskError: a row is not valid.
    """
    tried, asked = points(library, options.grid), demands(library)
    wanted = [Wanted(command, command[YAW] or asked[task_id].turn_rate) for task_id, command in tried]
    env = _environment(library, options, len(tried))
    state = env.reset(_requests(env, tried, options.episodes))
    yaw_rates = torch.tensor([each.yaw_rate for each in wanted]).repeat_interleave(options.episodes)
    tally = Tally(env.physics.qpos, yaw_rates)
    with torch.no_grad():
        for step in range(options.steps):
            state["action"] = policy(state["observation"], state["task_id"])
            state = env.step(state)["next"]
            tally.add({**env.features, "joint_torque": env.physics.joint_torques().float()}, step)
            if recorder is not None:
                recorder.add(env, tally.alive, options.episodes)
            notify(step + 1)
    count, mass = options.episodes, float(env.mj_model.body_subtreemass[0])
    found = [figures(tally, slice(i * count, i * count + count), w, mass) for i, w in enumerate(wanted)]
    return [
        judge(
            name,
            asked[task_id],
            tuple(each for point, each in zip(tried, found, strict=True) if point.task_id == task_id),
            options.criteria,
        )
        for task_id, name in enumerate(library.names)
    ]


def _environment(library: MicroDuckTask, options: EvaluationOptions, commands: int) -> MicroDuckEnv:
    cold = library.clone()
    cold.warm_start_fraction.zero_()
    cold.joint_reset_noise_scale.fill_(JOINT_RESET_NOISE)
    cold.command_resample_interval.zero_()
    return MicroDuckEnv(
        tasks=cold,
        num_envs=options.episodes * commands,
        layout=options.layout,
        action_scale=options.action_scale,
        max_episode_steps=options.steps,
        seed=options.seed,
        physics_options=options.physics_options,
        randomization=options.randomization,
    )


def _requests(env: MicroDuckEnv, tried: list[Point], episodes: int) -> TensorDict:
    """Return what a reset is asked for: the episodes of each command next to each other."""
    task_id, command = (values.repeat_interleave(episodes, dim=0) for values in tensors(tried))
    given = {"task_id": task_id, "command": command[:, :2], "yaw_rate_command": command[:, 2:]}
    return TensorDict(given, batch_size=env.batch_size)
