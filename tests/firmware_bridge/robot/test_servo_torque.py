"""Torque on without a jump, torque off whatever fails, and servos that stop when the bus falls silent."""

from __future__ import annotations

import numpy as np
import pytest

from firmware_bridge.emulator.devices import EmulatedServo
from firmware_bridge.robot.servos import Servos
from firmware_bridge.wire import registers
from hardware.errors import BusError, DeviceError
from hardware.joints import MOUTH_ID, SERVO_IDS


def test_goal_is_the_present_position_on_the_wire_before_torque(
    wire_port, servos: Servos, address, writes
) -> None:
    knee = wire_port.servo(23)
    knee.poke(registers.GOAL_POSITION, 2048)
    knee.poke(registers.PRESENT_POSITION, 2374)  # moved by hand by 0.5 rad while limp
    servos.enable(200)
    order = [address(packet) for packet in writes(wire_port)]
    gains, goal, torque = 80, 116, 64
    assert order.index(gains) < order.index(goal) < order.index(torque)
    assert knee.peek(registers.GOAL_POSITION) == 2374
    assert knee.torque


def test_servo_that_missed_its_new_goal_gets_it_before_torque(
    wire_port, servos: Servos, clock, replace
) -> None:
    class DeafToGoals(EmulatedServo):
        misses = 1

        def write(self, address: int, data: bytes) -> int:
            if address == registers.GOAL_POSITION.address and self.misses:
                self.misses -= 1
                return 0
            assert address != registers.TORQUE_ENABLE.address or self.peek(registers.GOAL_POSITION) == 2374
            return super().write(address, data)

    replace(DeafToGoals(23, clock=clock))
    wire_port.servo(23).poke(registers.PRESENT_POSITION, 2374)
    servos.enable(200)
    assert wire_port.servo(23).torque


def test_enable_writes_gains_even_if_they_were_set_before(wire_port, servos: Servos) -> None:
    servos.set_gain(200)
    wire_port.servo(20).reboot()
    servos.enable(200)
    assert wire_port.servo(20).peek(registers.POSITION_P_GAIN) == 200


def test_enable_names_the_servo_that_stays_limp(wire_port, servos: Servos) -> None:
    wire_port.servo(14).trip(0x20)
    with pytest.raises(DeviceError, match=r"right_ankle \(id 14\) has tripped on overload"):
        servos.enable(200)


def test_enable_switches_torque_on_nowhere_when_a_position_is_unknown(wire_port, servos: Servos) -> None:
    servos.set_gain(200)
    wire_port.wire.filter = lambda reply: None if reply[4] == 14 and len(reply) == 23 else reply
    with pytest.raises(BusError, match="ids 14 "):
        servos.enable(200)
    assert not any(wire_port.servo(device).torque for device in SERVO_IDS)


def test_enabled_servos_stop_when_the_bus_is_silent_for_a_fifth_of_a_second(
    wire_port, servos: Servos, clock
) -> None:
    servos.enable(200)
    clock.now += 0.19
    assert all(wire_port.servo(device).torque for device in SERVO_IDS)
    clock.now += 0.02
    assert not any(wire_port.servo(device).torque for device in SERVO_IDS)


def test_any_packet_on_the_bus_keeps_the_servos_going(wire_port, servos: Servos, clock) -> None:
    servos.enable(200)
    for _ in range(10):
        clock.now += 0.15
        servos.write_goals(np.zeros(14))
    assert all(wire_port.servo(device).torque for device in SERVO_IDS)


def test_servos_that_stopped_by_themselves_can_be_enabled_again(wire_port, servos: Servos, clock) -> None:
    servos.enable(200)
    clock.now += 1.0
    for device in SERVO_IDS:
        wire_port.servo(device).refresh()
        wire_port.servo(device).poke(registers.GOAL_PWM, 0)  # what stopping may mean to the firmware
        wire_port.servo(device).poke(registers.PRESENT_POSITION, 1900)
    servos.enable(200)
    for device in SERVO_IDS:
        assert wire_port.servo(device).torque
        assert wire_port.servo(device).peek(registers.GOAL_PWM) == 885
        assert wire_port.servo(device).peek(registers.GOAL_POSITION) == 1900


