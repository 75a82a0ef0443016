"""How long the wire is busy, against arithmetic by hand: 10 bits a byte, and the delay before each answer."""

from __future__ import annotations

import pytest

from firmware_bridge.emulator.clock import Traffic, WireClock
from firmware_bridge.emulator.devices import EmulatedServo
from firmware_bridge.emulator.duck import EmulatedDuck
from firmware_bridge.robot.imu import BOARD_ID
from firmware_bridge.robot.servos import Servos
from firmware_bridge.wire import registers
from firmware_bridge.wire.bus import Bus
from firmware_bridge.wire.port import SerialPort
from firmware_bridge.wire.protocol import Instruction
from hardware.joints import MOUTH_ID, SERVO_IDS, STAND

TICK = (Servos.TICK_ADDRESS, Servos.TICK_LENGTH, (BOARD_ID, *SERVO_IDS))


def test_a_tick_keeps_the_wire_busy_for_the_sum_of_its_bytes(duck: EmulatedDuck, bus: Bus) -> None:
    servos = Servos(bus)
    bus.fast_sync_read(*TICK)
    before = duck.wire_clock
    for _ in range(3):
        bus.fast_sync_read(*TICK)
        servos.write_goals(STAND)
    bus.ping(20)  # answered after the last write was heard
    spent = duck.wire_clock.since(before)
    # Read: header, id, length, instruction, CRC 10 + address, length 4 + 15 ids; reply 8 + 15 x (12 + 4).
    assert spent.of(Instruction.FAST_SYNC_READ) == Traffic(3, 87, 744, pytest.approx(3 * 2.77e-3))
    # Write: 10 + 4 + 14 x (1 + 4), and no answer.
    assert spent.of(Instruction.SYNC_WRITE) == Traffic(3, 252, 0, pytest.approx(3 * 0.84e-3))
    assert Instruction.READ not in spent.kinds


def test_factory_return_delay_costs_half_a_millisecond_a_servo(duck: EmulatedDuck, bus: Bus) -> None:
    everyone = (*SERVO_IDS, MOUTH_ID, BOARD_ID)
    bus.sync_read(124, 12, everyone)
    quick = duck.wire_clock
    # Request 10 + 4 + 16 ids; 16 answers of 11 + 12 bytes.
    assert quick.busy_s == pytest.approx(3.98e-3)
    for device in (*SERVO_IDS, MOUTH_ID):
        duck.servo(device).poke(registers.RETURN_DELAY, 250)
    bus.sync_read(124, 12, everyone)
    slow = duck.wire_clock.since(quick)
    assert slow.busy_s == pytest.approx(3.98e-3 + 15 * 0.5e-3)


def test_time_depends_on_the_speed_that_the_host_has_set(duck: EmulatedDuck) -> None:
    duck.plug(EmulatedServo(1, factory=True))
    with SerialPort(duck.port, 57_600) as port:
        Bus(port, 57_600).ping(1)
    assert duck.wire_clock.busy_s == pytest.approx((10 + 14) * 10 / 57_600 + 0.5e-3)


def test_stuffed_bytes_count(duck: EmulatedDuck, bus: Bus) -> None:
    duck.servo(20).poke(registers.PRESENT_POSITION, 0x00FDFFFF)
    bus.sync_read(132, 4, (20,))
    assert duck.wire_clock.of(Instruction.SYNC_READ).bytes_back == 11 + 4 + 1


def test_clocks_that_were_read_stay_as_they_were() -> None:
    first = WireClock().plus(Instruction.PING, Traffic.exchange(10, 14, 0.0, 1_000_000))
    second = first.plus(Instruction.PING, Traffic.exchange(10, 0, 0.0, 1_000_000))
    assert (first.total.bytes_back, second.total.bytes_out) == (14, 20)
    assert second.since(first).total == Traffic(1, 10, 0, pytest.approx(0.1e-3))
    assert second.since(second) == WireClock()
