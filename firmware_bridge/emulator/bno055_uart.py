"""A BNO055 behind a serial port: a pseudo-terminal on which it answers its own protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import monotonic
from types import TracebackType
from typing import NamedTuple

from firmware_bridge.emulator.bno055 import EmulatedBno055
from firmware_bridge.emulator.line import Arrival, Line
from firmware_bridge.robot.imu import uart

_HEAD = 4
_MOST_BYTES = 128


class _Request(NamedTuple):
    """A read of `length` registers from an address on, or a write of data to them."""

    address: int
    length: int
    data: bytes | None


class _RequestParser:
    """Finds requests in what the host sends."""

    def __init__(self) -> None:
        self._heard = bytearray()

    def feed(self, data: bytes) -> Iterator[_Request]:
        """Take bytes in, and yield what they complete; bytes before a start byte are passed over."""
        self._heard += data
        while (start := self._heard.find(uart.START)) >= 0:
            del self._heard[:start]
            if len(self._heard) < _HEAD:
                return
            _, kind, address, length = self._heard[:_HEAD]
            size = _HEAD + (length if kind == uart.WRITE else 0)
            if len(self._heard) < size:
                return
            written = bytes(self._heard[_HEAD:size]) if kind == uart.WRITE else None
            del self._heard[:size]
            yield _Request(address, length, written)


class EmulatedBno055Uart:
    """A BNO055 on a serial port of its own; a context manager.

    Args:
        chip: the chip.
        clock: time base [s].
        threaded: answer in a thread of its own; else whoever uses the port calls `line.step`.

    Attributes:
        chip: the chip, whose faults show on the line.
        line: the far end of the port.
        port: path of the port to connect to.
        overruns: how many requests it will still answer with `bus overrun`.
    """

    def __init__(
        self, chip: EmulatedBno055, clock: Callable[[], float] = monotonic, threaded: bool = True
    ) -> None:
        self.chip = chip
        self.overruns = 0
        self.line = Line(self._answer, clock, threaded, _RequestParser())
        self.port = self.line.port

    def __enter__(self) -> EmulatedBno055Uart:
        self.line.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.line.__exit__(kind, error, trace)

    def _answer(self, request: _Request, baud: int | None) -> list[Arrival]:
        if baud != uart.BAUD or not self.chip.hears():
            return []
        return [Arrival(0.0, self.chip.spoilt(self._reply(request)))]

    def _reply(self, request: _Request) -> bytes:
        if self.overruns:
            self.overruns -= 1
            return bytes((uart.RESPONSE, uart.OVERRUN))
        if not 0 < request.length <= _MOST_BYTES:
            return bytes((uart.RESPONSE, 0x08 if request.length else 0x09))
        if request.data is None:
            data = self.chip.read(request.address, request.length)
            return bytes((uart.DATA, len(data))) + data
        for offset, value in enumerate(request.data):
            self.chip.write(request.address + offset, value)
        return bytes((uart.RESPONSE, uart.DONE))
