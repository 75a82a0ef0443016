"""The recording while it is made: an append-only file, whole up to its last frame whatever ends the program.

It begins with `MAGIC`. Each frame after it has a kind (one byte), the length of its payload and a CRC-32 of
both; the payload is the description (`M`, JSON, the first frame), ticks (`T`, numpy rows), or a change of the
mode (`E`, JSON). Reading stops at the first frame that is not whole. A change of the mode that makes no sense
is passed over, for the ticks around it do.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator, Mapping
from itertools import chain, takewhile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from firmware_bridge.recording.description import MAX_EVENTS, MAX_META_BYTES, encode, parse
from firmware_bridge.recording.fields import BY_NAME, MAX_WIDTH, Content, row_type
from hardware.errors import ArchiveError

MAGIC = b"DUCKREC\n"
SUFFIX = ".part"
META, TICKS, EVENT = b"M", b"T", b"E"
ROWS = "rows"
"""Key of the description that tells the type of a row: a list of [name, numpy type, shape]."""
EVENTS = "events"
"""Key of the description with the changes of the mode: a list of {time, mode, reason}."""
MAX_FRAME_BYTES = 2 * MAX_META_BYTES
MAX_FRAMES = 200_000
"""Most frames that are read; two a second, so more than the largest file takes."""
MAX_EVENT_BYTES = 8192
"""Largest change of the mode; a longer one is cut and makes no sense."""
MAX_FIELDS = 256
_HEAD = struct.Struct("<cLL")
_TYPES = re.compile(r"[<|](?:b1|[iu][1248]|f[248])")


def path_beside(target: Path) -> Path:
    """Return where the recording that becomes `target` is made."""
    return target.with_name(target.name + SUFFIX)


def frame(kind: bytes, payload: bytes) -> bytes:
    """Return a payload as a frame."""
    return _HEAD.pack(kind, len(payload), zlib.crc32(payload, kind[0])) + payload


def beginning(meta: Mapping[str, Any], width: int) -> bytes:
    """Return a file's first bytes, for an observation of `width` values."""
    row = row_type(width)
    rows = [[name, row[name].base.str, list(row[name].shape)] for name in row.names or ()]
    return MAGIC + frame(META, encode({**meta, ROWS: rows}))


class _Frame(NamedTuple):
    kind: bytes
    payload: memoryview


class Part:
    """A recording as far as it is whole.

    Args:
        data: its bytes.

    Attributes:
        meta: its description, with its events.
        problems: what cannot be read of it.
        row: type of a tick.
        ticks: number of ticks.

    Raises:
        ArchiveError: its description cannot be read.
    """

    def __init__(self, data: bytes | memoryview) -> None:
        self.problems: list[str] = []
        frames = list(self._frames(memoryview(data)))
        if not frames or frames[0].kind != META:
            reason = "".join(f" ({problem})" for problem in self.problems)
            raise ArchiveError(f"nothing of this recording can be read{reason}; it has no description")
        self.meta = parse(frames[0].payload, "its description")
        self.row = _parse_row(self.meta.pop(ROWS, None))
        self._rows = self._whole_rows([frame.payload for frame in frames if frame.kind == TICKS])
        self.meta[EVENTS] = self._events([frame.payload for frame in frames if frame.kind == EVENT])
        self.ticks = sum(map(len, self._rows)) // self.row.itemsize

    def column(self, name: str) -> Iterator[np.ndarray]:
        """Yield a field's values in pieces, at least one."""
        pieces = (np.frombuffer(rows, self.row)[name] for rows in self._rows)
        return chain([np.zeros(0, self.row)[name]], pieces)

    def _whole_rows(self, payloads: list[memoryview]) -> list[memoryview]:
        whole = list(takewhile(lambda rows: len(rows) % self.row.itemsize == 0, payloads))
        if len(whole) < len(payloads):
            self.problems.append("some ticks are no rows as its description has them; the rest is left out")
        return whole

    def _events(self, payloads: list[memoryview]) -> list[dict[str, Any]]:
        events, strange = [], 0
        for payload in payloads[:MAX_EVENTS]:
            try:
                events.append(parse(payload[:MAX_EVENT_BYTES], "a change of the mode"))
            except ArchiveError:
                strange += 1
        if strange:
            self.problems.append(f"{strange} changes of the mode make no sense and are left out")
        return events

    def _frames(self, data: memoryview) -> Iterator[_Frame]:
        place = len(MAGIC)
        for _ in range(MAX_FRAMES):
            begin = place + _HEAD.size
            if begin > len(data):  # also at the end
                break
            kind, length, crc = _HEAD.unpack_from(data, place)
            payload = data[begin : begin + length]
            if length > MAX_FRAME_BYTES or len(payload) < length or zlib.crc32(payload, kind[0]) != crc:
                break
            place = begin + length
            yield _Frame(kind, payload)
        if place < len(data):
            self.problems.append(f"breaks off at byte {place} of {len(data)}")


def read(data: bytes) -> Content:
    """Return what is whole in an unfinished recording's bytes.

    Raises:
        ArchiveError: its description cannot be read.
    """
    part = Part(data)
    arrays = {}
    problems = ["its drive never ended it", *part.problems]
    for name, field in BY_NAME.items():
        if name not in (part.row.names or ()):
            continue
        pieces = np.concatenate(list(part.column(name)))
        if pieces.dtype == field.dtype and pieces.shape[1:] == field.shape(pieces.shape[-1]):
            arrays[name] = pieces
    return Content(arrays, part.meta, problems)


def _parse_row(rows: object) -> np.dtype[Any]:
    """Return the type of a row that a description tells.

    Raises:
        ArchiveError: it tells none.
    """
    try:
        row = np.dtype([_parse_field(item) for item in rows]) if isinstance(rows, list) else np.dtype("V0")
    except (TypeError, ValueError) as error:
        raise ArchiveError(f"its description tells of no rows ({error}); it is no recording") from error
    if not row.names or len(row.names) > MAX_FIELDS or not 0 < row.itemsize <= MAX_FRAME_BYTES:
        raise ArchiveError("its description tells of no rows; it is no recording")
    return row


def _parse_field(item: object) -> tuple[str, str, tuple[int, ...]]:
    name, kind, shape = item if isinstance(item, list) and len(item) == 3 else ("", "", ())
    if not (
        isinstance(name, str) and name.isidentifier() and isinstance(kind, str) and _TYPES.fullmatch(kind)
    ):
        raise ValueError(f"{item!r:.80} is no field")
    if not (isinstance(shape, list) and len(shape) <= 1):
        raise ValueError(f"{name!r:.40} has the shape {shape!r:.40}, not [] or [width]")
    if not all(type(n) is int and 0 <= n <= MAX_WIDTH for n in shape):
        raise ValueError(f"{name!r:.40} has the shape {shape!r:.40}; at most {MAX_WIDTH} values are read")
    return name, kind, tuple(shape)
