"""Reads of many devices at once, and what happens to the devices that do not take part."""

from __future__ import annotations

import logging
from math import inf

import pytest

from firmware_bridge.emulator.devices import EmulatedServo
from firmware_bridge.wire import protocol
from firmware_bridge.wire.bus import Bus
from firmware_bridge.wire.protocol import Block, Instruction
from hardware.errors import BusTimeoutError
from hardware.joints import SERVO_IDS

A04_REPLY = "FF FF FD 00 FE 19 00 55 00 14 00 08 00 00 FC F6 00 15 FF FF FF FF AE AC 80 16 FF FF FD 00 1F AA"
DUCK = (200, *SERVO_IDS)


def position(device: int, count: int = 2048, error: int = 0) -> str:
    return protocol.status(device, error, count.to_bytes(4, "little", signed=True)).hex()


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


def test_read_that_is_not_needed_is_not_repeated(wire_port, wire_bus: Bus) -> None:
    wire_port.wire.filter = lambda reply: None
    assert wire_bus.read_if_room(144, 3, (20, 21), inf) == {}
    assert len(wire_port.sent) == 1
    assert wire_bus.stats.of(21) == {"timeout": 1}


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


def test_device_that_answers_first_is_named_when_it_has_no_fast_sync_read(
    wire_port, wire_bus: Bus, caplog: pytest.LogCaptureFixture
) -> None:
    (board,) = wire_port.wire.at(200)
    board.knows_fast_sync_read = False
    for _ in range(3):
        assert tuple(wire_bus.fast_sync_read(124, 12, DUCK)) == DUCK
    assert [record.args for record in caplog.records] == [(200,)]


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
