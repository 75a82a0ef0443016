"""Checks of every task while training goes on: they choose the policy to keep and the tasks to draw more."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from microduck.evaluation import ROUGH, EvaluationOptions, evaluate, score
from microduck.learning.config import TrainConfig
from microduck.policy import SkillPolicy
from microduck.randomization import Randomization
from microduck.tasks import MicroDuckTask

SEED = 20_000
"""Seed of the checks' resets: no training counts so far, and the evaluation proper has others."""
EPISODES = 8
"""Episodes of each command."""
STEPS = 300
"""Length of an episode [control steps]: long enough to fall, or to drift."""
GRID = 2
"""Commands of each task: the extremes of its box."""
FLOOR = 0.25
"""Part of its share that a task keeps when all others lag, so that it is not forgotten."""


def task_scores(policy: SkillPolicy, library: MicroDuckTask, config: TrainConfig, seed: int = SEED) -> Tensor:
    """Return how well each task is done, (num_tasks,) in [0, 1].

    Where training makes ducks differ, each task is tried on nominal ducks and on ducks that differ as much
    as they ever will, from the first check on, and the worse score counts: what does well on the nominal
    duck alone must not pass for the best.

    Args:
        policy: the actor; its mean action is used.
        library: the tasks.
        config: layout, action scale, physics and randomisation of the training.
        seed: seed of the resets, the same at each check so that one compares with the next.
    """
    options = EvaluationOptions(
        config.layout,
        config.action_scale,
        episodes=EPISODES,
        steps=STEPS,
        seed=seed,
        grid=GRID,
        physics_options=config.physics_options,
    )
    scores = _scores(policy, library, options)
    if not config.randomize:
        return scores
    ducks = Randomization.full().scaled(config.randomize)
    return scores.minimum(_scores(policy, library, replace(options, randomization=ducks, criteria=ROUGH)))


def _scores(policy: SkillPolicy, library: MicroDuckTask, options: EvaluationOptions) -> Tensor:
    return torch.tensor([score(result) for result in evaluate(policy, library, options)])


def standing(scores: Tensor) -> tuple[float, float]:
    """Return what policies are compared by: their worst task, and between equals the mean."""
    return float(scores.min()), float(scores.mean())
