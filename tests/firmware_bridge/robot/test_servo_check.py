"""The look at every servo before a drive: it names what is wrong, writes nothing and moves nothing."""

from __future__ import annotations

import pytest

from firmware_bridge.emulator.devices import EmulatedServo
from firmware_bridge.robot.servos import Servos
from firmware_bridge.wire import registers
from firmware_bridge.wire.protocol import Instruction
from hardware.errors import DeviceError
from hardware.joints import MOUTH_ID


def test_check_passes_a_sound_duck_and_writes_nothing(wire_port, servos: Servos) -> None:
    servos.check()
    assert {packet.instruction for packet in wire_port.sent} == {Instruction.READ, Instruction.PING}


def test_second_start_writes_nothing_to_eeprom_and_keeps_torque(wire_port, servos: Servos, writes) -> None:
    servos.enable(200)
    wire_port.sent.clear()
    servos.check()
    assert writes(wire_port) == []
    assert wire_port.servo(20).torque


def test_missing_servos_are_named_by_joint_and_id(wire_port, servos: Servos) -> None:
    wire_port.unplug(23)
    wire_port.unplug(31)
    wire_port.wire.devices.append(EmulatedServo(1))
    with pytest.raises(DeviceError) as error:
        servos.check()
    assert "no answer from left_knee (id 23), head_pitch (id 31); other ids on this bus: [1, 200]." in str(
        error.value
    )


def test_mouth_may_be_absent(wire_port, servos: Servos) -> None:
    wire_port.unplug(MOUTH_ID)
    servos.check()


def test_mouth_that_is_there_must_be_sound(wire_port, servos: Servos) -> None:
    wire_port.servo(MOUTH_ID).poke(registers.SHUTDOWN, 53)
    with pytest.raises(DeviceError, match=r"mouth \(id 34\): shutdown"):
        servos.check()


def test_doubled_id_is_named(wire_port, servos: Servos) -> None:
    second = EmulatedServo(11)
    second.poke(registers.PRESENT_POSITION, 1234)
    wire_port.wire.devices.append(second)
    with pytest.raises(DeviceError, match=r"more than one servo answers, .* at right_hip_roll \(id 11\)"):
        servos.check()


def test_one_disturbed_answer_is_no_doubled_id(wire_port, servos: Servos) -> None:
    disturbed = []

    def once(reply: bytes) -> bytes:
        if not disturbed:
            disturbed.append(reply)
            return reply[:-1] + bytes([reply[-1] ^ 1])
        return reply

    wire_port.wire.filter = once
    servos.check()
    assert len(disturbed) == 1


def test_other_model_is_refused_naming_both(wire_port, servos: Servos) -> None:
    wire_port.servo(12).poke(registers.MODEL_NUMBER, 1030)
    with pytest.raises(
        DeviceError, match=r"right_hip_pitch \(id 12\) is XM430-W210 \(1030\), but XL330-M288 \(1200\)"
    ):
        servos.check()


def test_unknown_model_is_refused_by_number(wire_port, servos: Servos) -> None:
    wire_port.servo(12).poke(registers.MODEL_NUMBER, 4321)
    with pytest.raises(DeviceError, match=r"an unknown model \(4321\)"):
        servos.check()


@pytest.mark.parametrize(
    ("register", "count", "message"),
    [
        (registers.RETURN_DELAY, 250, r"return_delay_time \(address 9\) is 0.0005 s, but 0 s is expected"),
        (registers.OPERATING_MODE, 1, r"operating_mode \(address 11\) is 1, but 3 is expected"),
        (registers.PWM_SLOPE, 140, r"pwm_slope \(address 62\) is 140, but 255 is expected"),
        (
            registers.SHUTDOWN,
            53,
            r"shutdown \(address 63\) is 53, but 52 is expected; `duck doctor --fix` sets it",
        ),
    ],
)
def test_wrong_setting_is_refused_with_register_value_and_expectation(
    wire_port, servos: Servos, register: registers.Register, count: int, message: str
) -> None:
    wire_port.servo(33).poke(register, count)
    with pytest.raises(DeviceError, match=r"head_roll \(id 33\): " + message):
        servos.check()


def test_tripped_servo_is_refused_with_its_cause(wire_port, servos: Servos) -> None:
    wire_port.servo(24).trip(0x24)
    with pytest.raises(DeviceError, match=r"left_ankle \(id 24\) has tripped on overload \+ overheating"):
        servos.check()


def test_input_voltage_alert_of_a_full_battery_is_accepted(wire_port, servos: Servos) -> None:
    wire_port.servo(24).trip(0x01)
    servos.check()
    servos.enable(200)
    assert wire_port.servo(24).torque
