"""How many CPUs this process may use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

_MOST_BYTES = 65536
"""More than the files read here ever hold."""
_MOUNTS = {False: ("", "unified"), True: ("cpu", "cpu,cpuacct", "cpuacct,cpu")}
"""Folders below /sys/fs/cgroup, by whether the hierarchy is of version 1."""


def usable_cpus() -> int:
    """Return the CPUs this process may use, at least 1: by its affinity and the limit of its control groups.

    A limit of one and a half CPUs counts as one: two threads would both be stopped for a quarter of each
    scheduling period, and so would whatever else the process does.
    """
    limit = cgroup_limit(Path("/"))
    return _affinity() if limit is None else max(1, min(_affinity(), int(limit)))


def cgroup_limit(root: Path) -> float | None:
    """Return how many CPUs' time the control groups of this process allow; None without a limit.

    Args:
        root: the folder that holds `proc` and `sys`.
    """
    limits = [limit for folder in _cgroup_folders(root) if (limit := _limit_in(folder)) is not None]
    return min(limits, default=None)


def _affinity() -> int:
    if hasattr(os, "sched_getaffinity"):  # Linux only
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _cgroup_folders(root: Path) -> Iterator[Path]:
    """Give where the control groups of this process, and their ancestors, may keep their CPU limit."""
    for line in _read(root / "proc" / "self" / "cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        if controllers and "cpu" not in controllers.split(","):
            continue
        for mount in _MOUNTS[bool(controllers)]:
            for path in _with_ancestors(group):
                yield root / "sys" / "fs" / "cgroup" / mount / path


def _with_ancestors(group: str) -> list[PurePosixPath]:
    # In a container the path may name a group that is not visible; its own group is then the mount itself.
    path = PurePosixPath(group.lstrip("/"))
    return [PurePosixPath()] if ".." in path.parts else [path, *path.parents]


def _limit_in(folder: Path) -> float | None:
    """Return quota over period, from `cpu.max` (version 2) or from two files (version 1)."""
    fields = _read(folder / "cpu.max").split()
    if not fields:
        fields = [_read(folder / f"cpu.cfs_{name}_us").strip() for name in ("quota", "period")]
    # Without a limit the quota is "max", -1, or not there.
    if len(fields) != 2 or not all(field.isdecimal() for field in fields) or int(fields[1]) == 0:
        return None
    return int(fields[0]) / int(fields[1])


def _read(path: Path) -> str:
    """Return the text of a file, or nothing where there is none, and so no limit."""
    try:
        with path.open("rb") as file:
            return file.read(_MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
