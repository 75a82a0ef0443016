"""Files: reading what may come from anyone, bounded; writing so that nothing a user made is lost."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from typing import Any

from hardware.errors import DuckError

_SMALL_BYTES = 64 * 1024
_PIECE = 24
"""Characters of a name's stem, and of its ending, in that of its temporary file; at four bytes each this
stays within the 255 bytes that a name may have."""


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a path beside `path` to write to; it takes the place of `path` if the block ends well.

    Where `path` is a link, what it leads to is replaced, or made, and the link stays. The temporary name ends
    like the real one, since writers look at the ending.
    """
    with _beside(path) as temporary:
        yield temporary
        os.replace(temporary, followed(path))


@contextmanager
def creating(path: Path) -> Iterator[Path]:
    """Give a path beside `path` to write to; it becomes `path` if the block ends well and nothing is there.

    Raises:
        FileExistsError: by then something is, and stays as it is.
    """
    with _beside(path) as temporary:
        yield temporary
        try:
            os.link(temporary, path)
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links, such as a USB stick's: claim the name, fill it
            path.touch(exist_ok=False)
            os.replace(temporary, path)


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    temporary = followed(path).with_name(f".{path.stem[:_PIECE]}.{os.getpid()}{path.suffix[:_PIECE]}")
    try:
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)


def followed(path: Path) -> Path:
    """Return where a path leads to, all links followed; there need not be anything."""
    return Path(os.path.realpath(path))


def read_bounded(path: Path, most_bytes: int, error: type[DuckError]) -> bytes:
    """Return the content of a regular file of at most `most_bytes`.

    Raises:
        DuckError: of class `error`, when the file is absent, not regular, too large or unreadable.
    """
    try:
        if not path.is_file():  # a pipe or a device could block for ever
            raise error(f"{path} is not a file; check the path")
        with path.open("rb") as file:
            # No buffer of the most that may come; the kernel's own files tell a size of 0.
            room = max(os.fstat(file.fileno()).st_size, _SMALL_BYTES)
            data = file.read(min(room, most_bytes) + 1)
    except OSError as problem:
        raise error(f"cannot read {path}: {problem.strerror}") from problem
    if len(data) > most_bytes:
        raise error(f"{path} is larger than {most_bytes} bytes, the most that is read; it is another file")
    return data


def parse_object(data: bytes, name: str, error: type[DuckError]) -> dict[str, Any]:
    """Return the JSON object in `data`.

    Raises:
        DuckError: of class `error`, when `data` is not strict JSON (NaN and Infinity are not), holds a number
            that no float can, or is no object.
    """
    try:
        value = json.loads(data, parse_constant=_refuse_constant, parse_float=_finite)
    except (ValueError, RecursionError) as problem:
        raise error(f"{name} is not valid JSON: {problem}; export it again") from problem
    if not isinstance(value, dict):
        raise error(f"{name} must hold a JSON object, not {type(value).__name__}")
    return value


def _finite(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise ValueError(f"{text:.40} is more than a number can be")
    return value


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is no JSON number")
