"""The folder of a training run: what is in it, and how it is written and read.

config.json    the resolved configuration
tasks.tdz      the task library
checkpoint.pt  networks, optimiser, counters and random states (tensors only, no pickled objects)
log.csv        one row per update
training.png   the log as curves
"""

from __future__ import annotations

from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch

from hardware import contract
from hardware.errors import TrainingError
from hardware.files import replacing
from microduck.learning.config import TrainConfig, load_config, save_config
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
        self.log_file = path / "log.csv"
        self.plot_file = path / "training.png"

    def create(self, config: TrainConfig, library: MicroDuckTask) -> None:
        """Make the folder for a new run.

        Raises:
            TrainingError: a run is in it already.
        """
        if self.config_file.exists():
            raise TrainingError(
                f"{self.path} holds a run already; go on with it (microduck resume) or choose another folder"
            )
        self.path.mkdir(parents=True, exist_ok=True)
        save_library(library, self.library_file)
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

    def save_checkpoint(self, state: dict[str, Any]) -> None:
        """Write a checkpoint; the last one stays until the new one is whole."""
        with replacing(self.checkpoint_file) as temporary:
            torch.save(state, temporary)

    def load_checkpoint(self) -> dict[str, Any]:
        """Return the last checkpoint.

        Raises:
            TrainingError: there is none, or it is damaged.
        """
        if not self.checkpoint_file.is_file():
            raise TrainingError(
                f"{self.path} has no checkpoint.pt; train a run there first (microduck train)"
            )
        try:
            return torch.load(self.checkpoint_file, weights_only=True)
        except (RuntimeError, UnpicklingError, EOFError, OSError) as error:
            raise TrainingError(f"{self.checkpoint_file} is damaged or no checkpoint: {error}") from error


def make_networks(config: TrainConfig, num_tasks: int) -> tuple[SkillPolicy, SkillNetwork]:
    """Return a new actor and critic for a configuration."""
    width = contract.width(config.layout)
    policy = SkillPolicy(width, num_tasks, hidden=HIDDEN, initial_std=config.initial_std)
    return policy, SkillNetwork(width, num_tasks, 1, HIDDEN)


def load_policy(run: RunFolder) -> tuple[SkillPolicy, MicroDuckTask, TrainConfig, dict[str, Any]]:
    """Return a run's trained policy, library, configuration and counters.

    Raises:
        TrainingError: there is no checkpoint, or it is of other networks.
    """
    config, library = run.config(), run.library()
    state = run.load_checkpoint()
    policy, _ = make_networks(config, library.batch_size[0])
    load_weights(policy, state, "policy", run)
    return policy, library, config, {key: state[key] for key in ("transitions", "seconds")}


def load_weights(network: torch.nn.Module, state: dict[str, Any], name: str, run: RunFolder) -> None:
    """Put a checkpoint's weights into a network.

    Raises:
        TrainingError: the checkpoint lacks them or they are of another shape.
    """
    try:
        network.load_state_dict(state[name])
    except (KeyError, RuntimeError) as error:
        raise TrainingError(
            f"the checkpoint in {run.path} does not fit its configuration: {error}"
        ) from error
