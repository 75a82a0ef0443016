"""How much room a recording may take."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from hardware.errors import ConfigError

MEGABYTE = 10**6
MOST_MB = 1000.0
"""Largest recording [MB]: eight hours, and what `read_log` still reads."""
MOST_FREE_MB = 1e6


@dataclass(frozen=True)
class Space:
    """Where a recording ends by itself; the drive goes on.

    Attributes:
        most_mb: largest file [MB]; an hour takes about 120.
        keep_free_mb: room that is left free on the disk [MB], beside what the finished file needs.
    """

    most_mb: float = 500.0
    keep_free_mb: float = 200.0

    def __post_init__(self) -> None:
        if not 1 <= self.most_mb <= MOST_MB:
            raise ConfigError(f"most_mb is {self.most_mb:g} MB; it must be in [1, {MOST_MB:g}]")
        if not 0 <= self.keep_free_mb <= MOST_FREE_MB:
            raise ConfigError(
                f"keep_free_mb is {self.keep_free_mb:g} MB; it must be in [0, {MOST_FREE_MB:g}]"
            )

    def refusal(self, folder: Path, written: int, more: int) -> str | None:
        """Return why not to write more, None when there is room for it.

        Args:
            folder: where the file is.
            written: its size [bytes]; once more as much is needed to finish it.
            more: what is to be added [bytes].

        Raises:
            OSError: the disk cannot be asked.
        """
        if written + more > self.most_mb * MEGABYTE:
            return f"it has reached {self.most_mb:g} MB, the most it may take"
        free = shutil.disk_usage(folder).free
        if free - written - 2 * more < self.keep_free_mb * MEGABYTE:
            return f"the disk has {free / MEGABYTE:.0f} MB left, of which {self.keep_free_mb:g} MB stay free"
        return None
