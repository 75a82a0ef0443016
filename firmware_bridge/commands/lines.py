"""Commands from another program: lines on a file descriptor."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable
from math import inf, isfinite

import numpy as np

from firmware_bridge.commands.request import NO_COMMAND, NO_HEAD, Request

MAX_LINE_BYTES = 256
READ_BYTES = 4096


class LineCommands:
    """Lines `VX VY YAW` [m/s, m/s, rad/s]; the newest counts.

    A line that is no command is counted and passed over; who sends nothing else goes stale like the silent.

    Args:
        descriptor: what to read; it stays open.
        now: monotonic time [s].
    """

    interactive = False

    def __init__(self, descriptor: int, now: Callable[[], float] = time.monotonic) -> None:
        self.refused = 0
        self._descriptor, self._now = descriptor, now
        self._rest = b""
        self._values, self._given = NO_COMMAND, -inf

    def latest(self) -> Request:
        """Take in what has arrived and return the newest command."""
        if select.select([self._descriptor], [], [], 0)[0]:
            self._take(os.read(self._descriptor, READ_BYTES))
        return Request(None, self._values, NO_HEAD, self._now() - self._given, None)

    def close(self) -> None:
        """See `CommandSource.close`; the descriptor is the caller's."""

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
