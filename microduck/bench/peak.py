"""`python -m microduck.bench.peak COUNT`: write how much memory it takes to step so many ducks [byte]."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

from microduck.bench.rates import stepping
from microduck.env import MicroDuckEnv


def peak_memory() -> int:
    """Return the most memory this process has held so far [byte]."""
    status = Path("/proc/self/status")
    if status.exists():  # Linux counts what a parent held before `exec` in getrusage
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return 1024 * int(line.split()[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    count = int(sys.argv[1])
    if count:
        stepping(MicroDuckEnv(num_envs=count, seed=0), 10)()
    sys.stdout.write(f"{peak_memory()}\n")
