"""How fast training is, against bare physics in the same run."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import mujoco.batch
import numpy as np
import torch

from microduck.env import MIN_HEIGHT_RATIO, MicroDuckEnv
from microduck.learning.collect import Collector
from microduck.learning.config import TrainConfig
from microduck.learning.ppo import PPO
from microduck.learning.recipes import find_library
from microduck.learning.run_folder import make_networks
from microduck.learning.symmetry import Mirror
from microduck.physics.native import STAND_KEY, PhysicsOptions, load_model
from microduck.rewards import MIN_UPRIGHT


@dataclass(frozen=True)
class Rate:
    """One row of the benchmark.

    Attributes:
        name: what was stepped.
        steps_per_s: control steps per second over all ducks.
        of_bare: ratio to bare physics, the median over rounds.
    """

    name: str
    steps_per_s: float
    of_bare: float


def bench(config: TrainConfig, rounds: int, notify: Callable[[int], None] = lambda done: None) -> list[Rate]:
    """Time bare physics, the environment alone and training, in turn, round by round.

    A shared machine changes speed from one second to the next, so each round's figures are compared with the
    bare physics of the same round.

    Args:
        config: ducks, steps and physics; each measurement is one batch of `config.steps` control steps.
        rounds: number of rounds; the first is not counted.
        notify: called with the number of rounds done.
    """
    physics = PhysicsOptions(config.substeps, config.threads or None)
    cases = {
        "bare Batch.step": _bare(config, physics),
        "environment alone": _stepping(_env(config, physics), config),
        "training (collect and learn)": _training(_env(config, physics), config),
    }
    times: dict[str, list[float]] = {name: [] for name in cases}
    for done in range(rounds + 1):
        for name, run in cases.items():
            start = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - start)
        notify(done)
    bare = times["bare Batch.step"][1:]
    steps = config.num_envs * config.steps
    return [
        Rate(name, steps / median(row[1:]), median(b / t for b, t in zip(bare, row[1:], strict=True)))
        for name, row in times.items()
    ]


def _env(config: TrainConfig, physics: PhysicsOptions) -> MicroDuckEnv:
    return MicroDuckEnv(
        find_library(config.library),
        num_envs=config.num_envs,
        layout=config.layout,
        action_scale=config.action_scale,
        physics=physics,
        seed=config.seed,
    )


def _targets(config: TrainConfig, stand: np.ndarray) -> list[np.ndarray]:
    rng = np.random.default_rng(config.seed)
    shape = (config.num_envs, len(stand))
    return [stand + config.action_scale * rng.uniform(-1, 1, shape) for _ in range(config.steps)]


def _bare(config: TrainConfig, physics: PhysicsOptions) -> Callable[[], None]:
    model = load_model(config.substeps, visuals=False, body_contacts=physics.body_contacts)
    batch = mujoco.batch.Batch(model, config.num_envs, physics.worker_threads())
    key = model.keyframe(STAND_KEY).id
    batch.reset(keyframe=key)
    targets, stand_height = _targets(config, model.key_ctrl[key]), model.key_qpos[key, 2]

    def run() -> None:
        for target in targets:
            batch.ctrl[:] = target
            batch.step(nstep=config.substeps)
            fallen = np.flatnonzero(_fallen(batch.qpos, stand_height))
            if len(fallen):
                batch.reset(fallen, keyframe=key)

    return run


def _fallen(qpos: np.ndarray, stand_height: float) -> np.ndarray:
    """Return which ducks start over: those the environment would end, so that both step like states."""
    upright = 1 - 2 * (qpos[:, 4] ** 2 + qpos[:, 5] ** 2)
    return (upright < MIN_UPRIGHT) | (qpos[:, 2] < MIN_HEIGHT_RATIO * stand_height)


def _stepping(env: MicroDuckEnv, config: TrainConfig) -> Callable[[], None]:
    state = [env.reset()]
    generator = torch.Generator().manual_seed(config.seed)
    shape = env.action_spec.shape
    actions = [2 * torch.rand(shape, generator=generator) - 1 for _ in range(config.steps)]

    def run() -> None:
        for action in actions:
            state[0]["action"] = action
            _, state[0] = env.step_and_maybe_reset(state[0])

    return run


def _training(env: MicroDuckEnv, config: TrainConfig) -> Callable[[], None]:
    torch.manual_seed(config.seed)
    mirror = Mirror(config.layout, env.tasks) if config.mirror else None
    ppo = PPO(*make_networks(config, env.tasks.batch_size[0]), config, mirror)
    collector = Collector(env, ppo.actor)

    def run() -> None:
        batch, _ = collector.collect(config.steps)
        ppo.update(batch)

    return run
