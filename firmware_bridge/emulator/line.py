"""The far end of a serial port: a pseudo-terminal whose thread hears packets and sends bytes when due."""

from __future__ import annotations

import heapq
import os
import select
import termios
import threading
import tty
from collections.abc import Callable, Sequence
from itertools import count
from time import monotonic
from types import TracebackType
from typing import NamedTuple

from firmware_bridge.wire import protocol
from firmware_bridge.wire.protocol import Packet
from hardware import servo

_CHUNK = 4096
_SPEEDS = {getattr(termios, f"B{baud}"): baud for baud in servo.BAUD_CODES}


class Arrival(NamedTuple):
    """Bytes for the host, and in how long they are to be there [s]."""

    after_s: float
    data: bytes


class Line:
    """A serial port to connect to, and what answers on it; a context manager that listens inside its block.

    Args:
        answer: called with each packet and the speed [1/s] that the host has set, None for one that no
            device knows; returns what the host is to receive.

    Attributes:
        port: path of the port to connect to.
    """

    def __init__(self, answer: Callable[[Packet, int | None], Sequence[Arrival]]) -> None:
        self._answer = answer
        self._due: list[tuple[float, int, bytes]] = []
        self._number = count()
        # Keeping the far end open keeps the terminal alive, and its settings, between two clients.
        self._near, self._far = os.openpty()
        tty.setraw(self._far)
        os.set_blocking(self._near, False)
        self.port = os.ttyname(self._far)
        self._wake_read, self._wake_write = os.pipe()
        self._thread = threading.Thread(target=self._serve, name="emulated-duck", daemon=True)

    @property
    def baud(self) -> int | None:
        """Speed that the host has set [1/s], None for one that no device knows."""
        return _SPEEDS.get(termios.tcgetattr(self._far)[5])

    def __enter__(self) -> Line:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.write(self._wake_write, b"\0")
        self._thread.join()
        for descriptor in (self._near, self._far, self._wake_read, self._wake_write):
            os.close(descriptor)

    def _serve(self) -> None:
        parser = protocol.PacketParser(protocol.Discarded())
        while True:
            wait = max(0.0, self._due[0][0] - monotonic()) if self._due else None
            ready = select.select([self._near, self._wake_read], [], [], wait)[0]
            if self._wake_read in ready:
                return
            if ready:
                self._listen(parser)
            self._transmit()

    def _listen(self, parser: protocol.PacketParser) -> None:
        data, baud = os.read(self._near, _CHUNK), self.baud
        for packet in parser.feed(data):
            for arrival in self._answer(packet, baud):
                heapq.heappush(self._due, (monotonic() + arrival.after_s, next(self._number), arrival.data))

    def _transmit(self) -> None:
        """Hand over what is due, in one piece."""
        now = monotonic()
        data = bytearray()
        while self._due and self._due[0][0] <= now:
            data += heapq.heappop(self._due)[2]
        try:
            if data:
                os.write(self._near, data)
        except BlockingIOError:
            return  # a host that reads nothing for thousands of bytes loses them, as on a UART
