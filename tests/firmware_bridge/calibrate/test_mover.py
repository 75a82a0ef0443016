"""One joint on a bus of fifteen: what it is sent, and that nobody else is sent anything."""

from __future__ import annotations

from typing import Any

import pytest

from firmware_bridge.calibrate.mover import JointMover
from firmware_bridge.wire import registers
from firmware_bridge.wire.bus import Bus
from firmware_bridge.wire.protocol import Instruction
from hardware import servo
from hardware.errors import BusError, BusTimeoutError, CalibrationError, DeviceError
from hardware.joints import JOINTS

YAW = JOINTS[0]
"""left_hip_yaw, id 20, -25 to 30 degrees."""


@pytest.fixture
def hip(wire_port: Any) -> Any:
    return wire_port.servo(20)


@pytest.fixture
def hours(clock: Any) -> Any:
    """The mover's own clock; that of the servos, and with it their watchdog, stands still."""
    return type(clock)()


@pytest.fixture
def mover(wire_bus: Bus, hours: Any) -> JointMover:
    return JointMover(wire_bus, YAW, hours)


def angle(count: int) -> float:
    return (count - 2048) * servo.RADIANS_PER_COUNT


def test_only_the_joints_own_servo_is_written_to(mover: JointMover, wire_port: Any, hours: Any) -> None:
    mover.hold()
    mover.nudge(0.1)
    hours.now = 0.1
    mover.tick()
    mover.release()
    writes = {Instruction.WRITE, Instruction.SYNC_WRITE, Instruction.REBOOT}
    assert {packet.id for packet in wire_port.sent if packet.instruction in writes} == {20}


def test_a_held_joint_is_weak_watched_and_stays_where_it_is(mover: JointMover, hip: Any) -> None:
    hip.poke(registers.PRESENT_POSITION, 2100)
    mover.hold()
    assert hip.torque and hip.peek(registers.GOAL_POSITION) == 2100
    assert hip.peek(registers.GOAL_PWM) == 133
    gains = (registers.POSITION_P_GAIN, registers.POSITION_I_GAIN, registers.POSITION_D_GAIN)
    assert [hip.peek(register) for register in gains] == [100, 0, 0]
    assert hip.peek(registers.BUS_WATCHDOG) == 10  # of 20 ms


def test_torque_comes_on_last(mover: JointMover, wire_port: Any) -> None:
    mover.hold()
    written = [packet.parameters[0] for packet in wire_port.sent if packet.instruction == Instruction.WRITE]
    assert written[-1] == 64 and written.count(64) == 1
    assert {98, 100, 84, 116} <= set(written[:-1])


def test_the_goal_goes_a_quarter_radian_a_second_and_no_faster(
    mover: JointMover, hip: Any, hours: Any
) -> None:
    mover.hold()
    mover.nudge(0.05)
    for _ in range(5):
        hours.now += 0.02
        mover.tick()
    assert hip.peek(registers.GOAL_POSITION) == 2048 + round(0.025 / servo.RADIANS_PER_COUNT)
    for _ in range(5):
        hours.now += 0.02
        motion = mover.tick()
    assert motion.goal == pytest.approx(0.05) and motion.arrived


def test_a_pause_of_any_length_counts_as_a_tenth_of_a_second(mover: JointMover, hours: Any) -> None:
    mover.hold()
    mover.nudge(0.3)
    hours.now = 100.0  # a program that slept does not leap
    assert mover.tick().goal == pytest.approx(0.025)


def test_a_blocked_joint_is_pulled_no_farther_than_four_tenths(mover: JointMover, hours: Any) -> None:
    mover.hold()
    for _ in range(100):
        mover.nudge(0.05)
        hours.now += 0.1
        motion = mover.tick()
    assert motion.goal == pytest.approx(0.4) and motion.arrived


def test_no_goal_lies_beyond_what_a_zero_can_be(mover: JointMover, hip: Any, hours: Any) -> None:
    mover.hold()
    for _ in range(300):
        mover.nudge(0.05)
        hours.now += 0.1
        goal = mover.tick().goal
        hip.poke(registers.PRESENT_POSITION, hip.peek(registers.GOAL_POSITION))
    assert goal == pytest.approx(0.9)


def test_a_joint_far_outside_of_its_range_is_not_driven(mover: JointMover, hip: Any) -> None:
    hip.poke(registers.PRESENT_POSITION, 2048 + 700)  # 1.07 rad; 0.52 + 0.5 is the most
    with pytest.raises(
        CalibrationError, match=r"left_hip_yaw is at \+1\.07 rad, outside of -0\.94 to \+1\.02"
    ):
        mover.hold()
    assert not hip.torque and not mover.held


