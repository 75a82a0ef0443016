"""Writing a log in the formats of other tools."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from pathlib import Path

from firmware_bridge.recording.log import Log, read_log, write_log
from hardware.errors import ConfigError
from hardware.files import replacing

SPECIAL = ("parquet", "mcap", "rrd")
"""Endings of the formats that need a package of their own; their modules have these names, too."""
RECORDING = ".tdz"
"""Ending that finishes a recording that was cut short."""
ENDINGS = (".csv", *(f".{name}" for name in SPECIAL), RECORDING)
"""What a file's ending may be."""


def convert(source: Path, target: Path) -> Log:
    """Read a recording, write it in the format of the target's ending, and return it.

    Args:
        source: a recording, finished or not.
        target: the file; an older one stays until the new one is whole, and a recording for good.

    Raises:
        ConfigError: the ending stands for no format, a package is not installed, or the target is a recording
            that is there.
        ArchiveError: nothing of the source can be read.
        OSError: the target cannot be written.
    """
    if target.suffix not in ENDINGS:
        raise ConfigError(f"cannot write {target}: name a file that ends in one of {', '.join(ENDINGS)}")
    refuse_source(target, source)
    if target.suffix == RECORDING and os.path.lexists(target):
        raise ConfigError(f"{target} exists already; name another file, or move that one")
    write = _writer(target.suffix)
    log = read_log(source)
    write(log, target)
    return log


def refuse_source(target: Path, source: Path) -> None:
    """Refuse to write over the recording that is read.

    Raises:
        ConfigError: the target is the source.
    """
    if os.path.exists(target) and os.path.exists(source) and target.samefile(source):
        raise ConfigError(f"{target} is the recording itself; name another file")


def _writer(ending: str) -> Callable[[Log, Path], None]:
    if ending == RECORDING:
        return lambda log, path: write_log(path, log.arrays, log.meta)
    module = importlib.import_module(f"firmware_bridge.recording.formats.{ending[1:]}")
    write = module.writer()

    def write_anew(log: Log, path: Path) -> None:
        with replacing(path) as temporary:
            write(log, temporary)

    return write_anew
