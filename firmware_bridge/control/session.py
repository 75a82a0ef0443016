"""One connection to the control socket: bounded both ways, and nothing ever waits for it."""

from __future__ import annotations

import json
import socket
from math import inf
from typing import Any

from firmware_bridge.control.desk import Party
from firmware_bridge.control.network import Listen

MAX_LINE_BYTES = 4096
MAX_LINES = 8
"""Lines of a connection that are looked at in one pass; of a flood, only the newest."""
READ_BYTES = 256 * 1024
"""Read at once; no less than the kernel keeps, so that a flood cannot queue there."""
MAX_OUTBOX_BYTES = 128 * 1024
"""What may wait for a slow reader, about a second of ticks at the highest rate."""
TOKEN_S = 2.0
"""Time in which a token must come [s]."""


class Session:
    """A connection and what waits on its way out.

    Args:
        connection: the socket, which does not block.
        listen: what the first line must satisfy, None for a local connection.
        now: monotonic time [s].

    Attributes:
        party: what the desk knows of it, None before its token came.
        due: when the next tick is due [s].
        sent: when the last one was sent [s].
        last: the line it came in.
        over: whether to close the connection.
        refused: what was refused before it reached the desk.
    """

    def __init__(self, connection: socket.socket, listen: Listen | None, now: float) -> None:
        self.connection, self.listen = connection, listen
        self.party = Party() if listen is None else None
        self.due, self.sent = now, -inf
        self.last = b""
        self.over = False
        self.refused = 0
        self._token_due = now + TOKEN_S
        self._inbox, self._outbox = b"", b""

    @property
    def waiting(self) -> bool:
        """Whether something still has to be sent."""
        return bool(self._outbox)

    def read_lines(self) -> list[bytes]:
        """Return the lines that have come; of more than `MAX_LINES` the newest."""
        try:
            data = self.connection.recv(READ_BYTES)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        if not data:
            self.over = True
        whole, end, self._inbox = (self._inbox + data).rpartition(b"\n")
        lines = whole.rsplit(b"\n", MAX_LINES) if end else []
        if len(lines) > MAX_LINES:
            skipped = lines.pop(0).count(b"\n") + 1
            self.refuse(f"{skipped} lines were passed over: of more than {MAX_LINES} at once the last count")
        if max(map(len, (self._inbox, *lines))) > MAX_LINE_BYTES:
            self.refuse(f"a line is longer than {MAX_LINE_BYTES} bytes; the connection is closed")
            self.over = True
            return []
        return lines

    def admit(self, line: bytes) -> bool:
        """Take the first line of a connection from the network; return whether its token is right."""
        if self.listen is not None and self.listen.admits(line):
            self.party = Party()
            self.send(encode({"ok": True}))
            return True
        self.refuse('the first line must be {"token": "..."} with the token of this drive')
        self.over = True
        return False

    def expire(self, now: float) -> None:
        """Give up on a connection that does not bring its token."""
        self.over = self.over or (self.party is None and now > self._token_due)

    def refuse(self, error: str) -> None:
        """Answer that something cannot be done, and count it."""
        self.refused += 1
        self.send(encode({"ok": False, "error": error}))

    def send(self, line: bytes) -> None:
        """Send a line as far as it goes; one who reads too slowly is given up."""
        self._outbox += line
        try:
            self._outbox = self._outbox[self.connection.send(self._outbox) :]
        except BlockingIOError:
            self.over = self.over or len(self._outbox) > MAX_OUTBOX_BYTES
        except OSError:
            self.over = True


def encode(content: dict[str, Any]) -> bytes:
    """Return an object as a line of strict JSON."""
    return json.dumps(content, allow_nan=False, separators=(",", ":")).encode() + b"\n"
