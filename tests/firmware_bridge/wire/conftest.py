"""A wire with a clock of its own, and damage to one reply."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from firmware_bridge.wire import transport


class TimedPort:
    """A wire at 1 Mbaud on a clock that only it moves; `lost` says of each reply whether it is lost."""

    def __init__(self, port, clock) -> None:
        self.port, self.clock = port, clock
        self.lost: list[bool] = []
        self.sent_at = 0.0

    def write(self, data: bytes) -> None:
        self.sent_at = self.clock.now + len(data) * 10e-6  # the driver takes the bytes at once
        self.port.write(data)
        if self.lost and self.lost.pop(0):
            self.port.waiting.clear()

    def read(self, count: int, deadline: float) -> bytes:
        data = self.port.read(count, deadline)
        self.clock.now = max(self.clock.now, self.sent_at + len(data) * 10e-6 if data else deadline)
        return data

    def flush_input(self) -> bytes:
        return self.port.flush_input()


@pytest.fixture
def timed(clock, monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], TimedPort]:
    """Puts a port on a wire that takes its time, and the bus on the clock of that wire."""

    def make(port: Any) -> TimedPort:
        monkeypatch.setattr(transport, "monotonic", clock)
        return TimedPort(port, clock)

    return make


@pytest.fixture
def timed_port(timed: Callable[[Any], TimedPort], wire_port) -> TimedPort:
    """The duck's sixteen devices on a wire that takes its time."""
    return timed(wire_port)


@pytest.fixture
def flip_once() -> Callable[[Any, int], None]:
    """Flips a bit of one byte of a port's next reply."""

    def damage(port: Any, place: int) -> None:
        places = [place]

        def flip(reply: bytes) -> bytes:
            if not places:
                return reply
            at = places.pop()
            return reply[:at] + bytes([reply[at] ^ 0x10]) + reply[at + 1 :]

        port.wire.filter = flip

    return damage
