"""Reader of `.tdz` archives, the files in which the trainer saves TensorDicts.

An archive is a plain zip: a `meta.json` for each level, an uncompressed little-endian `.memmap` for each
tensor, and text as JSON. A saved tensorclass has its values one level down, in `_tensordict`. Beside these an
archive may hold notes for whoever trains with it, in `library.json`. Reading takes zipfile, json and numpy;
nothing in an archive is ever executed, and a member that is none of the above is refused.
"""

from __future__ import annotations

import io
import struct
import zipfile
from math import prod
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from hardware.errors import ArchiveError
from hardware.files import parse_object, read_bounded

MAX_BYTES = 16 * 1024 * 1024
"""Largest archive and largest content; a library of a thousand tasks takes about 1 MiB."""
NOTES = "library.json"
"""Member with the notes."""
MAX_MEMBERS = 1024
MAX_DEPTH = 8
"""Levels of nesting; a library of tasks has three."""
MAX_DIMENSIONS = 8
"""Axes of a tensor."""

DTYPES = {
    "torch.bool": "?",
    "torch.uint8": "u1",
    "torch.int8": "i1",
    "torch.int16": "<i2",
    "torch.int32": "<i4",
    "torch.int64": "<i8",
    "torch.float16": "<f2",
    "torch.float32": "<f4",
    "torch.float64": "<f8",
}
"""Numpy type of each tensor type that can be read."""
_PICKLES = (".pickle", ".pkl", ".pt", ".pth")
# What zipfile raises, besides its own error, on headers that make no sense.
_ZIP_ERRORS = (zipfile.BadZipFile, RuntimeError, EOFError, OSError, ValueError, OverflowError, struct.error)


def read_archive(path: Path) -> dict[str, Any]:
    """Read an archive file; see `parse_archive`."""
    return parse_archive(read_bounded(path, MAX_BYTES, ArchiveError), str(path))


def parse_archive(data: bytes, name: str) -> dict[str, Any]:
    """Return the content of an archive as nested dictionaries.

    Args:
        data: the archive's bytes.
        name: what to call the archive in messages.

    Returns:
        For each key a nested dictionary, a read-only array, or the text (or list of texts) that was saved.

    Raises:
        ArchiveError: the archive is damaged, lacks a leaf, or holds something it must not.
    """
    try:
        members = _read_members(data)
        tree = _read_level(members, "", MAX_DEPTH)
        strange = sorted(members.keys() - {NOTES})
        if strange:
            raise ArchiveError(f"holds {strange}, which belong to no leaf; export it again")
    except ArchiveError as error:
        raise ArchiveError(f"{name}: {error}") from error
    return tree


def parse_notes(data: bytes, name: str) -> dict[str, Any] | None:
    """Return the notes of an archive, as untrusted JSON data; None where it has none.

    Args:
        data: the archive's bytes.
        name: what to call the archive in messages.

    Raises:
        ArchiveError: the archive is damaged, or the notes are no JSON object.
    """
    try:
        members = _read_members(data)
        return parse_object(members[NOTES], NOTES, ArchiveError) if NOTES in members else None
    except ArchiveError as error:
        raise ArchiveError(f"{name}: {error}") from error


def _read_members(data: bytes) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            _check_members(members)
            return {member.filename: archive.read(member) for member in members}
    except ArchiveError:
        raise
    except _ZIP_ERRORS as error:
        raise ArchiveError(f"not a whole .tdz archive ({error}); copy or export it again") from error


