"""The training log as files: a CSV row per update, one per check of the tasks, and the curves of both."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

from hardware.contract import CONTROL_PERIOD_S
from hardware.errors import TrainingError
from hardware.files import read_bounded, replacing
from microduck.learning.faults import writing

MAX_BYTES = 256 * 1024 * 1024
"""Most a log may hold; an hour of training makes about one million bytes."""
CLOCK = ("transitions", "seconds")
"""First columns of every table."""


@dataclass(frozen=True)
class LogRow:
    """One update.

    Attributes:
        transitions: control steps so far over all ducks.
        seconds: training time so far [s].
        rate: transitions per second of this update, collecting and learning.
        episode_length: mean length of the episodes that ended lately [control steps].
        speed_error: mean distance of the planar velocity from its command [m/s].
        reward: mean reward of a step.
        kl: mean KL divergence of the old policy from the updated one.
        policy_loss: PPO's clipped objective, negated.
        value_loss: squared error of the critic.
        learning_rate: Adam's step size.
        std: mean standard deviation of the actions.
        dropped: batches dropped so far, for a reward that was not finite.
        undone: updates undone so far, for a loss or gradient that was not finite.
    """

    transitions: int
    seconds: float
    rate: float
    episode_length: float
    speed_error: float
    reward: float
    kl: float
    policy_loss: float
    value_loss: float
    learning_rate: float
    std: float
    dropped: int
    undone: int

    def __str__(self) -> str:
        faults = f"  {self.dropped} dropped, {self.undone} undone" if self.dropped or self.undone else ""
        return (
            f"{self.transitions / 1e6:.2f} M steps  {self.rate:,.0f}/s  "
            f"episode {self.episode_length * CONTROL_PERIOD_S:.1f} s  off {self.speed_error:.3f} m/s{faults}"
        )


@dataclass(frozen=True)
class ScoreRow:
    """One check of every task.

    Attributes:
        transitions: control steps so far over all ducks.
        seconds: training time so far, this check included [s].
        scores: how well each task is done, in the library's order, in [0, 1].
        best: whether no earlier policy had a better worst task.
    """

    transitions: int
    seconds: float
    scores: tuple[float, ...]
    best: bool = False


LOG_COLUMNS = [field.name for field in fields(LogRow)]


class Table:
    """A CSV file that grows by a row at a time, each written through to the file.

    Args:
        path: the file.
        columns: their names; the first counts transitions.
        keep: drop rows of an older file past this many transitions, so that a resumed run has one history.
    """

    def __init__(self, path: Path, columns: Sequence[str], keep: int = 0) -> None:
        self.path = path
        rows = read_table(path, columns) if path.exists() else []
        with writing(path), replacing(path) as temporary:
            text = _lines([columns, *(row for row in rows if int(row[0]) <= keep)])
            temporary.write_text(text, encoding="utf-8")

    def append(self, values: Sequence[float]) -> None:
        """Write one row."""
        with writing(self.path), self.path.open("a", newline="", encoding="utf-8") as file:
            file.write(_lines([values]))


def _lines(rows: Sequence[Sequence[object]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def read_table(path: Path, columns: Sequence[str]) -> list[list[float]]:
    """Read a table; a last row that a kill cut short is left out.

    Raises:
        TrainingError: the file has other columns, holds something that is no number, or is too large.
    """
    data = read_bounded(path, MAX_BYTES, TrainingError)
    try:
        whole = data[: data.rfind(b"\n") + 1].decode("utf-8")
        header, *rows = csv.reader(io.StringIO(whole, newline="")) if whole else [[]]
        if header != list(columns):
            raise TrainingError(
                f"{path} is no table of this run: columns {header}, expected {list(columns)}; move it away"
            )
        return [[float(value) for value in row] for row in rows if len(row) == len(columns)]
    except (csv.Error, ValueError) as error:
        raise TrainingError(f"{path} is damaged: {error}; move it away") from error


def read_log(path: Path) -> list[LogRow]:
    """Return the updates of a log.

    Raises:
        TrainingError: it is damaged, or no training log.
    """
    kinds: list[Callable[[float], Any]] = [int if field.type == "int" else float for field in fields(LogRow)]
    rows = read_table(path, LOG_COLUMNS)
    return [LogRow(*(kind(value) for kind, value in zip(kinds, row, strict=True))) for row in rows]


def read_scores(path: Path, tasks: Sequence[str]) -> list[ScoreRow]:
    """Return the checks of a run with these tasks.

    Raises:
        TrainingError: the file is damaged, or of other tasks.
    """
    rows = read_table(path, [*CLOCK, *tasks])
    return [ScoreRow(int(row[0]), row[1], tuple(row[2:])) for row in rows]


def log_values(row: LogRow) -> tuple[float, ...]:
    """Return a row's values in the order of `LOG_COLUMNS`."""
    return astuple(row)


_PANELS = {
    "episode_length": "episode length [control steps]",
    "speed_error": "speed error [m/s]",
    "reward": "reward per step",
    "std": "action standard deviation",
    "value_loss": "value loss",
    "learning_rate": "step size",
    "rate": "transitions per second",
}


def plot_log(rows: Sequence[LogRow], scores: Sequence[ScoreRow], tasks: Sequence[str], path: Path) -> None:
    """Draw the curves of a run over transitions.

    Raises:
        TrainingError: the picture cannot be written.
    """
    import matplotlib.figure  # noqa: PLC0415  (slow to import, needed here alone)

    figure = matplotlib.figure.Figure(figsize=(14, 6), layout="constrained")
    first, *others = figure.subplots(2, 4).flat
    checked = [row.transitions / 1e6 for row in scores]
    for task, name in enumerate(tasks):
        first.plot(checked, [row.scores[task] for row in scores], label=name)
    first.set(xlabel="transitions [M]", ylabel="score of each task", ylim=(0, 1.02))
    first.legend(fontsize="xx-small")
    millions = [row.transitions / 1e6 for row in rows]
    for axes, (name, label) in zip(others, _PANELS.items(), strict=True):
        axes.plot(millions, [getattr(row, name) for row in rows], color="#e07b00")
        axes.set(xlabel="transitions [M]", ylabel=label)
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    for axes in (first, *others):
        axes.grid(alpha=0.3)
    with writing(path), replacing(path) as temporary:
        figure.savefig(temporary, dpi=110)
