"""Writing a log in the formats of other tools."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path

from firmware_bridge.recording.log import Log, read_log, write_log
from hardware.errors import ConfigError
from hardware.files import replacing

SPECIAL = ("parquet", "mcap", "rrd")
"""Endings of the formats that need a package of their own; their modules have these names, too."""
ENDINGS = (".csv", *(f".{name}" for name in SPECIAL), ".tdz")
"""What a file's ending may be; `.tdz` finishes a recording that was cut short."""


def convert(source: Path, target: Path) -> Log:
    """Read a recording, write it in the format of the target's ending, and return it.

    Args:
        source: a recording, finished or not.
        target: the file; an older one stays until the new one is whole.

    Raises:
        ConfigError: the ending stands for no format, a package is not installed, or the target is the source.
        ArchiveError: nothing of the source can be read.
        OSError: the target cannot be written.
    """
    if target.suffix not in ENDINGS:
        raise ConfigError(f"cannot write {target}: name a file that ends in one of {', '.join(ENDINGS)}")
    if target.exists() and source.exists() and target.samefile(source):
        raise ConfigError(f"{target} is the recording itself; name another file")
    write = _writer(target.suffix)
    log = read_log(source)
    with replacing(target) as temporary:
        write(log, temporary)
    return log


def _writer(ending: str) -> Callable[[Log, Path], None]:
    if ending == ".tdz":
        return lambda log, path: write_log(path, log.arrays, log.meta)
    module = importlib.import_module(f"firmware_bridge.recording.formats.{ending[1:]}")
    return module.writer()
