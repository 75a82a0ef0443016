"""Answers that come after their time: none is taken for the answer to a newer question."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from firmware_bridge.wire import protocol, registers, transport
from firmware_bridge.wire.bus import Bus
from hardware.errors import BusTimeoutError

LEGS = (20, 21, 22, 23, 24, 10, 11, 12, 13, 14)
A15_ANSWER = "FF FF FD 00 14 08 00 55 00 00 08 00 00 FF C1"


class DelayedPort:
    """A wire on which each answer takes the next of some times to arrive, on a clock that only it moves."""

    def __init__(self, port, clock, delays: list[float]) -> None:
        self.port, self.clock, self.delays = port, clock, delays
        self.arriving: list[tuple[float, bytes]] = []

    def write(self, data: bytes) -> None:
        self.port.write(data)
        arrival = self.clock.now + (self.delays.pop(0) if self.delays else 0.0)
        self.arriving.append((arrival, self.port.flush_input()))

    def read(self, count: int, deadline: float) -> bytes:
        if self.arriving and self.arriving[0][0] <= deadline:
            arrival, data = self.arriving.pop(0)
            self.clock.now = max(self.clock.now, arrival)
            return data
        self.clock.now = max(self.clock.now, deadline)
        return b""

    def flush_input(self) -> bytes:
        here = [data for arrival, data in self.arriving if arrival <= self.clock.now]
        self.arriving = [(arrival, data) for arrival, data in self.arriving if arrival > self.clock.now]
        return b"".join(here)


class LatePort:
    """A wire on which the answers to the first question come with those to the second, just before them."""

    def __init__(self, port) -> None:
        self.port = port
        self.held: bytes | None = None

    def write(self, data: bytes) -> None:
        self.port.write(data)
        if self.held is None:
            self.held = self.port.flush_input()
        else:
            self.port.waiting[:0] = self.held
            self.held = b""

    def read(self, count: int, deadline: float) -> bytes:
        return self.port.read(count, deadline)

    def flush_input(self) -> bytes:
        return self.port.flush_input()


def test_late_answer_to_an_older_question_is_forgotten(scripted) -> None:
    port = scripted(A15_ANSWER)
    port.waiting = protocol.status(20, 0, b"\0\4\0\0")  # 1024
    bus = Bus(port)
    assert bus.read(20, registers.PRESENT_POSITION) == 0.0
    assert bus.stats.of(20) == {"late": 1}


def test_answer_that_comes_twice_is_late_the_second_time(scripted) -> None:
    bus = Bus(scripted(A15_ANSWER + A15_ANSWER, A15_ANSWER))
    assert bus.read(20, registers.PRESENT_POSITION) == 0.0
    assert bus.read(20, registers.PRESENT_POSITION) == 0.0
    assert bus.stats.totals() == {"late": 1}


def test_late_answer_of_one_device_is_not_taken_for_that_to_another_question(
    wire_port, clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both tries are answered after 30 ms, 10 ms too late, and the next question after 15 ms."""
    monkeypatch.setattr(transport, "monotonic", clock)
    bus = Bus(DelayedPort(wire_port, clock, [0.030, 0.030, 0.015]))
    with pytest.raises(BusTimeoutError):
        bus.read(20, registers.RETURN_DELAY)  # 0
    assert bus.read(20, registers.OPERATING_MODE) == 3
    assert bus.stats.of(20) == {"timeout": 2, "retry": 1, "late": 2}


@pytest.mark.parametrize(
    ("form", "late"), [("fast_sync_read", {254: 1}), ("sync_read", dict.fromkeys(LEGS, 1))]
)
def test_answers_that_come_a_tick_late_are_not_taken_for_new_ones(
    wire_port, timed: Callable, form: str, late: dict[int, int]
) -> None:
    bus = Bus(timed(LatePort(wire_port)))
    read = getattr(bus, form)
    with pytest.raises(BusTimeoutError):
        read(132, 4, LEGS, 5e-3)
    for device in LEGS:
        wire_port.servo(device).poke(registers.PRESENT_POSITION, 3000 + device)
    blocks = read(132, 4, LEGS)
    assert {d: int.from_bytes(block.data, "little") for d, block in blocks.items()} == {
        d: 3000 + d for d in LEGS
    }
    assert {device: count for (device, kind), count in bus.stats.by_id.items() if kind == "late"} == late
