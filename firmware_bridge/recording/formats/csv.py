"""CSV: a line of names, then a line for each tick; an unknown value is left out."""

from __future__ import annotations

from collections.abc import Callable
from math import isnan
from pathlib import Path

import numpy as np

from firmware_bridge.recording.columns import columns
from firmware_bridge.recording.log import Log

LINES = 1000
"""Ticks that are put into text at a time."""


def writer() -> Callable[[Log, Path], None]:
    """Return what writes a log."""
    return write


def write(log: Log, path: Path) -> None:
    """Write a log.

    Raises:
        OSError: it cannot be written.
    """
    table = columns(log)
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(",".join(column.name for column in table) + "\r\n")
        values = [column.values(log) for column in table]
        for begin in range(0, log.ticks, LINES):
            texts = [_texts(column[begin : begin + LINES]) for column in values]
            file.writelines(",".join(line) + "\r\n" for line in zip(*texts, strict=True))


def _texts(values: np.ndarray) -> list[str]:
    """Return values as text that reads back as the same number."""
    if values.dtype.kind == "O":
        return [_quoted(text) for text in values.tolist()]
    if values.dtype.kind == "f":
        digits = "%.9g" if values.dtype.itemsize == 4 else "%.17g"
        return ["" if isnan(value) else digits % value for value in values.tolist()]
    return [str(int(value)) for value in values.tolist()]


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in ',"') else text
