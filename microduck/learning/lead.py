"""One task that learns alone at first; the others then start from what it has learned.

All tasks of a library share a network. While none of them can step, those that are paid for standing still
teach it to stand still; once one can walk, a walk is the nearest way to all that steps.
"""

from __future__ import annotations

import torch
from torch import Tensor

from microduck.env import MicroDuckEnv
from microduck.policy import SkillNetwork, SkillPolicy
from microduck.tasks import MicroDuckTask, command_box

LEARNED = 0.7
"""Mean progress of its ducks at which the lead is over; a duck that walks as told makes 1."""
SMOOTHING = 0.05
"""Weight of the newest batch in that mean."""
LEAST_SPEED = 0.1
"""Fastest command from which on a task is one that moves [m/s]."""


def first_mover(library: MicroDuckTask) -> int | None:
    """Return the first task that is told to move; None where none is, or where it is alone anyway."""
    low, high = command_box(library)
    fastest = torch.maximum(low.abs(), high.abs())[:, :2].amax(-1)
    movers = ((fastest >= LEAST_SPEED) & (library.weight > 0)).nonzero().flatten().tolist()
    return movers[0] if movers and len(library.names) > 1 else None


class Lead:
    """Gives a task the lead.

    Args:
        env: draws tasks by its shares.
        task_id: the task that leads, None for no lead.
    """

    def __init__(self, env: MicroDuckEnv, task_id: int | None) -> None:
        self._env, self._task_id, self._progress = env, task_id, 0.0
        if task_id is not None:
            alone = torch.zeros(len(env.task_shares))
            alone[task_id] = 1.0
            env.task_shares = alone

    @property
    def on(self) -> bool:
        """Whether one task is still trained alone; a resumed run goes by the shares it was saved with."""
        return self._task_id is not None and bool(self._env.task_shares[self._task_id] == 1)

    def follow(self, progress: float) -> bool:
        """Take note of a batch's mean progress; return whether the lead is over with it."""
        self._progress += SMOOTHING * (progress - self._progress)
        return self.on and self._progress >= LEARNED

    def hand_over(self, policy: SkillPolicy, critic: SkillNetwork, shares: Tensor) -> None:
        """Let every task start from the leading one, drawn by `shares` (num_tasks,) from now on."""
        assert self._task_id is not None  # only a lead that is on can be over
        policy.spread(self._task_id)
        critic.spread(self._task_id)
        self._env.task_shares = shares
