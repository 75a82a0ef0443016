"""How fast environment and training are, against bare physics in the same run."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import mujoco.batch
import numpy as np
import torch
from torchrl.envs import EnvBase

from microduck.env import MicroDuckEnv
from microduck.env.measure import MIN_HEIGHT_RATIO
from microduck.learning.collect import Collector
from microduck.learning.config import TrainConfig
from microduck.learning.ppo import PPO
from microduck.learning.recipes import find_library
from microduck.learning.run_folder import make_networks
from microduck.learning.symmetry import Mirror
from microduck.physics.model_parts import STAND_KEY
from microduck.physics.native import native_model
from microduck.physics.options import PhysicsOptions
from microduck.rewards import MIN_UPRIGHT

BARE = "bare Batch.step"
Notify = Callable[[int], None]


@dataclass(frozen=True)
class Rate:
    """One row of a benchmark.

    Attributes:
        name: what was stepped.
        steps_per_s: control steps per second over all ducks.
        of_reference: ratio to the reference of the same run, the median over rounds.
    """

    name: str
    steps_per_s: float
    of_reference: float


def bench(config: TrainConfig, rounds: int, notify: Notify = lambda done: None) -> list[Rate]:
    """Time bare physics, the environment and training, in turn, round by round.

    Args:
        config: ducks, steps and physics; each measurement is one batch of `config.steps` control steps.
        rounds: number of rounds counted.
        notify: called with the number of rounds done.
    """
    physics, real = config.physics_options, replace(config, actuator="xl330", randomize=1.0)
    cases = {
        BARE: bare(physics, config.num_envs, config.steps, config.action_scale),
        "environment alone": stepping(_env(config), config.steps),
        "environment with diagnostics": stepping(_env(config, diagnostics=True), config.steps),
        "environment with XL330 servos, randomised": stepping(_env(real), config.steps),
        "training (collect and learn)": _training(config),
        "training with XL330 servos, randomised": _training(real),
    }
    steps = dict.fromkeys(cases, config.num_envs * config.steps)
    return compare(cases, steps, BARE, rounds, notify)


def compare(
    cases: Mapping[str, Callable[[], None]],
    steps: Mapping[str, int],
    reference: str,
    rounds: int,
    notify: Notify = lambda done: None,
) -> list[Rate]:
    """Time cases in turn, round by round, after one round that is not counted.

    A shared machine changes speed from one second to the next, so each round's figures are compared with the
    reference of the same round.

    Args:
        cases: what to run, by name.
        steps: control steps that a run of each case makes.
        reference: name of the case to compare with.
        rounds: rounds to count.
        notify: called with the number of rounds done.
    """
    seconds: dict[str, list[float]] = {name: [] for name in cases}
    for done in range(rounds + 1):
        for name, run in cases.items():
            start = time.perf_counter()
            run()
            seconds[name].append((time.perf_counter() - start) / steps[name])
        notify(done)
    base = seconds[reference][1:]
    return [
        Rate(name, 1 / median(row[1:]), median(b / s for b, s in zip(base, row[1:], strict=True)))
        for name, row in seconds.items()
    ]


def bare(
    options: PhysicsOptions, count: int, steps: int, scale: float, scene: Path | None = None
) -> Callable[[], None]:
    """Return a run of `steps` control steps of `count` ducks on MuJoCo's batch and nothing else.

    Args:
        options: how physics is stepped.
        count: number of ducks.
        steps: control steps of a run.
        scale: travel of the random joint targets about STAND [rad].
        scene: MJCF of the duck; None for the built-in one.
    """
    model = native_model(options, scene)
    batch = mujoco.batch.Batch(model, count, options.worker_threads())
    key, substeps = model.keyframe(STAND_KEY).id, options.substeps_for(model.opt.timestep)
    batch.reset(keyframe=key)
    rng, stand, height = np.random.default_rng(0), model.key_ctrl[key], model.key_qpos[key, 2]
    targets = [stand + scale * rng.uniform(-1, 1, (count, model.nu)) for _ in range(steps)]

    def run() -> None:
        for target in targets:
            batch.ctrl[:] = target
            batch.step(nstep=substeps)
            fallen = np.flatnonzero(_fallen(batch.qpos, height))
            if len(fallen):
                batch.reset(fallen, keyframe=key)

    return run


def _fallen(qpos: np.ndarray, stand_height: float) -> np.ndarray:
    """Return which ducks start over: those the environment would end, so that both step like states."""
    upright = 1 - 2 * (qpos[:, 4] ** 2 + qpos[:, 5] ** 2)
    return (upright < MIN_UPRIGHT) | (qpos[:, 2] < MIN_HEIGHT_RATIO * stand_height)


def stepping(env: EnvBase, steps: int) -> Callable[[], None]:
    """Return a run of `steps` control steps of an environment with random actions and automatic resets."""
    state = [env.reset()]
    generator = torch.Generator().manual_seed(0)
    actions = [2 * torch.rand(env.action_spec.shape, generator=generator) - 1 for _ in range(steps)]

    def run() -> None:
        for action in actions:
            state[0]["action"] = action
            _, state[0] = env.step_and_maybe_reset(state[0])

    return run


def _env(config: TrainConfig, **settings: Any) -> MicroDuckEnv:
    return MicroDuckEnv(
        tasks=find_library(config.library),
        num_envs=config.num_envs,
        layout=config.layout,
        action_scale=config.action_scale,
        physics_options=config.physics_options,
        randomization=config.randomization,
        seed=config.seed,
        **settings,
    )


def _training(config: TrainConfig) -> Callable[[], None]:
    torch.manual_seed(config.seed)
    env = _env(config, privileged=True)
    mirror = Mirror(config.layout, env.tasks) if config.mirror else None
    ppo = PPO(*make_networks(config, env.tasks.batch_size[0]), config, mirror)
    collector = Collector(env, ppo.actor)

    def run() -> None:
        batch, _ = collector.collect(config.steps)
        ppo.update(batch)

    return run
