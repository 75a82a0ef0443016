"""What a report is asked for; the source of the command's options."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from pathlib import Path

from hardware.contract import CONTROL_PERIOD_S
from hardware.errors import ConfigError
from microduck.checks import check_whole

LEAST_SECONDS = 1.5
"""Shortest episode [s]: the first second is no part of mean speeds."""
MOST_SECONDS = 600.0


@dataclass(frozen=True)
class Plan:
    """A report.

    Attributes:
        episodes: episodes for each task and command.
        seconds: length of an episode [s].
        seed: seed of the resets; far from those that trainings count up from zero.
        randomize: whether to add an evaluation of ducks that all differ, and are pushed.
        twin: file of the duck to evaluate in place of the one that is modelled; leaves `randomize` aside.
        video: whether to film every task.

    Raises:
        ConfigError: a number is out of range.
    """

    episodes: int = 64
    seconds: float = 10.0
    seed: int = 10_000
    randomize: bool = True
    twin: Path | None = None
    video: bool = True

    def __post_init__(self) -> None:
        check_whole("episodes", self.episodes, least=1, bits=16)
        check_whole("seed", self.seed, least=0)
        if not (isfinite(self.seconds) and LEAST_SECONDS <= self.seconds <= MOST_SECONDS):
            raise ConfigError(
                f"seconds is {self.seconds:g}; it must be in [{LEAST_SECONDS:g}, {MOST_SECONDS:g}]"
            )

    @property
    def steps(self) -> int:
        """Length of an episode [control steps]."""
        return round(self.seconds / CONTROL_PERIOD_S)

    @property
    def rough(self) -> bool:
        """Whether ducks that differ are evaluated as well."""
        return self.randomize and self.twin is None

    @property
    def rounds(self) -> int:
        """How often all episodes of a policy are run."""
        return 2 if self.rough else 1
