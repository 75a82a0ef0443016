"""Collecting transitions from a batch of ducks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from tensordict import TensorDict, TensorDictBase
from tensordict.nn import TensorDictModuleBase
from torch import Tensor

from microduck.env import MicroDuckEnv

KEEP = [
    "observation",
    "privileged",
    "task_id",
    "action",
    "loc",
    "action_log_prob",
    ("next", "privileged"),
    ("next", "task_id"),
    ("next", "reward"),
    ("next", "done"),
    ("next", "terminated"),
]


@dataclass
class CollectStats:
    """Of the episodes that ended and the steps taken in one batch.

    Attributes:
        episode_length: mean length of the episodes that ended, or None when none did.
        speed_error: mean distance of the planar velocity from its command [m/s].
        reward: mean reward of a step.
        progress: mean part of the commanded speed that ducks told to move reached, in [-1, 1].
    """

    episode_length: float | None
    speed_error: float
    reward: float
    progress: float


class Collector:
    """Steps an environment with a policy that samples, batch after batch, across episodes.

    Args:
        env: the ducks.
        actor: writes `action` and `action_log_prob`.
    """

    def __init__(self, env: MicroDuckEnv, actor: TensorDictModuleBase) -> None:
        self.env, self.actor = env, actor
        self._state: TensorDictBase = env.reset()
        self._lengths = torch.zeros(env.num_envs)

    @torch.no_grad()
    def collect(self, steps: int) -> tuple[TensorDict, CollectStats]:
        """Return the transitions of `steps` control steps, (num_envs, steps), and what they amount to."""
        rows, lengths, errors, progress = [], [], [], []
        for _ in range(steps):
            row, self._state = self.env.step_and_maybe_reset(self.actor(self._state))
            rows.append(row.select(*KEEP))
            errors.append(self._speed_error())
            progress.append(self._progress())
            lengths.append(self._ended(row.get(("next", "done")).squeeze(-1)))
        batch: Any = torch.stack(rows, dim=1)  # a TensorDict, which torch does not say
        ended = torch.cat(lengths)
        mean = float(ended.mean()) if len(ended) else None
        return batch, CollectStats(
            episode_length=mean,
            speed_error=float(torch.stack(errors).mean()),
            reward=float(batch["next", "reward"].mean()),
            progress=float(torch.stack(progress).mean()),
        )

    def _speed_error(self) -> Tensor:
        features = self.env.features
        return (features["body_velocity"][:, :2] - features["command"]).norm(dim=-1).mean()

    def _progress(self) -> Tensor:
        features = self.env.features
        return features["progress"].sum() / features["walking"].sum().clamp(min=1)

    def _ended(self, done: Tensor) -> Tensor:
        self._lengths += 1
        lengths = self._lengths[done]
        self._lengths[done] = 0
        return lengths
