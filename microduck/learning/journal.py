"""Where a run's numbers go: its CSV files and curves, and TensorBoard or Weights & Biases where wanted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

from hardware.errors import ConfigError
from microduck.learning.config import TrainConfig
from microduck.learning.log import (
    CLOCK,
    LOG_COLUMNS,
    LogRow,
    ScoreRow,
    Table,
    log_values,
    plot_log,
    read_log,
    read_scores,
)
from microduck.learning.run_folder import RunFolder


class Sink(Protocol):
    """A service that shows numbers over transitions."""

    def write(self, values: Mapping[str, float], transitions: int) -> None:
        """Take numbers by name, as they are after so many transitions."""

    def close(self) -> None:
        """Send what is left."""


class Journal:
    """Writes down what a run does.

    Args:
        run: its folder.
        config: which services to write to besides the CSV files.
        tasks: names of its tasks.
        since: transitions that the run has behind it; what was written beyond is dropped.
    """

    def __init__(self, run: RunFolder, config: TrainConfig, tasks: Sequence[str], since: int = 0) -> None:
        self._run, self._tasks = run, tasks
        self._log = Table(run.log_file, LOG_COLUMNS, since)
        self._scores = Table(run.scores_file, [*CLOCK, *tasks], since)
        self._sinks = _sinks(config, run.path, since)

    def update(self, row: LogRow) -> None:
        """Write down an update."""
        self._log.append(log_values(row))
        self._send({f"training/{name}": value for name, value in asdict(row).items()}, row.transitions)

    def check(self, row: ScoreRow) -> None:
        """Write down a check of the tasks."""
        self._scores.append([row.transitions, row.seconds, *row.scores])
        scores = dict(zip(self._tasks, row.scores, strict=True))
        named = {f"score/{name}": score for name, score in scores.items()}
        self._send({**named, "score_of_worst_task": min(row.scores)}, row.transitions)

    def _send(self, values: Mapping[str, float], transitions: int) -> None:
        for sink in self._sinks:
            sink.write(values, transitions)

    def close(self) -> None:
        """Draw the curves and end what was begun."""
        for sink in self._sinks:
            sink.close()
        run, tasks = self._run, self._tasks
        plot_log(read_log(run.log_file), read_scores(run.scores_file, tasks), tasks, run.plot_file)


def check_installed(config: TrainConfig) -> None:
    """Refuse a configuration whose services are not installed.

    Raises:
        ConfigError: names what to install.
    """
    for wanted, module, option in (
        (config.tensorboard, "tensorboard", "--tensorboard"),
        (config.wandb, "wandb", "--wandb"),
    ):
        if wanted and find_spec(module) is None:
            raise ConfigError(f"{module} is not installed: pip install {module}, or train without {option}")


def _sinks(config: TrainConfig, folder: Path, since: int) -> list[Sink]:
    sinks: list[Sink] = []
    if config.tensorboard:
        from microduck.learning.tensorboard import TensorBoard  # noqa: PLC0415  (slow to import)

        sinks.append(TensorBoard(folder / "tensorboard", since))
    if config.wandb:
        from microduck.learning.weights_and_biases import WeightsAndBiases  # noqa: PLC0415  (optional)

        sinks.append(WeightsAndBiases(config, folder))
    return sinks