def _check_members(members: list[zipfile.ZipInfo]) -> None:
    total = sum(member.file_size for member in members)
    if len(members) > MAX_MEMBERS or total > MAX_BYTES:
        raise ArchiveError(
            f"holds {len(members)} members of {total} bytes; at most {MAX_MEMBERS} of {MAX_BYTES} are read"
        )
    names = [member.filename for member in members]
    if len(set(names)) != len(names):
        raise ArchiveError("holds two members of one name; export it again")
    for member in members:
        parts = PurePosixPath(member.filename).parts
        if "\\" in member.filename or ".." in parts or "/" in parts:
            raise ArchiveError(f"member {member.filename!r} points outside the archive; do not use this file")
        if member.filename.lower().endswith(_PICKLES):
            raise ArchiveError(f"member {member.filename!r} is a pickle, which could run code; do not use it")
        if member.comment:  # one wrong bit in its length, and the comment swallows the members that follow
            raise ArchiveError(f"member {member.filename!r} has a comment; copy or export the archive again")
        if member.compress_type != zipfile.ZIP_STORED:
            raise ArchiveError(f"member {member.filename!r} is compressed; save it without compression")


def _read_level(members: dict[str, bytes], prefix: str, depth: int) -> dict[str, Any]:
    """Return the content of one level; what is read is taken out of `members`."""
    if depth == 0:
        raise ArchiveError(f"{prefix!r} is nested deeper than {MAX_DEPTH} levels")
    meta = _read_meta(members, prefix)
    inner = f"{prefix}_tensordict/"
    if f"{inner}meta.json" in members:
        return _read_level(members, inner, depth - 1)
    # The level's own attributes (shape, device, type) are never objects; its children always are.
    children = {key: child for key, child in meta.items() if isinstance(child, dict)}
    return {key: _read_child(members, prefix + key, child, depth) for key, child in children.items()}


def _read_child(members: dict[str, bytes], path: str, child: dict[str, Any], depth: int) -> Any:
    if "dtype" in child:
        return _read_tensor(members, path, child)
    kind = child.get("type")
    if not isinstance(kind, str):
        raise ArchiveError(f"{path!r} has neither a dtype nor a type; export it again")
    if kind in ("NonTensorData", "NonTensorStack"):
        return _read_text(members, path)
    return _read_level(members, f"{path}/", depth - 1)


def _read_meta(members: dict[str, bytes], prefix: str) -> dict[str, Any]:
    name = f"{prefix}meta.json"
    if name not in members:
        raise ArchiveError(f"{prefix.rstrip('/') or 'the archive'!r} is missing: no {name}; export it again")
    return parse_object(members.pop(name), name, ArchiveError)


def _read_text(members: dict[str, bytes], path: str) -> str | list[str]:
    value = _read_meta(members, f"{path}/").get("data")
    if isinstance(value, str) or (isinstance(value, list) and all(isinstance(item, str) for item in value)):
        return value
    raise ArchiveError(f"{path!r} must be a text or a list of texts, not {type(value).__name__}")


def _read_tensor(members: dict[str, bytes], path: str, meta: dict[str, Any]) -> np.ndarray:
    dtype, shape = DTYPES.get(str(meta["dtype"])), _shape(path, meta)
    if dtype is None:
        raise ArchiveError(f"{path!r} has the type {meta['dtype']!r}; readable are {sorted(DTYPES)}")
    expected = prod(shape) * np.dtype(dtype).itemsize
    data = members.pop(f"{path}.memmap", b"" if expected == 0 else None)  # empty tensors have no payload
    if data is None:
        raise ArchiveError(f"the payload of {path!r} is missing; export it again")
    if len(data) != expected:
        raise ArchiveError(f"{path!r} has {len(data)} bytes where its shape {shape} needs {expected}")
    return np.ndarray(shape, dtype, buffer=data)


def _shape(path: str, meta: dict[str, Any]) -> tuple[int, ...]:
    shape = meta.get("shape")
    valid = isinstance(shape, list) and len(shape) <= MAX_DIMENSIONS and not meta.get("is_nested")
    if valid and all(type(n) is int and 0 <= n <= MAX_BYTES for n in shape or ()):
        return tuple(shape or ())
    raise ArchiveError(f"{path!r} has the shape {str(shape)[:80]}, which is no tensor's; export it again")
