"""The far end of a serial port: a pseudo-terminal that hears packets and sends bytes when they are due."""

from __future__ import annotations

import heapq
import os
import select
import termios
import threading
import tty
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from math import inf
from time import monotonic
from types import TracebackType
from typing import Any, NamedTuple, Protocol

from firmware_bridge.wire import protocol
from hardware import servo

_CHUNK = 4096
_SPEEDS = {getattr(termios, f"B{baud}"): baud for baud in servo.BAUD_CODES}


class Arrival(NamedTuple):
    """Bytes for the host, and in how long they are to be there [s]."""

    after_s: float
    data: bytes


class Parser(Protocol):
    """Finds packets in a stream of bytes."""

    def feed(self, data: bytes) -> Iterable[Any]:
        """Take bytes in, and return the packets that they complete."""
        ...


class Line:
    """A serial port to connect to, and what answers on it; a context manager.

    Args:
        answer: called with each packet that the parser finds and the speed [1/s] that the host has set, None
            for one that no device knows; returns what the host is to receive.
        clock: time base of what is due [s].
        threaded: answer in a thread of its own inside the `with` block; else whoever uses the port calls
            `step` when it is the line's turn.
        parser: finds packets in what the host sends; those of the servo bus when omitted.

    Attributes:
        port: path of the port to connect to.
        heard: bytes that came from the host so far.
        sent: bytes that went to the host so far.
    """

    def __init__(
        self,
        answer: Callable[[Any, int | None], Sequence[Arrival]],
        clock: Callable[[], float] = monotonic,
        threaded: bool = True,
        parser: Parser | None = None,
    ) -> None:
        self._answer, self._clock = answer, clock
        self._due: list[tuple[float, int, bytes]] = []
        self._number = count()
        self._parser = parser or protocol.PacketParser(protocol.Discarded())
        self.heard = self.sent = 0
        # Keeping the far end open keeps the terminal alive, and its settings, between two clients.
        self._near, self._far = os.openpty()
        tty.setraw(self._far)
        os.set_blocking(self._near, False)
        self.port = os.ttyname(self._far)
        self._wake_read, self._wake_write = os.pipe()
        self._thread = (
            threading.Thread(target=self._serve, name="emulated-duck", daemon=True) if threaded else None
        )

    @property
    def baud(self) -> int | None:
        """Speed that the host has set [1/s], None for one that no device knows."""
        return _SPEEDS.get(termios.tcgetattr(self._far)[5])

    @property
    def next_due(self) -> float:
        """When the next bytes are due [s, on the clock]; infinite when there are none."""
        return self._due[0][0] if self._due else inf

    def step(self, wait: float) -> bool:
        """Hear what the host sent, waiting for it up to a real time [s] or for good, and send what is due.

        Returns:
            False when the `with` block ends.
        """
        ready = select.select([self._near, self._wake_read], [], [], None if wait == inf else wait)[0]
        if self._wake_read in ready:
            return False
        if ready:
            self._listen()
        self._transmit()
        return True

    def __enter__(self) -> Line:
        if self._thread:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.write(self._wake_write, b"\0")
        if self._thread:
            self._thread.join()
        for descriptor in (self._near, self._far, self._wake_read, self._wake_write):
            os.close(descriptor)

    def _serve(self) -> None:
        while self.step(max(0.0, self.next_due - self._clock())):
            pass

    def _listen(self) -> None:
        data, baud = os.read(self._near, _CHUNK), self.baud
        self.heard += len(data)
        for packet in self._parser.feed(data):
            for arrival in self._answer(packet, baud):
                due = self._clock() + arrival.after_s
                heapq.heappush(self._due, (due, next(self._number), arrival.data))

    def _transmit(self) -> None:
        """Hand over what is due, in one piece."""
        now = self._clock()
        data = bytearray()
        while self._due and self._due[0][0] <= now:
            data += heapq.heappop(self._due)[2]
        try:
            if data:
                self.sent += os.write(self._near, data)
        except BlockingIOError:
            return  # a host that reads nothing for thousands of bytes loses them, as on a UART
