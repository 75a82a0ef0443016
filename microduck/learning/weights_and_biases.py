"""Numbers to Weights & Biases; WANDB_MODE=offline keeps them in the run's folder."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import wandb

from hardware.errors import ConfigError, TrainingError
from hardware.files import read_bounded, replacing
from microduck.learning.config import TrainConfig
from microduck.learning.faults import writing

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class WeightsAndBiases:
    """One run at Weights & Biases, which a resumed training goes on with.

    Args:
        config: names the project; shown with the run.
        folder: the training's folder; the run's name there is kept in its `wandb-run.txt`.

    Raises:
        ConfigError: the service refuses, such as without a login.
    """

    def __init__(self, config: TrainConfig, folder: Path) -> None:
        file = folder / "wandb-run.txt"
        try:
            self._run = wandb.init(
                project=config.wandb,
                name=folder.name,
                dir=folder,
                id=_known(file),
                resume="allow",
                config=asdict(config),
            )
        except wandb.Error as error:
            raise ConfigError(
                f"Weights & Biases refuses project {config.wandb!r}: {error}; wandb login, or set "
                "WANDB_MODE=offline; microduck resume goes on, with --wandb '' without the service"
            ) from error
        with writing(file), replacing(file) as temporary:
            temporary.write_text(self._run.id, encoding="utf-8")
        self._run.define_metric("*", step_metric="transitions")

    def write(self, values: Mapping[str, float], transitions: int) -> None:
        """Send numbers by name."""
        self._run.log({**values, "transitions": transitions})

    def close(self) -> None:
        """Send what is left."""
        self._run.finish()


def _known(file: Path) -> str | None:
    """Return the name of the run that an earlier part of the training made."""
    if not file.exists():
        return None
    name = read_bounded(file, 64, TrainingError).decode("utf-8", "replace").strip()
    if not _NAME.fullmatch(name):
        raise TrainingError(f"{file} holds {name!r}, which names no run; remove it to begin another")
    return name
