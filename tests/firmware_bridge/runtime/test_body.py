from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from firmware_bridge import registers
from firmware_bridge.body import RealBody, open_body
from firmware_bridge.bus import Bus
from firmware_bridge.emulator import EmulatedDuck
from firmware_bridge.protocol import Instruction
from hardware.calibration import Calibration
from hardware.errors import BusError, DeviceError, ImuError, PortError
from hardware.joints import STAND

WRITING = (Instruction.WRITE, Instruction.SYNC_WRITE, Instruction.REBOOT)


def writes(port: Any) -> list[Any]:
    return [packet for packet in port.sent if packet.instruction in WRITING]


@pytest.fixture(autouse=True)
def quick_imu_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("firmware_bridge.imu.LIVE_SAMPLES", 2)


@pytest.fixture
def real_body(wire_port: Any, wire_bus: Bus) -> RealBody:
    return RealBody(wire_bus, Calibration())


def test_the_handshake_of_a_sound_duck_writes_nothing(real_body: RealBody, wire_port: Any) -> None:
    assert len(wire_port.sent) > 15
    assert writes(wire_port) == []


def unplug_a_knee(port: Any) -> None:
    port.unplug(23)


def take_another_model(port: Any) -> None:
    port.servo(12).poke(registers.MODEL_NUMBER, 1030)


def unplug_the_imu(port: Any) -> None:
    port.unplug(200)


@pytest.mark.parametrize(
    ("spoil", "name"),
    [(unplug_a_knee, "left_knee"), (take_another_model, "XM430-W210"), (unplug_the_imu, "200")],
)
def test_a_handshake_that_fails_names_the_part_and_has_written_nothing(
    wire_port: Any, wire_bus: Bus, spoil: Any, name: str
) -> None:
    spoil(wire_port)
    with pytest.raises(BusError, match=name):
        RealBody(wire_bus, Calibration())
    assert writes(wire_port) == []


def test_one_read_brings_joints_and_trunk_in_si_units(real_body: RealBody, wire_port: Any) -> None:
    wire_port.servo(23).poke(registers.PRESENT_POSITION, 2048 + 1024)  # a quarter turn
    wire_port.servo(10).poke(registers.PRESENT_VELOCITY, -100)  # -22.9 rpm
    wire_port.servo(33).poke(registers.PRESENT_CURRENT, 250)
    wire_port.sent.clear()
    sample = real_body.read()
    assert [packet.instruction for packet in wire_port.sent] == [Instruction.FAST_SYNC_READ]
    assert sample.position[3] == pytest.approx(1.570796, abs=1e-6)
    assert sample.velocity[9] == pytest.approx(-2.398, abs=1e-3)
    assert sample.current[8] == pytest.approx(0.25)
    assert sample.gravity == pytest.approx([0, 0, -1], abs=2e-3)
    assert sample.alerts == ()


def test_joint_offsets_of_the_calibration_count(wire_bus: Bus) -> None:
    offsets = (0.1, *[0.0] * 13)
    assert RealBody(wire_bus, Calibration(offsets)).read().position[0] == pytest.approx(-0.1)


def test_a_servo_that_reports_a_fault_is_named_and_still_read(real_body: RealBody, wire_port: Any) -> None:
    wire_port.servo(22).poke(registers.HARDWARE_ERROR, 0x01)
    sample = real_body.read()
    assert sample.alerts == ("left_hip_pitch",)
    assert sample.position.shape == (14,)


def test_enabling_holds_every_joint_where_it_is(real_body: RealBody, wire_port: Any) -> None:
    wire_port.servo(20).poke(registers.PRESENT_POSITION, 2300)
    wire_port.servo(20).poke(registers.GOAL_POSITION, 1700)
    real_body.enable(180)
    assert wire_port.servo(20).peek(registers.GOAL_POSITION) == 2300
    assert wire_port.servo(20).peek(registers.POSITION_P_GAIN) == 180
    assert wire_port.servo(20).torque


def test_targets_go_out_in_one_packet_to_the_joints_servos(real_body: RealBody, wire_port: Any) -> None:
    wire_port.sent.clear()
    targets = STAND.copy()
    targets[13] = 0.7853982  # right ankle, id 14: an eighth of a turn
    real_body.write(targets)
    assert [packet.instruction for packet in wire_port.sent] == [Instruction.SYNC_WRITE]
    assert wire_port.servo(14).peek(registers.GOAL_POSITION) == 2048 + 512


def test_limp_takes_the_torque_of_every_servo(real_body: RealBody, wire_port: Any) -> None:
    real_body.enable(200)
    real_body.limp()
    assert not any(wire_port.servo(device).torque for device in (20, 24, 33, 10, 14))


def test_an_imu_that_has_not_started_is_an_imu_error(real_body: RealBody, wire_port: Any) -> None:
    (board,) = wire_port.wire.at(200)
    board.memory[130:136] = bytes(6)
    board.frozen = True
    with pytest.raises(ImuError):
        real_body.read()


def test_a_real_port_is_opened_for_one_body_and_given_back(duck: EmulatedDuck) -> None:
    with open_body(duck.port, Calibration()) as body:
        body.enable(200)
        body.write(np.zeros(14))
        with pytest.raises(PortError, match="in use"), open_body(duck.port, Calibration()):
            pass
        body.limp()
    with open_body(duck.port, Calibration()) as body:
        assert body.read().position.shape == (14,)
    assert not duck.torque.any()


def test_a_failed_handshake_gives_the_port_back(duck: EmulatedDuck) -> None:
    servo = duck.servo(31)
    duck.unplug(31)
    with pytest.raises(DeviceError, match="head_pitch"), open_body(duck.port, Calibration()):
        pass
    duck.plug(servo)
    with open_body(duck.port, Calibration()):
        pass
