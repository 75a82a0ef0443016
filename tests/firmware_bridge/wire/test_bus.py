from __future__ import annotations

import logging
from math import inf, pi
from time import monotonic

import pytest

from firmware_bridge.emulator.devices import EmulatedServo
from firmware_bridge.wire import bus as bus_module
from firmware_bridge.wire import protocol, registers, transport
from firmware_bridge.wire.bus import Bus, Found
from firmware_bridge.wire.protocol import Block, Instruction
from hardware.contract import CONTROL_PERIOD_S
from hardware.errors import BusTimeoutError, DeviceError, SafetyError

A08_ALERT = "FF FF FD 00 14 08 00 55 80 00 08 00 00 FC 7D"
A08_REGISTER_70 = "FF FF FD 00 14 05 00 55 80 24 95 39"
A15_ECHO = "FF FF FD 00 14 07 00 02 84 00 04 00 66 C5"
A15_ANSWER = "FF FF FD 00 14 08 00 55 00 00 08 00 00 FF C1"
A21 = "FF FF FD 00 01 07 00 55 00 06 04 26 65 5D"
A04_REPLY = "FF FF FD 00 FE 19 00 55 00 14 00 08 00 00 FC F6 00 15 FF FF FF FF AE AC 80 16 FF FF FD 00 1F AA"
LEGS = (20, 21, 22, 23, 24, 10, 11, 12, 13, 14)
DUCK = (200, 20, 21, 22, 23, 24, 30, 31, 32, 33, 10, 11, 12, 13, 14)


def position(device: int, count: int = 2048, error: int = 0) -> str:
    return protocol.status(device, error, count.to_bytes(4, "little", signed=True)).hex()


def test_ping_returns_model_and_firmware(scripted) -> None:
    assert Bus(scripted(A21)).ping(1) == (1030, 38)


def test_read_skips_the_own_echo(scripted) -> None:
    bus = Bus(scripted(A15_ECHO + A15_ANSWER))
    assert bus.read(20, registers.PRESENT_POSITION) == 0.0
    assert bus.stats.totals() == {"echo": 1}


def test_alert_bit_does_not_fail_a_read(scripted) -> None:
    bus = Bus(scripted(A08_ALERT, A08_REGISTER_70))
    assert bus.read(20, registers.PRESENT_POSITION) == 0.0
    status = bus.read(20, registers.HARDWARE_ERROR)
    assert registers.hardware_errors(int(status)) == ("overload", "overheating")


def test_write_sends_counts_and_waits_for_the_acknowledgement(scripted) -> None:
    port = scripted(protocol.status(1).hex())
    Bus(port).write(1, registers.GOAL_POSITION, (512 - 2048) * 2 * pi / 4096)
    assert port.sent == [bytes.fromhex("FF FF FD 00 01 09 00 03 74 00 00 02 00 00 CA 89")]


def test_lost_acknowledgement_is_asked_for_once_more(scripted) -> None:
    port = scripted("", protocol.status(20).hex())
    bus = Bus(port)
    bus.write(20, registers.LED, 1)
    assert len(port.sent) == 2
    assert (bus.stats.retry, bus.stats.timeout) == (1, 1)


def test_silent_device_is_given_up_after_two_tries(scripted) -> None:
    port = scripted()
    bus = Bus(port)
    with pytest.raises(
        BusTimeoutError, match="device 20 gave no good answer to the read of present_position"
    ):
        bus.read(20, registers.PRESENT_POSITION)
    assert len(port.sent) == 2
    assert (bus.stats.retry, bus.stats.timeout) == (1, 2)


def test_refusal_by_the_device_is_not_repeated(scripted) -> None:
    port = scripted(protocol.status(20, 7).hex())
    with pytest.raises(DeviceError, match=r"refused the write of shutdown: access error \(code 7\)"):
        Bus(port).write(20, registers.SHUTDOWN, 52)
    assert len(port.sent) == 1


def test_instruction_that_reached_the_device_damaged_is_repeated(scripted) -> None:
    bus = Bus(scripted(protocol.status(20, 3).hex(), A15_ANSWER))
    assert bus.read(20, registers.PRESENT_POSITION) == 0.0
    assert bus.stats.retry == 1


def test_answer_of_the_wrong_length_is_not_taken(scripted) -> None:
    bus = Bus(scripted(protocol.status(20, 0, b"\x01\x02").hex() + A15_ANSWER))
    assert bus.read(20, registers.PRESENT_POSITION) == 0.0
    assert bus.stats.of(20) == {"short": 1}


