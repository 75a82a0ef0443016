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

    A line that is no command is counted and passed over; who sends nothing else goes stale like the silent,
    and so does a descriptor that cannot be read, such as the terminal of a program in the background.

    Args:
        descriptor: what to read; it stays open.
        say: shows a line to the user.
        now: monotonic time [s].
    """

    interactive = False

    def __init__(
        self,
        descriptor: int,
        say: Callable[[str], None] = lambda line: None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.refused = 0
        self._descriptor, self._say, self._now = descriptor, say, now
        self._readable = True
        self._rest = b""
        self._values, self._given = NO_COMMAND, -inf

    def latest(self) -> Request:
        """Take in what has arrived and return the newest command."""
        if self._readable and select.select([self._descriptor], [], [], 0)[0]:
            try:
                self._take(os.read(self._descriptor, READ_BYTES))
            except OSError as error:
                self._readable = False
                self._say(
                    f"no more commands: standard input cannot be read ({error.strerror}); run in the "
                    "foreground, or give it a pipe"
                )
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
