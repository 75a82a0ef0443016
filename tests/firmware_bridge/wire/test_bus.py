"""One question on the bus and its answer: reads, writes, retries, refusals, and looking for devices."""

from __future__ import annotations

from math import pi

import pytest

from firmware_bridge.wire import protocol, registers
from firmware_bridge.wire.bus import Bus, Found
from hardware.errors import BusTimeoutError, DeviceError, SafetyError

A08_ALERT = "FF FF FD 00 14 08 00 55 80 00 08 00 00 FC 7D"
A08_REGISTER_70 = "FF FF FD 00 14 05 00 55 80 24 95 39"
A15_ANSWER = "FF FF FD 00 14 08 00 55 00 00 08 00 00 FF C1"
A21 = "FF FF FD 00 01 07 00 55 00 06 04 26 65 5D"


def test_ping_returns_model_and_firmware(scripted) -> None:
    assert Bus(scripted(A21)).ping(1) == (1030, 38)


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


def test_models_of_those_that_answer(wire_port, wire_bus: Bus) -> None:
    wire_port.unplug(21)
    assert wire_bus.models((200, 20, 21)) == {200: 10200, 20: 1200}


def test_reboot_clears_a_tripped_servo(wire_port, wire_bus: Bus) -> None:
    servo = wire_port.servo(13)
    servo.trip(0x20)
    wire_bus.reboot(13)
    assert wire_bus.read(13, registers.HARDWARE_ERROR) == 0