def test_late_answer_to_an_older_question_is_forgotten(scripted) -> None:
    port = scripted(A15_ANSWER)
    port.waiting = bytes.fromhex(position(20, 1024))
    bus = Bus(port)
    assert bus.read(20, registers.PRESENT_POSITION) == 0.0
    assert bus.stats.of(20) == {"late": 1}


def test_sync_read_asks_once_more_for_the_missing_id_only(scripted) -> None:
    port = scripted(position(2) + position(4) + position(6), position(3, 1024))
    bus = Bus(port)
    blocks = bus.sync_read(132, 4, (2, 3, 4, 6))
    assert list(blocks) == [2, 3, 4, 6]
    assert blocks[3] == Block(0, b"\x00\x04\x00\x00")
    assert port.sent == [protocol.sync_read(132, 4, (2, 3, 4, 6)), protocol.sync_read(132, 4, (3,))]
    assert bus.stats.totals() == {"timeout": 1, "retry": 1}
    assert bus.stats.of(3) == {"timeout": 1, "retry": 1}
    assert bus.stats.of(2) == {}


def test_sync_read_names_the_ids_that_stay_silent(scripted) -> None:
    bus = Bus(scripted(position(2) + position(6), position(4)))
    with pytest.raises(
        BusTimeoutError, match=r"no good answer in time from ids 3 to the read at address 132"
    ):
        bus.sync_read(132, 4, (2, 3, 4, 6))
    assert bus.stats.timeout == 2


def test_available_sync_read_leaves_silent_ids_out(scripted) -> None:
    bus = Bus(scripted(position(2) + position(6)))
    assert list(bus.sync_read_available(132, 4, (2, 3, 6))) == [2, 6]


def test_sync_read_answers_keep_the_order_asked_and_their_alerts(scripted) -> None:
    bus = Bus(scripted(position(2) + position(6, error=0x80)))
    blocks = bus.sync_read(132, 4, (2, 6))
    assert list(blocks) == [2, 6]
    assert blocks[6].error == 0x80
    assert bus.stats.retry == 0


def test_block_with_an_error_code_is_no_answer(scripted) -> None:
    bus = Bus(scripted(position(2, error=7)))
    with pytest.raises(BusTimeoutError, match="ids 2"):
        bus.sync_read(132, 4, (2,))
    assert bus.stats.of(2) == {"refused": 1, "timeout": 2, "retry": 1}


def test_fast_sync_read_returns_raw_bytes_and_alerts(scripted) -> None:
    port = scripted(A04_REPLY)
    blocks = Bus(port).fast_sync_read(132, 4, (20, 21, 22))
    assert port.sent[0].hex(" ").upper() == "FF FF FD 00 FE 0A 00 8A 84 00 04 00 14 15 16 60 9F"
    assert [int.from_bytes(blocks[i].data, "little", signed=True) for i in (20, 21)] == [2048, -1]
    assert blocks[22] == Block(0x80, bytes.fromhex("FF FF FD 00"))


def test_fast_sync_read_reads_on_past_the_own_echo(make_wire_port) -> None:
    class Sparing(make_wire_port):
        def read(self, count: int, deadline: float) -> bytes:
            data = bytes(self.waiting[:count])
            del self.waiting[:count]
            return data

    bus = Bus(Sparing([EmulatedServo(i) for i in (20, 21)], echo=True))
    assert list(bus.fast_sync_read(132, 4, (20, 21))) == [20, 21]
    assert bus.stats.retry == 0


def test_damaged_block_of_a_fast_reply_is_asked_for_alone(scripted) -> None:
    damaged = A04_REPLY.replace("15 FF FF FF FF", "15 FF FF 7F FF")
    port = scripted(damaged, position(21, -1))
    bus = Bus(port)
    blocks = bus.fast_sync_read(132, 4, (20, 21, 22))
    assert list(blocks) == [20, 21, 22]
    assert blocks[21].data == b"\xff\xff\xff\xff"
    assert port.sent[1] == protocol.sync_read(132, 4, (21,))
    assert bus.stats.of(21) == {"crc": 1, "timeout": 1, "retry": 1}
    assert bus.stats.of(20) == bus.stats.of(22) == {}


