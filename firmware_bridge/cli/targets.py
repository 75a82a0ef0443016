"""Files that a command writes for its user."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hardware.errors import ConfigError


def check_target(path: Path) -> None:
    """Refuse a file that could not be written at the end of all the work.

    Raises:
        ConfigError: its folder is not there, it is one itself, or it can be no file.
    """
    with writing(path):
        if not path.parent.is_dir():
            raise ConfigError(f"cannot write {path}: there is no folder {path.parent}; make it")
        with suppress(FileNotFoundError):
            path.stat()  # fails for a name too long and for a link that leads to itself
        if path.is_dir():
            raise ConfigError(f"cannot write {path}: it is a folder; name a file in it")


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Tell what the system has against a file that is written in the block.

    Raises:
        ConfigError: the file cannot be written.
    """
    try:
        yield
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror or error}; choose another file") from error
