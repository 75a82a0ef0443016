"""Gains, goals and samples of the fourteen servos, in joint order and SI units."""

from __future__ import annotations

import numpy as np
import pytest

from firmware_bridge.robot.servos import Servos
from firmware_bridge.wire import registers
from firmware_bridge.wire.bus import Bus
from firmware_bridge.wire.protocol import Block
from hardware.errors import DeviceError, SafetyError
from hardware.joints import JOINT_NAMES, SERVO_IDS

A01_BLOCK = bytes.fromhex("00 00 FF FF FD 00 00 00 00 08 00 00")


def test_gain_sets_p_and_pins_i_and_d_to_zero(wire_port, servos: Servos) -> None:
    wire_port.servo(22).poke(registers.POSITION_D_GAIN, 90)
    wire_port.servo(22).poke(registers.POSITION_I_GAIN, 9)
    servos.set_gain(120)
    gains = (registers.POSITION_P_GAIN, registers.POSITION_I_GAIN, registers.POSITION_D_GAIN)
    for device in SERVO_IDS:
        assert [wire_port.servo(device).peek(gain) for gain in gains] == [120, 0, 0]


def test_unchanged_gain_costs_no_packet(wire_port, servos: Servos) -> None:
    servos.set_gain(120)
    wire_port.sent.clear()
    servos.set_gain(120)
    assert wire_port.sent == []
    servos.set_gain(200)
    assert wire_port.sent != []


def test_gain_outside_the_register_is_refused_and_not_remembered(wire_port, servos: Servos) -> None:
    servos.set_gain(200)
    with pytest.raises(SafetyError):
        servos.set_gain(-1)
    wire_port.sent.clear()
    servos.set_gain(200)
    assert wire_port.sent != []


def test_servo_that_missed_a_gain_is_written_again(wire_port, servos: Servos, make_deaf) -> None:
    make_deaf(30, misses=1)
    servos.set_gain(160)
    assert wire_port.servo(30).peek(registers.POSITION_P_GAIN) == 160


def test_servo_that_never_takes_a_gain_is_named(wire_port, servos: Servos, make_deaf) -> None:
    make_deaf(30, misses=1000)
    with pytest.raises(DeviceError, match=r"neck_pitch \(id 30\) did not take .*position_p_gain = 160"):
        servos.set_gain(160)


def test_goals_go_out_in_joint_order_as_one_packet(wire_port, servos: Servos) -> None:
    targets = np.arange(14) * 0.1
    servos.write_goals(targets)
    assert len(wire_port.sent) == 1
    goals = [wire_port.servo(device).peek(registers.GOAL_POSITION) for device in SERVO_IDS]
    assert goals[:3] == [2048, 2113, 2178]  # 0.1 rad is 65.19 counts
    assert goals[13] == 2895  # 847.47 counts


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_goals_that_are_not_finite_are_refused(wire_port, servos: Servos, bad: float) -> None:
    targets = np.zeros(14)
    targets[3] = bad
    with pytest.raises(SafetyError, match="14 finite angles in rad"):
        servos.write_goals(targets)
    assert wire_port.sent == []


def test_goals_of_the_wrong_number_are_refused(wire_port, servos: Servos) -> None:
    with pytest.raises(SafetyError, match="14 finite angles"):
        servos.write_goals(np.zeros((2, 14)))
    assert wire_port.sent == []


def test_goals_beyond_one_turn_stop_at_its_ends(wire_port, servos: Servos) -> None:
    servos.write_goals(np.array([4.0, -4.0] + [0.0] * 12))
    goals = [wire_port.servo(device).peek(registers.GOAL_POSITION) for device in SERVO_IDS[:2]]
    assert goals == [4095, 0]


def test_sample_is_in_joint_order_and_si_units(servos: Servos) -> None:
    blocks = {device: Block(0, A01_BLOCK) for device in reversed(SERVO_IDS)}
    blocks[200] = Block(0, bytes(12))
    blocks[10] = Block(0x80, bytes.fromhex("00 00 E8 03 00 00 00 00 00 0C 00 00"))
    sample = servos.decode(blocks)
    right_hip_yaw = JOINT_NAMES.index("right_hip_yaw")
    assert sample.position[right_hip_yaw] == pytest.approx(np.pi / 2)
    assert sample.current[right_hip_yaw] == pytest.approx(1.0)
    assert sample.velocity[right_hip_yaw] == 0.0
    others = np.arange(14) != right_hip_yaw
    assert np.allclose(sample.velocity[others], 6.067, atol=1e-3)
    assert np.allclose(sample.current[others], -0.001)
    assert np.all(sample.position[others] == 0.0)
    assert sample.alerts == {10: 0x80}


def test_offset_is_the_servo_angle_at_the_joints_zero(wire_port, wire_bus: Bus) -> None:
    offsets = np.zeros(14)
    offsets[4] = 0.2
    servos = Servos(wire_bus, offsets)
    servos.write_goals(np.zeros(14))
    assert wire_port.servo(24).peek(registers.GOAL_POSITION) == 2178  # 0.2 rad is 130.38 counts
    sample = servos.decode({device: Block(0, A01_BLOCK) for device in SERVO_IDS})
    assert sample.position[4] == pytest.approx(-0.2)


def test_holding_keeps_every_servo_where_it_is_whatever_its_offset(wire_port, wire_bus: Bus) -> None:
    for device in SERVO_IDS:
        wire_port.servo(device).poke(registers.PRESENT_POSITION, 1000 + device)
    Servos(wire_bus, np.linspace(-0.3, 0.3, 14)).hold_present()
    assert all(wire_port.servo(d).peek(registers.GOAL_POSITION) == 1000 + d for d in SERVO_IDS)


def test_tick_block_ends_where_the_position_ends() -> None:
    position = registers.PRESENT_POSITION
    assert (Servos.TICK_ADDRESS, Servos.TICK_LENGTH) == (124, 12)
    assert position.address + position.width == Servos.TICK_ADDRESS + Servos.TICK_LENGTH