def test_one_device_without_fast_sync_read_is_named_and_worked_around(
    wire_port, wire_bus: Bus, caplog: pytest.LogCaptureFixture
) -> None:
    wire_port.servo(31).knows_fast_sync_read = False
    with caplog.at_level(logging.WARNING):
        for _ in range(6):
            assert tuple(wire_bus.fast_sync_read(124, 12, DUCK)) == DUCK
    used = [packet.instruction for packet in wire_port.sent]
    fast, plain = Instruction.FAST_SYNC_READ, Instruction.SYNC_READ
    assert used == [fast, plain] * 3 + [plain] * 3
    assert [record.message for record in caplog.records] == [
        "device 31 does not answer fast sync reads (an XL330 needs firmware 46); using plain ones"
    ]
    assert wire_bus.stats.retry == 3


def test_bad_luck_at_changing_devices_does_not_end_fast_sync_reads(wire_port, wire_bus: Bus) -> None:
    for device in (31, 12, 31, 12, 31):
        wire_port.servo(device).knows_fast_sync_read = False
        wire_bus.fast_sync_read(124, 12, DUCK)
        wire_port.servo(device).knows_fast_sync_read = True
    wire_bus.fast_sync_read(124, 12, DUCK)
    assert wire_port.sent[-1].instruction == Instruction.FAST_SYNC_READ


def test_a_good_fast_sync_read_clears_earlier_suspicion(wire_port, wire_bus: Bus) -> None:
    for knows in (False, False, True, False, False, True):
        wire_port.servo(31).knows_fast_sync_read = knows
        wire_bus.fast_sync_read(124, 12, DUCK)
    assert wire_port.sent[-1].instruction == Instruction.FAST_SYNC_READ


def test_dead_device_fails_the_fast_sync_read_by_name(wire_port, wire_bus: Bus) -> None:
    wire_port.unplug(31)
    for _ in range(5):
        with pytest.raises(BusTimeoutError, match="ids 31 "):
            wire_bus.fast_sync_read(124, 12, DUCK)
    fast = [packet for packet in wire_port.sent if packet.instruction == Instruction.FAST_SYNC_READ]
    assert len(fast) == 5  # a dead device is no reason to give fast reads up


def test_sync_write_sends_one_packet_for_all(scripted) -> None:
    port = scripted()
    step = 2 * pi / 4096
    Bus(port).sync_write(registers.GOAL_POSITION, {1: (150 - 2048) * step, 2: (170 - 2048) * step})
    manual = "FF FF FD 00 FE 11 00 83 74 00 04 00 01 96 00 00 00 02 AA 00 00 00 82 87"
    assert port.sent == [bytes.fromhex(manual)]


def test_sync_write_with_one_bad_value_sends_nothing(scripted) -> None:
    port = scripted()
    with pytest.raises(SafetyError, match="goal_position cannot be nan"):
        Bus(port).sync_write(registers.GOAL_POSITION, {1: 0.0, 2: float("nan")})
    assert port.sent == []


def test_scan_finds_every_device_and_its_model(wire_bus: Bus) -> None:
    found = wire_bus.scan()
    assert len(found) == 16
    assert Found(20, 1200, 52) in found
    assert {device.id for device in found if device.model == 10200} == {200}


def test_scan_lists_an_id_twice_when_two_devices_take_turns(scripted) -> None:
    one = protocol.status(20, 0, b"\xb0\x04\x34").hex()
    assert [device.id for device in Bus(scripted(one + one)).scan()] == [20, 20]


@pytest.mark.parametrize(
    ("arriving", "expected"),
    [
        (A15_ANSWER, (1, 0)),
        ("", (0, 0)),
        (A15_ANSWER + A15_ANSWER, (2, 0)),
        (A15_ANSWER.replace("08 00 00 FF", "08 20 00 FF"), (0, 1)),
    ],
)
def test_census_tells_whole_from_damaged_answers(scripted, arriving: str, expected: tuple[int, int]) -> None:
    assert Bus(scripted(arriving)).census(20, 132, 4) == expected


def test_reboot_clears_a_tripped_servo(wire_port, wire_bus: Bus) -> None:
    servo = wire_port.servo(13)
    servo.trip(0x20)
    wire_bus.reboot(13)
    assert wire_bus.read(13, registers.HARDWARE_ERROR) == 0


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
def timed_port(wire_port, clock, monkeypatch: pytest.MonkeyPatch) -> TimedPort:
    monkeypatch.setattr(transport, "monotonic", clock)
    return TimedPort(wire_port, clock)


def questions(port: TimedPort) -> list[int]:
    return [packet.instruction for packet in port.port.sent]


