"""What arrives and is no answer: it is told apart, counted by kind and id, and never taken for data."""

from __future__ import annotations

import pytest

from firmware_bridge.wire import protocol, registers
from firmware_bridge.wire.bus import Bus
from firmware_bridge.wire.protocol import Instruction
from hardware.joints import SERVO_IDS

A15_ECHO = "FF FF FD 00 14 07 00 02 84 00 04 00 66 C5"
A15_ANSWER = "FF FF FD 00 14 08 00 55 00 00 08 00 00 FF C1"
DUCK = (200, *SERVO_IDS)


def test_read_skips_the_own_echo(scripted) -> None:
    bus = Bus(scripted(A15_ECHO + A15_ANSWER))
    assert bus.read(20, registers.PRESENT_POSITION) == 0.0
    assert bus.stats.totals() == {"echo": 1}


def test_answer_of_the_wrong_length_is_not_taken(scripted) -> None:
    bus = Bus(scripted(protocol.status(20, 0, b"\x01\x02").hex() + A15_ANSWER))
    assert bus.read(20, registers.PRESENT_POSITION) == 0.0
    assert bus.stats.of(20) == {"short": 1}


@pytest.mark.parametrize(
    ("stray", "kind", "device"),
    [
        (A15_ECHO, "echo", 20),
        (A15_ANSWER[: 3 * 9], "half", 20),
        (A15_ANSWER.replace("08 00 00 FF", "08 20 00 FF"), "crc", 20),
        (protocol.status(21, 0, bytes(4)).hex(), "foreign", 21),
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


def test_common_reply_whose_header_is_damaged_is_asked_for_plainly(
    wire_port, wire_bus: Bus, flip_once
) -> None:
    flip_once(wire_port, 2)
    assert tuple(wire_bus.fast_sync_read(124, 12, DUCK)) == DUCK
    assert wire_bus.stats.totals() == {"noise": 248, "timeout": 1, "retry": 1}


def test_common_reply_cut_short_costs_the_devices_it_misses(wire_port, wire_bus: Bus) -> None:
    cuts = [8 + 16 * 12 + 7]  # in the block of id 12
    wire_port.wire.filter = lambda reply: reply[: cuts.pop()] if cuts else reply
    assert tuple(wire_bus.fast_sync_read(124, 12, DUCK)) == DUCK
    assert wire_port.sent[-1].parameters[4:] == bytes(DUCK[12:])
    assert wire_bus.stats.of(12) == {"half": 1, "timeout": 1, "retry": 1}


def test_damage_at_one_device_does_not_end_fast_sync_reads(wire_port, wire_bus: Bus, flip_once) -> None:
    for _ in range(5):
        flip_once(wire_port, 8 + 16 * DUCK.index(31) + 5)
        wire_bus.fast_sync_read(124, 12, DUCK)
    wire_bus.fast_sync_read(124, 12, DUCK)
    assert wire_port.sent[-1].instruction == Instruction.FAST_SYNC_READ