def test_each_servo_gets_its_own_pwm_limit_back(wire_port, servos: Servos) -> None:
    wire_port.servo(31).poke(registers.PWM_LIMIT, 500)
    wire_port.servo(31).poke(registers.GOAL_PWM, 0)
    servos.enable(200)
    assert wire_port.servo(31).peek(registers.GOAL_PWM) == 500
    assert wire_port.servo(32).peek(registers.GOAL_PWM) == 885


def test_watchdog_is_armed_before_torque_and_cleared_before_the_goal(
    wire_port, servos: Servos, address, writes
) -> None:
    servos.enable(200)
    order = [(address(packet), packet.parameters[5]) for packet in writes(wire_port)]
    watchdog, goal, torque = 98, 116, 64
    goal_at = [register for register, _ in order].index(goal)
    assert order.index((watchdog, 0)) < goal_at < order.index((watchdog, 10)) < order.index((torque, 1))


def test_limp_disarms_the_watchdog(wire_port, servos: Servos) -> None:
    servos.enable(200)
    servos.limp()
    assert all(wire_port.servo(device).peek(registers.BUS_WATCHDOG) == 0 for device in SERVO_IDS)


def test_servo_that_may_still_hold_torque_keeps_its_watchdog(
    wire_port, servos: Servos, clock, replace
) -> None:
    class KeepsTorque(EmulatedServo):
        def write(self, address: int, data: bytes) -> int:
            refused = address == registers.TORQUE_ENABLE.address and data == b"\0"
            return 7 if refused else super().write(address, data)

    replace(KeepsTorque(20, clock=clock))
    servos.enable(200)
    with pytest.raises(DeviceError, match=r"left_hip_yaw \(id 20\); switch the battery off"):
        servos.limp()
    assert wire_port.servo(20).peek(registers.BUS_WATCHDOG) == 10
    assert wire_port.servo(21).peek(registers.BUS_WATCHDOG) == 0
    clock.now += 0.21
    assert not wire_port.servo(20).torque


def test_limp_works_on_servos_that_stopped_by_themselves(wire_port, servos: Servos, clock) -> None:
    servos.enable(200)
    clock.now += 1.0
    servos.limp()
    for device in SERVO_IDS:
        registers_now = [
            wire_port.servo(device).peek(r) for r in (registers.TORQUE_ENABLE, registers.BUS_WATCHDOG)
        ]
        assert registers_now == [0, 0]


def test_limp_reaches_all_servos_and_the_mouth_in_one_packet(
    wire_port, servos: Servos, address, writes
) -> None:
    servos.enable(200)
    wire_port.servo(MOUTH_ID).poke(registers.TORQUE_ENABLE, 1)
    wire_port.sent.clear()
    servos.limp()
    assert [address(packet) for packet in writes(wire_port)].count(registers.TORQUE_ENABLE.address) == 1
    assert address(wire_port.sent[0]) == registers.TORQUE_ENABLE.address
    assert not any(wire_port.servo(device).torque for device in (*SERVO_IDS, MOUTH_ID))


def test_limp_writes_again_to_a_servo_that_missed_it(wire_port, servos: Servos, make_deaf) -> None:
    make_deaf(20)
    servos.enable(200)
    wire_port.servo(20).misses = 1
    servos.limp()
    assert not wire_port.servo(20).torque


def test_limp_goes_on_past_a_dead_servo_and_names_it(wire_port, servos: Servos) -> None:
    servos.enable(200)
    wire_port.unplug(20)
    wire_port.unplug(32)
    with pytest.raises(
        DeviceError, match=r"at left_hip_yaw \(id 20\), head_yaw \(id 32\); switch the battery off"
    ):
        servos.limp()
    assert not any(wire_port.servo(d).torque for d in SERVO_IDS if d not in (20, 32))
