"""The part of a trainer that writes down where it is, and takes that up again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from hardware.errors import TrainingError
from microduck.env import MicroDuckEnv
from microduck.learning.checkpoint import (
    State,
    describe,
    duration,
    load_optimiser,
    load_weights,
    reward_terms,
    scores_in,
    undamaged,
    whole_number,
    write_checkpoint,
)
from microduck.learning.config import TrainConfig
from microduck.learning.faults import Faults
from microduck.learning.ppo import PPO
from microduck.learning.ranks import Ranks
from microduck.learning.run_folder import RunFolder
from microduck.policy import SkillNetwork, SkillPolicy


class Resumable:
    """Checkpoints of a trainer. Process 0 writes them; every process reads them."""

    run_folder: RunFolder
    config: TrainConfig
    ranks: Ranks
    policy: SkillPolicy
    critic: SkillNetwork
    ppo: PPO
    env: MicroDuckEnv
    transitions: int
    seconds: float
    best: Tensor | None
    faults: Faults

    def save(self) -> None:
        """Write a checkpoint, in process 0.

        Raises:
            TrainingError: it cannot be written.
        """
        if self.ranks.first:
            write_checkpoint(self.state(), self.fits(), self.run_folder.checkpoint_file)

    def save_best(self) -> None:
        """Write the present policy down as the best, in process 0.

        Raises:
            TrainingError: it cannot be written.
        """
        if self.ranks.first:
            state = {"policy": self.policy.state_dict(), "scores": self.best, **self._counters()}
            write_checkpoint(state, self.fits(), self.run_folder.best_file)

    def fits(self) -> dict[str, Any]:
        """Return what the trainer's checkpoints fit, in plain values."""
        library = self.env.tasks
        return {
            **describe(self.config, library, self.policy, self.critic),
            "reward terms": reward_terms(library),
        }

    def _counters(self) -> State:
        return {"transitions": self.transitions, "seconds": self.seconds}

    def state(self) -> State:
        """Return all that a run needs to go on."""
        return {
            "policy": self.policy.state_dict(),
            "critic": self.critic.state_dict(),
            "optimiser": self.ppo.optimiser.state_dict(),
            **self._counters(),
            "dropped": self.faults.dropped,
            "undone": self.faults.undone,
            "shares": self.env.task_shares,
            "torch_rng": torch.get_rng_state(),
            "env_rng": self.env.rng_state,
        }

    def restore(self) -> None:
        """Take up the last checkpoint.

        Raises:
            TrainingError: there is none, it is damaged, or it was made for something else.
        """
        state, path = self.run_folder.checkpoint(self.fits())
        load_weights(self.policy, state, "policy", path)
        load_weights(self.critic, state, "critic", path)
        load_optimiser(self.ppo.optimiser, state, path)
        self.transitions = whole_number(state, "transitions", path)
        self.seconds = duration(state, "seconds", path)
        self.faults = Faults(*(whole_number(state, name, path) for name in ("dropped", "undone")))
        with undamaged(path, "shares"):
            self.env.task_shares = state["shares"]
        self._restore_draws(state, path)
        if self.run_folder.best_file.is_file():
            best, path = self.run_folder.checkpoint(self.fits(), last=False)
            self.best = scores_in(best, len(self.env.task_shares), path)

    def take_over(self, run: RunFolder) -> None:
        """Begin with the networks of another run, whose rewards may have been others.

        Raises:
            TrainingError: it is no run, or one of other tasks or networks.
        """
        if not run.config_file.is_file():
            found = "a folder without a run" if run.path.is_dir() else "not there"
            raise TrainingError(
                f"cannot start from {run.path}: it is {found}; name a folder that microduck train has made"
            )
        its = run.config()
        made_for = describe(self.config, self.env.tasks, self.policy, self.critic)
        state, path = run.checkpoint(
            made_for,
            way_out="Start from a run of the same tasks and networks, or train what that one was made for: "
            f"--library {run.library_file}, or another with these tasks, "
            f"--layout {its.layout} --action-scale {its.action_scale:g}",
        )
        load_weights(self.policy, state, "policy", path)
        load_weights(self.critic, state, "critic", path)

    def _restore_draws(self, state: State, path: Path) -> None:
        if self.ranks.first:
            with undamaged(path, "torch_rng"):
                torch.set_rng_state(state["torch_rng"])
            with undamaged(path, "env_rng"):
                self.env.rng_state = state["env_rng"]
        else:
            # Only process 0 wrote its draws down: the others draw anew, but not what they drew before.
            seed = self.config.seed + self.ranks.rank + self.transitions
            torch.manual_seed(seed)
            self.env.set_seed(seed)
