"""The folder of a training run: what is in it, and how it is written and read.

config.json    the resolved configuration
tasks.tdz      the task library
checkpoint.pt  the last state: networks, optimiser, counters and random states
best.pt        the policy whose worst task was done best, where tasks were checked
log.csv        one row per update
scores.csv     one row per check of the tasks
training.png   both as curves
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hardware import contract
from hardware.errors import TrainingError
from microduck.env import privileged
from microduck.learning.checkpoint import (
    ANEW,
    State,
    describe,
    duration,
    load_weights,
    read_checkpoint,
    whole_number,
    write_checkpoint,
)
from microduck.learning.config import TrainConfig, load_config, save_config
from microduck.learning.faults import writing
from microduck.policy import SkillNetwork, SkillPolicy
from microduck.tasks import MicroDuckTask, load_library, save_library

HIDDEN = (128, 128, 128)
"""Widths of the hidden layers of actor and critic."""


class RunFolder:
    """Paths of a run and its files.

    Args:
        path: the folder; need not exist yet.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config_file = path / "config.json"
        self.library_file = path / "tasks.tdz"
        self.checkpoint_file = path / "checkpoint.pt"
        self.best_file = path / "best.pt"
        self.log_file = path / "log.csv"
        self.scores_file = path / "scores.csv"
        self.plot_file = path / "training.png"

    def refuse_another(self) -> None:
        """Refuse to begin where a run is already.

        Raises:
            TrainingError: a run is in the folder.
        """
        if self.config_file.exists():
            raise TrainingError(
                f"{self.path} holds a run already; go on with it (microduck resume) or choose another folder"
            )

    def create(self, config: TrainConfig, library: MicroDuckTask, state: State, fits: dict[str, Any]) -> None:
        """Make the folder for a new run.

        The configuration, which makes the folder a run, comes last: one that is killed before it can be begun
        anew, and one that is killed later can be resumed.

        Args:
            config: its configuration.
            library: its tasks.
            state: its first checkpoint.
            fits: what that fits, by `checkpoint.describe`.

        Raises:
            TrainingError: a run is in it already, or it cannot be written.
        """
        self.refuse_another()
        with writing(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
        with writing(self.library_file):
            save_library(library, self.library_file)
        write_checkpoint(state, fits, self.checkpoint_file)
        self.save_config(config)

    def sweep(self) -> None:
        """Remove what a kill left half written."""
        files = (self.checkpoint_file, self.best_file, self.config_file, self.log_file, self.scores_file)
        for file in (*files, self.plot_file):
            for leftover in self.path.glob(f".{file.stem}.*{file.suffix}"):
                leftover.unlink()

    def save_config(self, config: TrainConfig) -> None:
        """Write the run's configuration.

        Raises:
            TrainingError: it cannot be written.
        """
        with writing(self.config_file):
            save_config(config, self.config_file)

    def config(self) -> TrainConfig:
        """Return the run's configuration.

        Raises:
            TrainingError: the folder holds no run.
            ConfigError: the configuration is damaged.
        """
        if not self.config_file.is_file():
            raise TrainingError(f"{self.path} is no training run; make one there with microduck train")
        return load_config(self.config_file)

    def library(self, *, rewarded: bool = False) -> MicroDuckTask:
        """Return the run's task library.

        Args:
            rewarded: whether rewards will be computed, so that every term must be registered.
        """
        return load_library(self.library_file, drop_unknown=not rewarded)

    def checkpoint(
        self, fits: dict[str, Any], *, last: bool = True, way_out: str = ANEW
    ) -> tuple[State, Path]:
        """Return a checkpoint and its file.

        Args:
            fits: what it must fit, by `checkpoint.describe`.
            last: take the last state even where there is a best policy.
            way_out: what to advise where it was made for something else.

        Raises:
            TrainingError: there is none, it is damaged, or was made for something else.
        """
        path = self.best_file if not last and self.best_file.is_file() else self.checkpoint_file
        if not path.is_file():
            raise TrainingError(f"{self.path} has no {path.name}; train a run there first (microduck train)")
        return read_checkpoint(path, fits, way_out), path


def make_networks(config: TrainConfig, num_tasks: int) -> tuple[SkillPolicy, SkillNetwork]:
    """Return a new actor, which sees the layout, and a critic, which sees what the simulator knows."""
    width = contract.width(config.layout)
    policy = SkillPolicy(width, num_tasks, hidden=HIDDEN, initial_std=config.initial_std)
    return policy, SkillNetwork(privileged.WIDTH, num_tasks, 1, HIDDEN)


def load_policy(
    run: RunFolder, *, last: bool = False
) -> tuple[SkillPolicy, MicroDuckTask, TrainConfig, dict[str, Any]]:
    """Return a run's trained policy, library, configuration and counters.

    Args:
        run: the folder.
        last: take the last policy even where the best by its worst task is known.

    Raises:
        TrainingError: there is no checkpoint, or it is of other networks.
    """
    config, library = run.config(), run.library()
    policy, _ = make_networks(config, library.batch_size[0])
    state, path = run.checkpoint(describe(config, library, policy), last=last)
    load_weights(policy, state, "policy", path)
    counters = {
        "transitions": whole_number(state, "transitions", path),
        "seconds": duration(state, "seconds", path),
        "checkpoint": path.name,
    }
    return policy, library, config, counters
