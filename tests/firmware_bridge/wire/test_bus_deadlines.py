"""How long the bus takes and waits; nothing outlasts the deadline that it was given."""

from __future__ import annotations

from time import monotonic

import pytest

from firmware_bridge.wire import bus as bus_module
from firmware_bridge.wire import protocol, registers
from firmware_bridge.wire.bus import Bus
from firmware_bridge.wire.protocol import Instruction
from hardware.contract import CONTROL_PERIOD_S
from hardware.errors import BusTimeoutError
from hardware.joints import SERVO_IDS

DUCK = (200, *SERVO_IDS)


class SilentPort:
    """Nobody answers; adds up how long the bus would have waited."""

    def __init__(self) -> None:
        self.waited = 0.0

    def write(self, data: bytes) -> None:
        pass

    def read(self, count: int, deadline: float) -> bytes:
        self.waited += deadline - monotonic()
        return b""

    def flush_input(self) -> bytes:
        return b""


def questions(port) -> list[int]:
    return [packet.instruction for packet in port.port.sent]


def test_bus_time_agrees_with_the_wire_arithmetic() -> None:
    bus = Bus(port=None, baud=1_000_000)  # type: ignore[arg-type]
    plain = bus.reply_time(len(protocol.sync_read(124, 12, range(16))), 16 * 23)
    fast = bus.reply_time(len(protocol.fast_sync_read(124, 12, range(16))), 8 + 16 * 16)
    assert plain == pytest.approx(3.98e-3)
    assert fast == pytest.approx(2.94e-3)


def test_factory_return_delay_costs_eight_milliseconds() -> None:
    slow = Bus(port=None, return_delay=500e-6)  # type: ignore[arg-type]
    quick = Bus(port=None)  # type: ignore[arg-type]
    assert slow.reply_time(0, 0, 16) - quick.reply_time(0, 0, 16) == pytest.approx(8e-3)


def test_read_of_a_silent_duck_and_its_retry_end_within_one_tick() -> None:
    port = SilentPort()
    with pytest.raises(BusTimeoutError):
        Bus(port).fast_sync_read(124, 12, DUCK, monotonic() + CONTROL_PERIOD_S)
    assert 0.010 < port.waited < CONTROL_PERIOD_S


def test_line_that_never_stops_making_noise_does_not_hold_the_bus(monkeypatch: pytest.MonkeyPatch) -> None:
    class NoisyPort(SilentPort):
        def read(self, count: int, deadline: float) -> bytes:
            return b"\xff\xff\xfd\x00\x14\x03\x00" * 30

    monkeypatch.setattr(bus_module, "SCAN_WINDOW_S", 0.01)
    bus = Bus(NoisyPort())
    with pytest.raises(BusTimeoutError):
        bus.read(20, registers.LED)
    with pytest.raises(BusTimeoutError):
        bus.fast_sync_read(124, 12, DUCK)
    assert bus.scan() == []
    assert bus.stats.half > 0


@pytest.mark.parametrize("deadline_ms", [3.78, 20.0])
def test_whole_duck_is_read_in_less_than_three_milliseconds(timed_port, deadline_ms: float) -> None:
    """29 bytes out and 248 back at 10 microseconds each, and 1 ms that a USB frame may take."""
    Bus(timed_port).fast_sync_read(124, 12, DUCK, deadline_ms * 1e-3)
    assert timed_port.clock.now == pytest.approx(2.77e-3)


def test_nothing_is_asked_when_the_answers_could_not_be_there_in_time(timed_port) -> None:
    with pytest.raises(
        BusTimeoutError, match=r"no time left to read address 124 of 15 devices.* takes 2\.8 ms"
    ):
        Bus(timed_port).fast_sync_read(124, 12, DUCK, 3.76e-3)
    assert questions(timed_port) == []


def test_missing_ids_are_asked_again_when_the_tick_has_room(timed_port) -> None:
    """A lost reply is waited for until 7.77 ms; asking all again takes 3.74 ms, and 1 ms for a USB frame."""
    timed_port.lost = [True]
    blocks = Bus(timed_port).fast_sync_read(124, 12, DUCK, 12.52e-3)
    assert tuple(blocks) == DUCK
    assert questions(timed_port) == [Instruction.FAST_SYNC_READ, Instruction.SYNC_READ]
    assert timed_port.clock.now < 12.52e-3


def test_missing_ids_are_not_asked_again_when_the_tick_has_no_room(timed_port) -> None:
    timed_port.lost = [True]
    bus = Bus(timed_port)
    with pytest.raises(BusTimeoutError, match="no good answer in time from ids 200, 20, "):
        bus.fast_sync_read(124, 12, DUCK, 12.50e-3)
    assert questions(timed_port) == [Instruction.FAST_SYNC_READ]
    assert bus.stats.totals() == {"timeout": 1}


@pytest.mark.parametrize(("deadline_ms", "asked_again"), [(4.16, True), (4.14, False)])
def test_one_missing_id_needs_less_room(timed_port, flip_once, deadline_ms: float, asked_again: bool) -> None:
    """The reply is there after 2.77 ms; one device answers again in 0.38 ms, and 1 ms for a USB frame."""
    flip_once(timed_port.port, 8 + 16 * DUCK.index(33) + 5)
    bus = Bus(timed_port)
    try:
        assert tuple(bus.fast_sync_read(124, 12, DUCK, deadline_ms * 1e-3)) == DUCK
    except BusTimeoutError as error:
        assert "from ids 33 to" in str(error)
    assert bus.stats.of(33) == {"crc": 1, "timeout": 1} | ({"retry": 1} if asked_again else {})


def test_no_read_outlasts_its_deadline(timed_port) -> None:
    for milliseconds in range(4, 20):
        start = timed_port.clock.now
        timed_port.lost = [True, True]
        with pytest.raises(BusTimeoutError):
            Bus(timed_port).fast_sync_read(124, 12, DUCK, start + milliseconds * 1e-3)
        assert timed_port.clock.now <= start + milliseconds * 1e-3 + 1e-9


def test_return_delay_counts_for_the_deadline(timed_port) -> None:
    """Fifteen devices that wait 500 microseconds each add 7.5 ms."""
    slow = Bus(timed_port, return_delay=500e-6)
    with pytest.raises(BusTimeoutError, match=r"takes 10\.3 ms"):
        slow.fast_sync_read(124, 12, DUCK, 11.2e-3)
    slow.fast_sync_read(124, 12, DUCK, 11.3e-3)


def test_read_that_has_no_room_is_left_out(timed_port) -> None:
    """18 bytes out and 36 back: 0.54 ms, and 1 ms for a USB frame."""
    bus = Bus(timed_port)
    assert bus.read_if_room(144, 3, (20, 21, 22, 23), 1.5e-3) is None
    assert questions(timed_port) == []
    assert tuple(bus.read_if_room(144, 3, (20, 21, 22, 23), 1.6e-3) or ()) == (20, 21, 22, 23)
