"""The finished recording: a `.tdz`, the plain zip in which TensorDicts are saved, one member an array.

The description is in one more member, `log.json`. What has to be there to understand the rest stands first in
the file, and reading goes from member to member, so that a copy that was cut short gives what it has.
Reading takes struct, json and numpy; nothing is ever executed or unpacked to a folder.
"""

from __future__ import annotations

import json
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from firmware_bridge.recording.description import MAX_META_BYTES, encode, parse
from firmware_bridge.recording.fields import BY_NAME, MAX_WIDTH, OBSERVATION, SCHEMA, Content
from firmware_bridge.skills.archive import DTYPES
from hardware.errors import ArchiveError
from hardware.files import creating

DESCRIPTION = "log.json"
"""Member with the description."""
LEAVES = "meta.json"
"""Member with the shape and type of each array."""
MAX_MEMBERS = 256
MAX_TICKS = 10**8
"""Most ticks; more than the largest file has room for."""
_ARRAY = re.compile(r"([a-z_]{1,64})\.memmap")
_TORCH_NAMES = {np.dtype(kind): name for name, kind in DTYPES.items()}
_HEADER = struct.Struct("<4sHHHHHLLLHH")
"""A member's header: mark, version, flags, method, time, date, CRC, two sizes, lengths of name and extra."""
_MEMBER, _DIRECTORY = b"PK\x03\x04", b"PK\x01\x02"
_PLAIN_FLAGS = (0, 0x800)
"""No encryption and sizes in the header; the second says that the name is UTF-8."""


Columns = Callable[[str], Iterable[np.ndarray]]
"""Gives the values of a field, in pieces, in the type of the file."""


def write(path: Path, ticks: int, row: np.dtype[Any], columns: Columns, meta: Mapping[str, Any]) -> None:
    """Write a recording so that it is on the disk, whole, or not there at all.

    Args:
        path: the file; nothing may be there.
        ticks: number of ticks.
        row: type of a tick, as of `fields.row_type`.
        columns: asked for one field at a time; no piece is kept.
        meta: the description; its `schema` is set.

    Raises:
        ArchiveError: the description is larger than what is read again.
        FileExistsError: something is there; it stays as it is.
        OSError: there is no room, or no right to write there.
    """
    description = encode({**meta, "schema": SCHEMA})
    if len(description) > MAX_META_BYTES:
        raise ArchiveError(
            f"its description takes {len(description)} bytes; at most {MAX_META_BYTES} are read"
        )
    with creating(path) as temporary:
        with zipfile.ZipFile(temporary, "w") as archive:
            archive.writestr(DESCRIPTION, description)
            archive.writestr(LEAVES, json.dumps(_leaves(ticks, row)))
            for name in (row.names or ()) if ticks else ():  # empty arrays have no member
                with archive.open(f"{name}.memmap", "w") as member:
                    for piece in columns(name):
                        member.write(piece.tobytes())
        _sync(temporary)
    _sync(path.parent)


def _leaves(ticks: int, row: np.dtype[Any]) -> dict[str, Any]:
    leaves: dict[str, Any] = {}
    for name in row.names or ():
        leaf = {"device": "cpu", "shape": [ticks, *row[name].shape], "dtype": _TORCH_NAMES[row[name].base]}
        leaves[name] = {**leaf, "is_nested": False}
    return {**leaves, "shape": [ticks], "device": "cpu", "_type": "<class 'tensordict._td.TensorDict'>"}


def _sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read(data: bytes) -> Content:
    """Return what is whole in a recording's bytes.

    Raises:
        ArchiveError: it is no recording, holds what none does, or lacks what explains its arrays.
    """
    problems: list[str] = []
    members = dict(_members(memoryview(data), problems))
    for name in (DESCRIPTION, LEAVES):
        if name not in members:
            reason = f" ({'; '.join(problems)})" if problems else ""
            raise ArchiveError(
                f"no recording: it has no {name}{reason}; name one made by `duck run --record`"
            )
    meta, leaves = (parse(members[name], name) for name in (DESCRIPTION, LEAVES))
    return Content(_arrays(members, leaves, problems), meta, problems)


def _members(data: memoryview, problems: list[str]) -> Iterator[tuple[str, memoryview]]:
    """Yield each member that is whole, up to the zip's directory."""
    place = 0
    for _ in range(MAX_MEMBERS):
        if data[place : place + 4] == _DIRECTORY:
            return
        if len(data) < place + _HEADER.size:
            break
        mark, _, flags, method, _, _, crc, size, full, name_size, extra_size = _HEADER.unpack_from(
            data, place
        )
        begin = place + _HEADER.size + name_size + extra_size
        if mark != _MEMBER or flags not in _PLAIN_FLAGS or method != zipfile.ZIP_STORED or size != full:
            break
        name = bytes(data[place + _HEADER.size :][:name_size]).decode("utf-8", "replace")
        if name not in (DESCRIPTION, LEAVES) and not _ARRAY.fullmatch(name):
            raise ArchiveError(f"holds {name!r:.80}, which belongs to no recording; do not use this file")
        place = begin + size
        if place > len(data):
            break
        if zlib.crc32(data[begin:place]) == crc:
            yield name, data[begin:place]
        else:
            problems.append(f"{name} is damaged")
    problems.append(f"cut short or damaged at byte {min(place, len(data))} of {len(data)}")


def _arrays(
    members: Mapping[str, memoryview], leaves: Mapping[str, Any], problems: list[str]
) -> dict[str, np.ndarray]:
    """Return the arrays of a log that are there with the shape and type they must have."""
    count = leaves.get("shape")
    ticks = count[0] if isinstance(count, list) and len(count) == 1 else None
    if type(ticks) is not int or not 0 <= ticks <= MAX_TICKS:
        raise ArchiveError(f"{LEAVES} has the shape {count!r:.80}; it must be [number of ticks]")
    arrays = {}
    for name, field in BY_NAME.items():
        leaf = leaves.get(name)
        if not isinstance(leaf, dict):
            continue
        data = members.get(f"{name}.memmap", memoryview(b""))
        width = _width(leaf.get("shape")) if name == OBSERVATION else 0
        shape = (ticks, *field.shape(width))
        dtype = np.dtype(field.dtype)
        told = leaf.get("shape") == list(shape) and leaf.get("dtype") == _TORCH_NAMES[dtype]
        if told and len(data) == prod(shape) * dtype.itemsize:
            arrays[name] = np.ndarray(shape, dtype, buffer=data)
    return arrays


def _width(shape: object) -> int:
    """Return the width of an observation of a shape, 0 where that is not valid."""
    width = shape[1] if isinstance(shape, list) and len(shape) == 2 else 0
    return width if type(width) is int and 0 <= width <= MAX_WIDTH else 0
