"""How time and memory grow with the number of ducks."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter

from microduck.bench.rates import Notify, stepping
from microduck.env import MicroDuckEnv

COUNTS = (64, 256, 1024, 4096, 8192)
STEPS = 16384
"""Control steps over all ducks that one measurement makes."""
_PEAK = """
import sys
from microduck.bench.rates import stepping
from microduck.bench.scaling import peak_memory
from microduck.env import MicroDuckEnv
count = int(sys.argv[1])
if count:
    stepping(MicroDuckEnv(num_envs=count, seed=0), 10)()
print(peak_memory())
"""


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
    seconds: dict[int, list[float]] = {count: [] for count in COUNTS}
    for done in range(rounds + 1):
        for count, (run, steps) in runs.items():
            start = perf_counter()
            run()
            seconds[count].append((perf_counter() - start) / steps)
        notify(done)
    idle = _peak(0)
    return [Scale(count, median(row[1:]), _peak(count) - idle) for count, row in seconds.items()]


def _run(count: int) -> tuple[Callable[[], None], int]:
    steps = max(2, STEPS // count)
    return stepping(MicroDuckEnv(num_envs=count, seed=0), steps), steps


def _peak(count: int) -> int:
    """Return the peak memory of a fresh process that steps `count` ducks [byte]."""
    command = [sys.executable, "-c", _PEAK, str(count)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def peak_memory() -> int:
    """Return the most memory this process has held so far [byte]."""
    status = Path("/proc/self/status")
    if status.exists():  # Linux counts what a parent held before `exec` in getrusage
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return 1024 * int(line.split()[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
