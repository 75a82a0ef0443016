"""Where commands come from, each with its age, so that a silent sender can be noticed."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Sequence
from math import inf, isfinite
from typing import NamedTuple, Protocol

import numpy as np

MAX_LINE_BYTES = 256
READ_BYTES = 4096


class Command(NamedTuple):
    """A command and its age.

    Attributes:
        values: vx, vy, yaw rate, (3,) [m/s, m/s, rad/s].
        age_s: time since it was given [s].
    """

    values: np.ndarray
    age_s: float


class CommandSource(Protocol):
    """Gives the newest command at every tick, without waiting for it."""

    refused: int
    """Inputs that were no command."""

    def latest(self) -> Command:
        """Return the newest command."""
        ...


class FixedCommand:
    """One command for the whole drive: who typed it has Ctrl-C at hand, so it never ages."""

    def __init__(self, values: Sequence[float]) -> None:
        self.refused = 0
        self._command = Command(np.array(values, dtype=np.float64), 0.0)

    def latest(self) -> Command:
        """Return the command."""
        return self._command


class LineCommands:
    """Commands from another program: lines `VX VY YAW` on a file descriptor.

    A line that is no command is counted and passed over; who sends nothing else goes stale like the silent.

    Args:
        descriptor: what to read; it stays open.
        now: monotonic time [s].
    """

    def __init__(self, descriptor: int, now: Callable[[], float] = time.monotonic) -> None:
        self.refused = 0
        self._descriptor, self._now = descriptor, now
        self._rest = b""
        self._values, self._given = np.zeros(3), -inf

    def latest(self) -> Command:
        """Take in what has arrived and return the newest command."""
        if select.select([self._descriptor], [], [], 0)[0]:
            self._take(os.read(self._descriptor, READ_BYTES))
        return Command(self._values, self._now() - self._given)

    def _take(self, data: bytes) -> None:
        *lines, rest = (self._rest + data).split(b"\n")
        self._rest = rest[:MAX_LINE_BYTES]
        for line in lines:
            self._take_line(line)

    def _take_line(self, line: bytes) -> None:
        try:
            values = [float(word) for word in line.split()]
        except ValueError:
            values = []
        if len(values) != 3 or not all(isfinite(value) for value in values):
            self.refused += 1
            return
        self._values, self._given = np.array(values), self._now()