@pytest.mark.parametrize("deadline_ms", [3.78, 20.0])
def test_whole_duck_is_read_in_less_than_three_milliseconds(
    timed_port: TimedPort, deadline_ms: float
) -> None:
    """29 bytes out and 248 back at 10 microseconds each, and 1 ms that a USB frame may take."""
    Bus(timed_port).fast_sync_read(124, 12, DUCK, deadline_ms * 1e-3)
    assert timed_port.clock.now == pytest.approx(2.77e-3)


def test_nothing_is_asked_when_the_answers_could_not_be_there_in_time(timed_port: TimedPort) -> None:
    with pytest.raises(
        BusTimeoutError, match=r"no time left to read address 124 of 15 devices.* takes 2\.8 ms"
    ):
        Bus(timed_port).fast_sync_read(124, 12, DUCK, 3.76e-3)
    assert questions(timed_port) == []


def test_missing_ids_are_asked_again_when_the_tick_has_room(timed_port: TimedPort) -> None:
    """A lost reply is waited for until 7.77 ms; asking all again takes 3.74 ms, and 1 ms for a USB frame."""
    timed_port.lost = [True]
    blocks = Bus(timed_port).fast_sync_read(124, 12, DUCK, 12.52e-3)
    assert tuple(blocks) == DUCK
    assert questions(timed_port) == [Instruction.FAST_SYNC_READ, Instruction.SYNC_READ]
    assert timed_port.clock.now < 12.52e-3


def test_missing_ids_are_not_asked_again_when_the_tick_has_no_room(timed_port: TimedPort) -> None:
    timed_port.lost = [True]
    bus = Bus(timed_port)
    with pytest.raises(BusTimeoutError, match="no good answer in time from ids 200, 20, "):
        bus.fast_sync_read(124, 12, DUCK, 12.50e-3)
    assert questions(timed_port) == [Instruction.FAST_SYNC_READ]
    assert bus.stats.totals() == {"timeout": 1}


def flip_once(port, place: int) -> None:
    """Flip a bit of one byte of the next reply."""
    places = [place]

    def flip(reply: bytes) -> bytes:
        if not places:
            return reply
        at = places.pop()
        return reply[:at] + bytes([reply[at] ^ 0x10]) + reply[at + 1 :]

    port.wire.filter = flip


@pytest.mark.parametrize(("deadline_ms", "asked_again"), [(4.16, True), (4.14, False)])
def test_one_missing_id_needs_less_room(timed_port: TimedPort, deadline_ms: float, asked_again: bool) -> None:
    """The reply is there after 2.77 ms; one device answers again in 0.38 ms, and 1 ms for a USB frame."""
    flip_once(timed_port.port, 8 + 16 * DUCK.index(33) + 5)
    bus = Bus(timed_port)
    try:
        assert tuple(bus.fast_sync_read(124, 12, DUCK, deadline_ms * 1e-3)) == DUCK
    except BusTimeoutError as error:
        assert "from ids 33 to" in str(error)
    assert bus.stats.of(33) == {"crc": 1, "timeout": 1} | ({"retry": 1} if asked_again else {})


def test_no_read_outlasts_its_deadline(timed_port: TimedPort) -> None:
    for milliseconds in range(4, 20):
        start = timed_port.clock.now
        timed_port.lost = [True, True]
        with pytest.raises(BusTimeoutError):
            Bus(timed_port).fast_sync_read(124, 12, DUCK, start + milliseconds * 1e-3)
        assert timed_port.clock.now <= start + milliseconds * 1e-3 + 1e-9


def test_return_delay_counts_for_the_deadline(timed_port: TimedPort) -> None:
    """Fifteen devices that wait 500 microseconds each add 7.5 ms."""
    slow = Bus(timed_port, return_delay=500e-6)
    with pytest.raises(BusTimeoutError, match=r"takes 10\.3 ms"):
        slow.fast_sync_read(124, 12, DUCK, 11.2e-3)
    slow.fast_sync_read(124, 12, DUCK, 11.3e-3)


def test_read_that_has_no_room_is_left_out(timed_port: TimedPort) -> None:
    """18 bytes out and 36 back: 0.54 ms, and 1 ms for a USB frame."""
    bus = Bus(timed_port)
    assert bus.read_if_room(144, 3, (20, 21, 22, 23), 1.5e-3) is None
    assert questions(timed_port) == []
    assert tuple(bus.read_if_room(144, 3, (20, 21, 22, 23), 1.6e-3) or ()) == (20, 21, 22, 23)


