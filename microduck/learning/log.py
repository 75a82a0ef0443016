"""The training log: one CSV row per update, and its curves."""

from __future__ import annotations

import csv
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from hardware.errors import TrainingError


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


class TrainingLog:
    """A CSV file that grows by a row per update.

    Args:
        path: the file.
        keep: drop rows of an older log past this many transitions, so that a resumed run has one history.
    """

    def __init__(self, path: Path, keep: int = 0) -> None:
        self.path = path
        rows = [row for row in read_log(path) if row.transitions <= keep] if path.exists() else []
        names = [field.name for field in fields(LogRow)]
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, names)
            writer.writeheader()
            writer.writerows(asdict(row) for row in rows)

    def append(self, row: LogRow) -> None:
        """Write one row through to the file."""
        with self.path.open("a", newline="", encoding="utf-8") as file:
            csv.writer(file).writerow(asdict(row).values())


def read_log(path: Path) -> list[LogRow]:
    """Read a log; a last row that a kill cut short is left out.

    Raises:
        TrainingError: the file has other columns.
    """
    names = [field.name for field in fields(LogRow)]
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        if reader.fieldnames != names:
            raise TrainingError(f"{path} is no training log: columns {reader.fieldnames}, expected {names}")
        whole = [row for row in reader if all(row.get(name) for name in names)]
    return [LogRow(int(row["transitions"]), *(float(row[name]) for name in names[1:])) for row in whole]


def plot_log(rows: list[LogRow], path: Path) -> None:
    """Draw the log's curves over transitions."""
    import matplotlib.figure  # noqa: PLC0415  (slow to import, needed here alone)

    figure = matplotlib.figure.Figure(figsize=(11, 6), layout="constrained")
    panels = {
        "episode_length": "episode length [control steps]",
        "speed_error": "speed error [m/s]",
        "reward": "reward per step",
        "std": "action standard deviation",
        "value_loss": "value loss",
        "rate": "transitions per second",
    }
    millions = [row.transitions / 1e6 for row in rows]
    for axes, (name, label) in zip(figure.subplots(2, 3).flat, panels.items(), strict=True):
        axes.plot(millions, [getattr(row, name) for row in rows], color="#e07b00")
        axes.set(xlabel="transitions [M]", ylabel=label)
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=110)
