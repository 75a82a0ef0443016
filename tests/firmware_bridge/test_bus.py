from __future__ import annotations

import logging
from math import pi
from time import monotonic

import pytest

from firmware_bridge import bus as bus_module
from firmware_bridge import protocol, registers
from firmware_bridge.bus import Bus, Found
from firmware_bridge.emulated_devices import EmulatedServo
from firmware_bridge.protocol import Block, Instruction
from hardware.contract import CONTROL_PERIOD_S
from hardware.errors import BusTimeoutError, DeviceError, SafetyError

A08_ALERT = "FF FF FD 00 14 08 00 55 80 00 08 00 00 FC 7D"
A08_REGISTER_70 = "FF FF FD 00 14 05 00 55 80 24 95 39"
A15_ECHO = "FF FF FD 00 14 07 00 02 84 00 04 00 66 C5"
A15_ANSWER = "FF FF FD 00 14 08 00 55 00 00 08 00 00 FF C1"
A21 = "FF FF FD 00 01 07 00 55 00 06 04 26 65 5D"
A04_REPLY = "FF FF FD 00 FE 19 00 55 00 14 00 08 00 00 FC F6 00 15 FF FF FF FF AE AC 80 16 FF FF FD 00 1F AA"
DUCK = (200, 20, 21, 22, 23, 24, 30, 31, 32, 33, 10, 11, 12, 13, 14)


def position(device: int, count: int = 2048, error: int = 0) -> str:
    return protocol.status(device, error, count.to_bytes(4, "little", signed=True)).hex()


def test_ping_returns_model_and_firmware(scripted) -> None:
    assert Bus(scripted(A21)).ping(1) == (1030, 38)


def test_read_skips_the_own_echo(scripted) -> None:
    bus = Bus(scripted(A15_ECHO + A15_ANSWER))
    assert bus.read(20, registers.PRESENT_POSITION) == 0.0
    assert (bus.stats.echo, bus.stats.retry) == (1, 0)


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
    assert bus.stats.foreign == 1


def test_late_answer_to_an_older_question_is_forgotten(scripted) -> None:
    port = scripted(A15_ANSWER)
    port.waiting = bytes.fromhex(position(20, 1024))
    assert Bus(port).read(20, registers.PRESENT_POSITION) == 0.0


def test_sync_read_asks_once_more_for_the_missing_id_only(scripted) -> None:
    port = scripted(position(2) + position(4) + position(6), position(3, 1024))
    bus = Bus(port)
    blocks = bus.sync_read(132, 4, (2, 3, 4, 6))
    assert list(blocks) == [2, 3, 4, 6]
    assert blocks[3] == Block(0, b"\x00\x04\x00\x00")
    assert port.sent == [protocol.sync_read(132, 4, (2, 3, 4, 6)), protocol.sync_read(132, 4, (3,))]
    assert (bus.stats.retry, bus.stats.timeout) == (1, 1)


def test_sync_read_names_the_ids_that_stay_silent(scripted) -> None:
    bus = Bus(scripted(position(2) + position(6), position(4)))
    with pytest.raises(BusTimeoutError, match=r"no good answer from ids 3 to the read at address 132, twice"):
        bus.sync_read(132, 4, (2, 3, 4, 6))
    assert bus.stats.timeout == 2


def test_available_sync_read_leaves_silent_ids_out(scripted) -> None:
    bus = Bus(scripted(position(2) + position(6)))
    assert list(bus.sync_read_available(132, 4, (2, 3, 6))) == [2, 6]


def test_sync_read_answers_keep_the_order_asked_and_their_alerts(scripted) -> None:
    bus = Bus(scripted(position(6, error=0x80) + position(2)))
    blocks = bus.sync_read(132, 4, (2, 6))
    assert list(blocks) == [2, 6]
    assert blocks[6].error == 0x80
    assert bus.stats.retry == 0


def test_block_with_an_error_code_is_no_answer(scripted) -> None:
    bus = Bus(scripted(position(2, error=7)))
    with pytest.raises(BusTimeoutError, match="ids 2"):
        bus.sync_read(132, 4, (2,))


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
    assert (bus.stats.crc, bus.stats.retry) == (1, 1)


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

    def flush_input(self) -> None:
        pass


def test_read_of_a_silent_duck_and_its_retry_end_within_one_tick() -> None:
    port = SilentPort()
    with pytest.raises(BusTimeoutError):
        Bus(port).fast_sync_read(124, 12, DUCK)
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
    assert bus.stats.crc + bus.stats.noise > 0
