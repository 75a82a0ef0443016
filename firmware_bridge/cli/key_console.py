"""A person at a terminal, or a script at a pipe, as something to talk with."""

from __future__ import annotations

import os
import select
import sys
from collections import deque
from time import monotonic
from typing import Self

from firmware_bridge.calibrate.dialogue import StoppedError
from firmware_bridge.commands.keys import KeyStream
from firmware_bridge.commands.terminal import READ_BYTES, KeyTerminal

_NAMES = {
    **{b"\r": "enter", b"\n": "enter"},
    **{b"\x1b[A": "up", b"\x1b[B": "down", b"\x1b[C": "right", b"\x1b[D": "left"},
    **{b"\x1bOA": "up", b"\x1bOB": "down", b"\x1bOC": "right", b"\x1bOD": "left"},
}
_CLEAR = "\r\x1b[K"


class KeyConsole:
    """Keys from standard input, and lines to standard error; a context manager.

    A terminal gives keys as they are pressed. From a pipe each character is a key, and a new line is Enter;
    what comes early waits for its turn, and the end of the pipe ends the calibration.

    Raises:
        ConfigError: standard input is a terminal in whose background this program is.
    """

    def __init__(self) -> None:
        self._input = sys.stdin.fileno()
        self._terminal = KeyTerminal(os.ttyname(self._input)) if os.isatty(self._input) else None
        self._keys: deque[bytes] = deque()
        self._stream = KeyStream()
        self._ended = False
        self._shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._clear()
        if self._terminal:
            self._terminal.close()

    def tell(self, text: str) -> None:
        """See `Console.tell`."""
        self._clear()
        print(text, file=sys.stderr, flush=True)

    def show(self, text: str) -> None:
        """See `Console.show`; a pipe is not shown what changes all the time."""
        if self._terminal and sys.stderr.isatty():
            print(_CLEAR + text, end="", file=sys.stderr, flush=True)
            self._shown = True

    def key(self) -> str | None:
        """See `Console.key`."""
        self._listen()
        if self._keys:
            key = self._keys.popleft()
            return _NAMES.get(key) or key.decode("latin-1")
        if self._ended:
            raise StoppedError("the keys' input ended")
        return None

    def forget_keys(self) -> None:
        """See `Console.forget_keys`; a script means what it says."""
        self._listen()
        if self._terminal:
            self._keys.clear()

    def _listen(self) -> None:
        typed = self._terminal.read() if self._terminal else self._read_pipe()
        self._ended = self._ended or typed is None
        if typed:
            self._keys += self._stream.feed(typed, monotonic())

    def _read_pipe(self) -> bytes | None:
        if self._ended or not select.select([self._input], [], [], 0)[0]:
            return b""
        return os.read(self._input, READ_BYTES) or None

    def _clear(self) -> None:
        if self._shown:
            print(_CLEAR, end="", file=sys.stderr, flush=True)
            self._shown = False