def test_a_limp_joint_is_read_and_cannot_be_nudged(mover: JointMover, hip: Any) -> None:
    hip.poke(registers.PRESENT_POSITION, 2148)
    assert mover.tick() == (pytest.approx(angle(2148)), None, True)
    with pytest.raises(CalibrationError, match="left_hip_yaw is limp; press h"):
        mover.nudge(0.05)


def test_release_makes_it_limp_and_gives_back_what_it_had(mover: JointMover, hip: Any) -> None:
    mover.hold()
    mover.release()
    assert not hip.torque and hip.peek(registers.TORQUE_ENABLE) == 0
    assert hip.peek(registers.BUS_WATCHDOG) == 0
    assert hip.peek(registers.GOAL_PWM) == 885
    assert hip.peek(registers.POSITION_P_GAIN) == 400
    mover.release()


def test_a_silent_program_finds_its_joint_limp_and_may_hold_it_again(
    mover: JointMover, hip: Any, clock: Any
) -> None:
    mover.hold()
    clock.now = 0.3
    assert not hip.torque
    with pytest.raises(CalibrationError, match="let go by itself"):
        mover.tick()
    assert not mover.held and hip.peek(registers.TORQUE_ENABLE) == 0
    mover.hold()
    assert hip.torque


def test_a_servo_that_trips_is_let_go(mover: JointMover, hip: Any) -> None:
    mover.hold()
    hip.trip(0x20)
    with pytest.raises(CalibrationError, match="let go by itself"):
        mover.tick()
    assert not mover.held


def test_a_servo_that_is_lost_raises_and_is_not_called_limp(mover: JointMover, wire_port: Any) -> None:
    mover.hold()
    wire_port.unplug(20)
    with pytest.raises(BusError):
        mover.tick()
    with pytest.raises(
        DeviceError, match=r"torque may still be on at left_hip_yaw \(id 20\); switch the bat"
    ):
        mover.release()


def test_a_servo_with_a_lower_limit_of_its_own_keeps_it(mover: JointMover, hip: Any) -> None:
    hip.poke(registers.PWM_LIMIT, 50)
    hip.poke(registers.GOAL_PWM, 50)
    mover.hold()
    assert hip.torque and hip.peek(registers.GOAL_PWM) == 50
    mover.release()


def test_a_servo_that_refuses_to_be_watched_is_not_driven(
    mover: JointMover, wire_port: Any, hip: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = hip.write
    monkeypatch.setattr(hip, "write", lambda at, data: 4 if (at, data) == (98, b"\x0a") else write(at, data))
    with pytest.raises(DeviceError, match="refused the write of bus_watchdog"):
        mover.hold()
    assert not hip.torque and mover.held  # held as far as anyone knows, so that it is let go
    mover.release()
    assert not mover.held


class Deaf:
    """Keeps a servo from acknowledging, so often, what is written to an address; what it is told it does."""

    def __init__(self, wire_port: Any, address: int, times: int) -> None:
        self._write, self._address, self.left = wire_port.write, address, times
        self._port = wire_port

    def __call__(self, data: bytes) -> None:
        before = len(self._port.sent)
        self._write(data)
        packet = self._port.sent[before]
        if packet.instruction == Instruction.WRITE and packet.parameters[0] == self._address and self.left:
            self.left -= 1
            self._port.waiting.clear()


def test_a_hold_that_is_not_acknowledged_ends_limp_and_may_be_tried_again(
    mover: JointMover, hip: Any, wire_port: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire_port, "write", Deaf(wire_port, 64, 2))  # torque_enable, which the bus asks twice
    with pytest.raises(BusTimeoutError, match="torque_enable"):
        mover.hold()
    assert not hip.torque and not mover.held
    assert hip.peek(registers.POSITION_P_GAIN) == 400 and hip.peek(registers.BUS_WATCHDOG) == 0
    mover.hold()
    assert hip.torque and mover.held


@pytest.mark.parametrize("address", [64, 80, 98, 100])  # torque, gains, watchdog, goal PWM
def test_a_release_that_loses_answers_still_gives_everything_back(
    mover: JointMover, hip: Any, wire_port: Any, monkeypatch: pytest.MonkeyPatch, address: int
) -> None:
    mover.hold()
    monkeypatch.setattr(wire_port, "write", Deaf(wire_port, address, 4))
    mover.release()
    assert not hip.torque and not mover.held
    assert hip.peek(registers.POSITION_P_GAIN) == 400 and hip.peek(registers.GOAL_PWM) == 885
    assert hip.peek(registers.BUS_WATCHDOG) == 0


def test_a_limp_joint_that_does_not_take_its_gains_back_is_told(
    mover: JointMover, hip: Any, wire_port: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    mover.hold()
    monkeypatch.setattr(wire_port, "write", Deaf(wire_port, 80, 1000))
    with pytest.raises(
        DeviceError, match=r"left_hip_yaw \(id 20\) is limp, but does not take its former gains"
    ):
        mover.release()
    assert not hip.torque
