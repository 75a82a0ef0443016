"""How time and memory grow with the number of ducks."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

from microduck.bench.rates import Notify, compare, stepping
from microduck.env import MicroDuckEnv

COUNTS = (64, 256, 1024, 4096, 8192)
STEPS = 16384
"""Control steps over all ducks that one measurement makes."""


@dataclass(frozen=True)
class Scale:
    """One row of the table.

    Attributes:
        count: number of ducks.
        step_s: time of one control step of all ducks [s].
        memory: peak memory of a process that steps them, beyond that of one with none [byte].
    """

    count: int
    step_s: float
    memory: int


def scaling(rounds: int, notify: Notify = lambda done: None) -> list[Scale]:
    """Measure every number of ducks in turn, round by round.

    Args:
        rounds: rounds to count.
        notify: called with the number of rounds done.
    """
    runs = {count: _run(count) for count in COUNTS}
    steps = {str(count): count * steps for count, (_, steps) in runs.items()}
    cases = {str(count): run for count, (run, _) in runs.items()}
    rates, idle = compare(cases, steps, str(COUNTS[0]), rounds, notify), _peak(0)
    return [
        Scale(count, count / rate.steps_per_s, _peak(count) - idle)
        for count, rate in zip(COUNTS, rates, strict=True)
    ]


def _run(count: int) -> tuple[Callable[[], None], int]:
    steps = max(2, STEPS // count)
    return stepping(MicroDuckEnv(num_envs=count, seed=0), steps), steps


def _peak(count: int) -> int:
    """Return the peak memory of a fresh process that steps `count` ducks [byte]."""
    command = [sys.executable, "-m", "microduck.bench.peak", str(count)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
