"""Restarting servos that have tripped: limp before, gains restored after, and the fault gone."""

from __future__ import annotations

import pytest

from firmware_bridge.robot import servos as servos_module
from firmware_bridge.robot.servos import Servos
from firmware_bridge.wire import registers
from firmware_bridge.wire.protocol import Instruction
from hardware.errors import BusTimeoutError, DeviceError
from hardware.joints import SERVO_IDS


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    times: list[float] = []
    monkeypatch.setattr(servos_module, "sleep", times.append)
    return times


def reboots(port) -> list[int]:
    return [packet.id for packet in port.sent if packet.instruction == Instruction.REBOOT]


def test_reboot_goes_limp_first_and_clears_the_fault(
    wire_port, servos: Servos, slept: list[float], address
) -> None:
    servos.enable(200)
    wire_port.servo(24).trip(0x20)
    wire_port.sent.clear()
    servos.reboot([24])
    assert address(wire_port.sent[0]) == registers.TORQUE_ENABLE.address
    assert reboots(wire_port) == [24]
    assert slept == [0.5]
    assert wire_port.servo(24).peek(registers.HARDWARE_ERROR) == 0
    assert not any(wire_port.servo(device).torque for device in SERVO_IDS)


def test_reboot_restores_the_gains_that_a_restart_loses(
    wire_port, servos: Servos, slept: list[float]
) -> None:
    servos.enable(160)
    servos.reboot()
    assert reboots(wire_port) == list(SERVO_IDS)
    gains = [wire_port.servo(device).peek(registers.POSITION_P_GAIN) for device in SERVO_IDS]
    assert gains == [160] * 14  # 400 after a restart
    servos.enable(160)
    assert all(wire_port.servo(device).torque for device in SERVO_IDS)


def test_reboot_of_servos_whose_gains_were_never_set_leaves_them(
    wire_port, servos: Servos, slept: list[float]
) -> None:
    servos.reboot([24])
    assert wire_port.servo(24).peek(registers.POSITION_P_GAIN) == 400


def test_servo_that_does_not_come_back_is_named(wire_port, servos: Servos, monkeypatch) -> None:
    monkeypatch.setattr(servos_module, "sleep", lambda seconds: wire_port.unplug(24))
    with pytest.raises(BusTimeoutError, match="device 24 gave no good answer"):
        servos.reboot([24])


def test_servo_whose_fault_is_still_there_after_a_reboot_is_named(
    wire_port, servos: Servos, monkeypatch
) -> None:
    monkeypatch.setattr(servos_module, "sleep", lambda seconds: wire_port.servo(24).trip(0x04))
    with pytest.raises(DeviceError, match=r"left_ankle \(id 24\) has tripped on overheating"):
        servos.reboot([24])


def test_nothing_is_rebooted_while_a_servo_may_hold_torque(
    wire_port, servos: Servos, slept: list[float]
) -> None:
    servos.enable(200)
    wire_port.unplug(20)
    with pytest.raises(DeviceError, match="torque may still be on"):
        servos.reboot([24])
    assert reboots(wire_port) == []
