"""Where a recording goes, as `--record` says, and nothing else may go."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from firmware_bridge.cli.targets import check_target
from firmware_bridge.recording.part import SUFFIX, path_beside
from hardware.errors import ConfigError
from hardware.files import followed

ENDING = ".tdz"


def record_path(given: Path) -> Path:
    """Return the file to record to: the one that is named, or a new dated one in the folder that is named.

    Raises:
        ConfigError: there can be no such file.
    """
    if os.path.isdir(given):  # unlike Path.is_dir, no error where the name is too long
        return _dated(given, datetime.now(UTC))
    if given.suffix != ENDING:
        text = f"name a file that ends in {ENDING}, or a folder that is there"
        raise ConfigError(f"cannot record to {given}: {text}")
    check_target(path_beside(given))  # the longer of its two names
    return given


def refuse_recording(path: Path) -> None:
    """Refuse a file, or a link to one, that has the name of a recording, also of one that is still made.

    Raises:
        ConfigError: it has.
    """
    if followed(path).name.lower().endswith((ENDING, ENDING + SUFFIX)):
        raise ConfigError(f"cannot write {path}: that is a recording's name; choose another file")


def _dated(folder: Path, now: datetime) -> Path:
    """Return a name that is free; on a board without a clock two drives may begin at the same time."""
    stem = f"duck-{now:%Y%m%d-%H%M%S}"
    names = (f"{stem}{ENDING}" if n == 1 else f"{stem}-{n}{ENDING}" for n in count(1))
    return next(folder / name for name in names if not any(folder.glob(f"{name}*")))
