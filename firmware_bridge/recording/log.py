"""A recording in memory: read from a finished `.tdz`, or from one that power loss cut short."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from firmware_bridge.recording import finished, part
from firmware_bridge.recording.description import check_description
from firmware_bridge.recording.fields import BY_NAME, FIELDS, MAX_WIDTH, OBSERVATION, row_type
from hardware.errors import ArchiveError, ConfigError
from hardware.files import read_bounded

MAX_LOG_BYTES = 1024**3
"""Largest recording that is read; nine hours."""
MOST_TIME_S = 1e9
"""Latest time of a machine's clock [s]: thirty years after it was switched on."""


@dataclass(frozen=True)
class Log:
    """A recorded drive.

    Attributes:
        arrays: one array for each of `fields.FIELDS`, whose first axis is the ticks.
        meta: what drove: `schema`, `modes`, `skills`, `joints`, `layout`, and more; see docs/recording.md.
        complete: whether the recording was ended in order and every array could be read.
        problem: what is missing and why, None for nothing.
    """

    arrays: Mapping[str, np.ndarray]
    meta: Mapping[str, Any]
    complete: bool = True
    problem: str | None = None

    @property
    def ticks(self) -> int:
        """Number of ticks."""
        return len(self.arrays["time"])

    @property
    def seconds(self) -> np.ndarray:
        """Time since the first tick, (ticks,) [s]."""
        time = self.arrays["time"]
        return time - time[:1]

    def names(self, field: str) -> np.ndarray:
        """Return the `mode` or `skill` of each tick by its name, (ticks,) of str; "?" for one without."""
        known = [*self.meta.get(f"{field}s", ()), "?"]
        places = self.arrays[field].astype(np.int16)
        chosen = np.where((places >= 0) & (places < len(known) - 1), places, len(known) - 1)
        return np.array(known, object)[chosen]  # a tick's share is a reference, however long the name


def read_log(path: Path) -> Log:
    """Read a recording, as far as it is whole.

    Args:
        path: a finished `.tdz`, or the `.tdz.part` that a drive without an end has left.

    Raises:
        ArchiveError: it is no recording, holds what none does, or nothing of it can be read.
    """
    if not os.path.exists(path) and os.path.exists(part.path_beside(path)):  # False for any path that is none
        raise ArchiveError(f"{path} was never finished; name {part.path_beside(path)}, which has its ticks")
    data = read_bounded(path, MAX_LOG_BYTES, ArchiveError)
    source = part.read if data.startswith(part.MAGIC) else finished.read
    try:
        found = source(data)
        problems = [*found.problems, *check_description(found.meta)]
    except ArchiveError as error:
        raise ArchiveError(f"{path}: {error}") from error
    arrays = _fill(found.arrays, problems)
    return Log(arrays, found.meta, not problems, "; ".join(problems) or None)


def write_log(path: Path, arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any]) -> None:
    """Write a finished recording.

    Args:
        path: the file, `.tdz`; nothing may be there.
        arrays: by the names of `fields.FIELDS`, `time` at least; others that are left out become NaN, 0 or
            False.
        meta: the description; its `schema` is set.

    Raises:
        ConfigError: an array is unknown or of another shape.
        ArchiveError: the description is larger than what is read again.
        OSError: the file cannot be written.
    """
    strange = sorted(arrays.keys() - BY_NAME.keys())
    if strange or "time" not in arrays:
        raise ConfigError(f"a log has no {strange}; it has {sorted(BY_NAME)}, and at least 'time'")
    width = np.shape(arrays.get(OBSERVATION, np.zeros((0, 0))))[-1]
    ticks = len(arrays["time"])
    columns = {}
    for field in FIELDS:
        shape = (ticks, *field.shape(width))
        column = np.asarray(arrays.get(field.name, field.unknown(shape)))
        if column.shape != shape or width > MAX_WIDTH:
            raise ConfigError(f"{field.name} has the shape {column.shape}; it must be {shape}")
        columns[field.name] = column.astype(field.dtype)
    finished.write(path, ticks, row_type(width), lambda name: [columns[name]], meta)


def _fill(found: Mapping[str, np.ndarray], problems: list[str]) -> dict[str, np.ndarray]:
    """Return every array of a log, up to the last tick whose time is in order, in the types of memory."""
    time = found.get("time", np.zeros(0))
    good = (np.abs(time) < MOST_TIME_S) & (np.diff(time, prepend=time[:1]) >= 0)
    ticks = len(time) if good.all() else int(np.argmin(good))
    if ticks < len(time):
        problems.append(
            f"tick {ticks} is at {time[ticks]} s, before the one ahead of it; the rest is left out"
        )
    lost = [field.name for field in FIELDS if field.name not in found]
    if lost:
        problems.append(f"without {', '.join(lost)}")
    width = found[OBSERVATION].shape[1] if OBSERVATION in found else 0
    arrays = {}
    for field in FIELDS:
        whole = found.get(field.name)
        array = (
            field.unknown((ticks, *field.shape(width))) if whole is None else whole[:ticks].astype(field.wide)
        )
        array.flags.writeable = False
        arrays[field.name] = array
    return arrays