def test_read_that_is_not_needed_is_not_repeated(wire_port, wire_bus: Bus) -> None:
    wire_port.wire.filter = lambda reply: None
    assert wire_bus.read_if_room(144, 3, (20, 21), inf) == {}
    assert len(wire_port.sent) == 1
    assert wire_bus.stats.of(21) == {"timeout": 1}


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


@pytest.mark.parametrize(
    ("form", "late"), [("fast_sync_read", {254: 1}), ("sync_read", dict.fromkeys(LEGS, 1))]
)
def test_answers_that_come_a_tick_late_are_not_taken_for_new_ones(
    wire_port, clock, monkeypatch: pytest.MonkeyPatch, form: str, late: dict[int, int]
) -> None:
    monkeypatch.setattr(transport, "monotonic", clock)
    bus = Bus(TimedPort(LatePort(wire_port), clock))
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


@pytest.mark.parametrize(
    ("stray", "kind", "device"),
    [
        (A15_ECHO, "echo", 20),
        (A15_ANSWER[: 3 * 9], "half", 20),
        (A15_ANSWER.replace("08 00 00 FF", "08 20 00 FF"), "crc", 20),
        (position(21), "foreign", 21),
        (protocol.status(20, 0, b"").hex(), "short", 20),
    ],
)
def test_what_is_no_answer_is_counted_by_kind_and_id(scripted, stray: str, kind: str, device: int) -> None:
    bus = Bus(scripted(stray + A15_ANSWER))
    assert bus.read(20, registers.PRESENT_POSITION) == 0.0
    assert bus.stats.totals()[kind] == 1
    assert bus.stats.of(device) == {kind: 1}


def test_half_an_answer_is_counted_when_its_time_is_over(scripted) -> None:
    bus = Bus(scripted(A15_ANSWER[: 3 * 9], A15_ANSWER))
    assert bus.read(20, registers.PRESENT_POSITION) == 0.0
    assert bus.stats.of(20) == {"half": 1, "timeout": 1, "retry": 1}


def test_answer_that_comes_twice_is_late_the_second_time(scripted) -> None:
    bus = Bus(scripted(A15_ANSWER + A15_ANSWER, A15_ANSWER))
    assert bus.read(20, registers.PRESENT_POSITION) == 0.0
    assert bus.read(20, registers.PRESENT_POSITION) == 0.0
    assert bus.stats.totals() == {"late": 1}


def test_common_reply_whose_header_is_damaged_is_asked_for_plainly(wire_port, wire_bus: Bus) -> None:
    flip_once(wire_port, 2)
    assert tuple(wire_bus.fast_sync_read(124, 12, DUCK)) == DUCK
    assert wire_bus.stats.totals() == {"noise": 248, "timeout": 1, "retry": 1}


def test_common_reply_cut_short_costs_the_devices_it_misses(wire_port, wire_bus: Bus) -> None:
    cuts = [8 + 16 * 12 + 7]  # in the block of id 12
    wire_port.wire.filter = lambda reply: reply[: cuts.pop()] if cuts else reply
    assert tuple(wire_bus.fast_sync_read(124, 12, DUCK)) == DUCK
    assert wire_port.sent[-1].parameters[4:] == bytes(DUCK[12:])
    assert wire_bus.stats.of(12) == {"half": 1, "timeout": 1, "retry": 1}


def test_damage_at_one_device_does_not_end_fast_sync_reads(wire_port, wire_bus: Bus) -> None:
    for _ in range(5):
        flip_once(wire_port, 8 + 16 * DUCK.index(31) + 5)
        wire_bus.fast_sync_read(124, 12, DUCK)
    wire_bus.fast_sync_read(124, 12, DUCK)
    assert wire_port.sent[-1].instruction == Instruction.FAST_SYNC_READ


def test_device_that_answers_first_is_named_when_it_has_no_fast_sync_read(
    wire_port, wire_bus: Bus, caplog: pytest.LogCaptureFixture
) -> None:
    (board,) = wire_port.wire.at(200)
    board.knows_fast_sync_read = False
    for _ in range(3):
        assert tuple(wire_bus.fast_sync_read(124, 12, DUCK)) == DUCK
    assert [record.args for record in caplog.records] == [(200,)]


def test_models_of_those_that_answer(wire_port, wire_bus: Bus) -> None:
    wire_port.unplug(21)
    assert wire_bus.models((200, 20, 21)) == {200: 10200, 20: 1200}
