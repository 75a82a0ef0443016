"""Files: reading what may come from anyone, bounded; writing so that nothing a user made is lost."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hardware.errors import DuckError

_SMALL_BYTES = 64 * 1024


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a path beside `path` to write to; it takes the place of `path` if the block ends well.

    The temporary name ends like the real one, since writers look at the ending.
    """
    temporary = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        if temporary.exists():
            temporary.unlink()


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
        DuckError: of class `error`, when `data` is not strict JSON (NaN and Infinity are not) or no object.
    """
    try:
        value = json.loads(data, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as problem:
        raise error(f"{name} is not valid JSON: {problem}; export it again") from problem
    if not isinstance(value, dict):
        raise error(f"{name} must hold a JSON object, not {type(value).__name__}")
    return value


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is no JSON number")
