"""A task sampler that raises the share of the tasks that lag."""

from __future__ import annotations

from typing import Any

import torch
from tensordict import TensorDictBase
from torch import Tensor
from torchrl.envs import EnvBase

from hardware.errors import ConfigError, TaskError
from microduck.env import MicroDuckEnv
from microduck.metrics import planar_score
from microduck.rewards import Features
from microduck.sampler import MicroDuckTaskSampler, known, overwrite
from microduck.tasks.shares import Weights, by_success, shares


class SuccessTaskSampler(MicroDuckTaskSampler):
    """Draws tasks that lag more often, by the recent success of their episodes.

    A task is drawn with a probability of

        floor * share + (1 - floor) * share * (1 - success) / sum of share * (1 - success) over all tasks

    where `share` is its part of the library's weights. What a task lacks enters as it is: one that always
    fails is drawn twice as often as one half solved, not more, so that no hopeless task takes all. `floor`
    keeps solved tasks from being forgotten. Each task starts at no success, so all start at their shares.

    `success` is a moving average over finished episodes. An episode scores the mean of `score` over its
    steps, with nothing for those up to `max_episode_steps` that a fall cost it. Episodes that a reset of all
    environments breaks off do not count. The velocity is the simulator's, so any observation layout will do,
    but the environment must be a MicroDuckEnv; around worker processes, append one sampler inside each.

    Args:
        floor: part of its share that a task keeps whatever its success, in [0, 1].
        smoothing: weight of one finished episode in the average, in (0, 1].
        task_id_key: as for MicroDuckTaskSampler.
        seed: as for MicroDuckTaskSampler.

    Attributes:
        success: of each task, (num_tasks,) in [0, 1]; None until appended.
        shares: what the weights give each task, (num_tasks,); None until appended.

    Raises:
        ConfigError: `floor` or `smoothing` is out of range.
        TaskError: when appended: the environment is no MicroDuckEnv.
    """

    success: Tensor | None
    shares: Tensor | None

    def __init__(
        self,
        *,
        floor: float = 0.25,
        smoothing: float = 0.05,
        task_id_key: Any = "task_id",
        seed: int | None = None,
    ) -> None:
        if not 0 <= floor <= 1:
            raise ConfigError(f"floor is {floor}; it must be in [0, 1]")
        if not 0 < smoothing <= 1:
            raise ConfigError(f"smoothing is {smoothing}; it must be in (0, 1]")
        super().__init__({}, task_id_key=task_id_key, seed=seed)  # no weights before there is a library
        self.floor, self.smoothing = floor, smoothing
        self.register_buffer("success", None)
        self.register_buffer("shares", None)

    def set_weights(self, weights: Weights) -> None:
        """Give the tasks other shares; their success is kept.

        Raises:
            TaskError: they are not valid or do not fit the library, or the sampler is not appended yet.
        """
        overwrite(known(self.shares), weights, self._names())
        self._follow()

    def score(self, features: Features) -> Tensor:
        """Return how well each duck did its task in a step, (num_envs,) in [0, 1].

        This is `metrics.planar_score`. Override it for tasks that are more than a planar velocity: it takes
        standing still for success at a jump or a turn in place.

        Args:
            features: of the step, as in `microduck.rewards.features`.
        """
        return planar_score(features["body_velocity"][:, :2], features["command"])

    def record(self, task_ids: Tensor, scores: Tensor) -> None:
        """Count finished episodes, any number of each task; those of one task count by their mean.

        Args:
            task_ids: their tasks, (k,) int64.
            scores: how well they went, (k,) in [0, 1].

        Raises:
            TaskError: a score is outside [0, 1], or the sampler is not appended yet.
        """
        success = known(self.success)
        if not bool(((scores >= 0) & (scores <= 1)).all()):
            raise TaskError(f"scores are {scores.tolist()}; they must be in [0, 1]")
        count = torch.bincount(task_ids, minlength=len(success))
        total = torch.bincount(task_ids, weights=scores, minlength=len(success))
        kept = (1 - self.smoothing) ** count
        success.copy_(kept * success + (1 - kept) * total / count.clamp(min=1))
        self._follow()

    def _follow(self) -> None:
        """Let the probabilities follow success and shares."""
        wanted = by_success(known(self.shares), known(self.success), self.floor)
        known(self.probabilities).copy_(wanted)

    def _bind(self, env: EnvBase) -> None:
        if not isinstance(env, MicroDuckEnv):
            raise TaskError(
                f"SuccessTaskSampler measures a MicroDuckEnv, not a {type(env).__name__}; append it to the "
                "MicroDuckEnv inside, or use MicroDuckTaskSampler"
            )
        if self.success is None:
            self.shares = shares(env.tasks.weight.to(env.device), env.tasks.names)
            self.success, self.probabilities = torch.zeros_like(self.shares), self.shares.clone()
        super()._bind(env)
        self._earned, self._steps = torch.zeros(2, env.num_envs, device=env.device)
        self._task_id = torch.zeros(env.num_envs, dtype=torch.int64, device=env.device)

    def _ducks(self) -> MicroDuckEnv:
        env = self._base_env()
        assert isinstance(env, MicroDuckEnv)  # `_bind` saw to it
        return env

    def _step(self, tensordict: TensorDictBase, next_tensordict: TensorDictBase) -> TensorDictBase:
        env = self._ducks()
        features = env.features
        fallen = features["fallen"]
        self._earned += self.score(features) * ~fallen
        self._steps += 1
        self._task_id = next_tensordict[self.task_id_key].reshape(-1)
        possible = torch.where(fallen, env.max_episode_steps, self._steps)
        self._finish(next_tensordict["done"].reshape(-1), possible)
        return next_tensordict

    def _reset_env_preprocess(self, tensordict: TensorDictBase | None) -> TensorDictBase:
        mask = None if tensordict is None else tensordict.get("_reset", None)
        if mask is None:
            self._earned.zero_()
            self._steps.zero_()
        else:  # what was not done in its step has been ended by another transform, such as StepCounter
            self._finish(mask.reshape(len(self._steps), -1).any(-1), self._steps)
        return super()._reset_env_preprocess(tensordict)

    def _finish(self, ended: Tensor, possible: Tensor) -> None:
        """Record the episodes that ended, of `possible` steps each, (num_envs,)."""
        rows = ended & (self._steps > 0)
        if bool(rows.any()):
            self.record(self._task_id[rows], (self._earned / possible)[rows])
            self._earned[rows], self._steps[rows] = 0, 0
