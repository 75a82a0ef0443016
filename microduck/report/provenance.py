"""Where a report comes from: who asked for it, with what, and on which machine."""

from __future__ import annotations

import platform
import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from microduck.physics.threads import usable_cpus
from microduck.report.plan import Plan

LIBRARIES = ("microduck-toolkit", "mujoco", "numpy", "onnxruntime", "tensordict", "torch", "torchrl")
"""Libraries whose versions can change a figure."""
_CPUINFO = Path("/proc/cpuinfo")
"""What Linux says of its processors."""


@dataclass(frozen=True)
class Provenance:
    """How a report came to be.

    Attributes:
        command: the command line.
        made: date and time, UTC, ISO 8601.
        wall_s: time that it took [s].
        seed: seed of the resets.
        episodes: episodes for each task and command.
        seconds: length of an episode [s].
        versions: Python's and the libraries' versions by name.
        cpu: name of the processor.
        cores: processors that could be used.
    """

    command: str
    made: str
    wall_s: float
    seed: int
    episodes: int
    seconds: float
    versions: dict[str, str]
    cpu: str
    cores: int

    def as_data(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)


def provenance(plan: Plan, arguments: Sequence[str], wall_s: float) -> Provenance:
    """Return the provenance of a report that is made now.

    Args:
        plan: what was asked for.
        arguments: the command line.
        wall_s: time since the start [s].
    """
    return Provenance(
        command=shlex.join(arguments),
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        wall_s=round(wall_s, 1),
        seed=plan.seed,
        episodes=plan.episodes,
        seconds=plan.seconds,
        versions={"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}},
        cpu=_cpu(),
        cores=usable_cpus(),
    )


def _cpu() -> str:
    if _CPUINFO.is_file():
        for line in _CPUINFO.read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()
