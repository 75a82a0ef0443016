from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
import pytest

from firmware_bridge.emulator.duck import EmulatedDuck
from firmware_bridge.robot.body import RealBody, open_body
from firmware_bridge.robot.health import Health
from firmware_bridge.wire import registers
from firmware_bridge.wire.bus import Bus
from firmware_bridge.wire.protocol import Instruction
from hardware.calibration import Calibration
from hardware.errors import BusError, BusTimeoutError, DeviceError, ImuError, PortError
from hardware.joints import MOUTH_ID, SERVO_IDS, STAND

WRITING = (Instruction.WRITE, Instruction.SYNC_WRITE, Instruction.REBOOT)


def writes(port: Any) -> list[Any]:
    return [packet for packet in port.sent if packet.instruction in WRITING]


@pytest.fixture(autouse=True)
def quick_imu_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("firmware_bridge.robot.imu.board.LIVE_SAMPLES", 2)


@pytest.fixture
def standing(clock: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the driver's time stand, too, until `clock` is moved."""
    for module in ("wire.transport", "robot.health", "robot.body"):
        monkeypatch.setattr(f"firmware_bridge.{module}.monotonic", clock)


@pytest.fixture
def real_body(wire_port: Any, wire_bus: Bus, standing: None) -> RealBody:
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
    sample = real_body.read(inf)
    assert [packet.instruction for packet in wire_port.sent] == [Instruction.FAST_SYNC_READ]
    assert sample.position[3] == pytest.approx(1.570796, abs=1e-6)
    assert sample.velocity[9] == pytest.approx(-2.398, abs=1e-3)
    assert sample.current[8] == pytest.approx(0.25)
    assert sample.gravity == pytest.approx([0, 0, -1], abs=2e-3)
    assert sample.alerts == ()


class CountingPort:
    """A port that counts the bytes of both directions."""

    def __init__(self, port: Any) -> None:
        self.port = port
        self.out = self.back = 0

    def write(self, data: bytes) -> None:
        self.out += len(data)
        self.port.write(data)

    def read(self, count: int, deadline: float) -> bytes:
        data: bytes = self.port.read(count, deadline)
        self.back += len(data)
        return data

    def flush_input(self) -> bytes:
        data: bytes = self.port.flush_input()
        assert data == b""
        return data


def test_a_tick_carries_no_byte_more_than_the_protocol_needs(wire_port: Any, standing: None) -> None:
    """Ten bytes are around the parameters, 19 of the fast sync read of 15 ids and 74 of the sync write of 14.

    The reply has a header of 8 bytes, then 1 + 1 + 12 + 2 of each device.
    """
    port = CountingPort(wire_port)
    body = RealBody(Bus(port), Calibration())
    port.out = port.back = 0
    body.read(inf)
    body.write(np.linspace(-1.5, 1.5, 14))
    assert port.out == (10 + 19) + (10 + 74)
    assert port.back == 8 + 15 * 16
    assert (port.out + port.back) * 10 / 1e6 <= 4.0e-3


def test_joint_offsets_of_the_calibration_count(wire_bus: Bus) -> None:
    offsets = (0.1, *[0.0] * 13)
    assert RealBody(wire_bus, Calibration(offsets)).read(inf).position[0] == pytest.approx(-0.1)


def test_a_servo_that_reports_a_fault_is_named_and_still_read(real_body: RealBody, wire_port: Any) -> None:
    wire_port.servo(22).poke(registers.HARDWARE_ERROR, 0x01)
    wire_port.servo(22).poke(registers.PRESENT_POSITION, 2048 + 1024)
    sample = real_body.read(inf)
    assert sample.alerts == ("left_hip_pitch",)
    assert sample.position[2] == pytest.approx(1.570796, abs=1e-6)
    assert sample.health is not None
    assert sample.health.faults == {"left_hip_pitch": ("input voltage",)}


def test_health_is_known_with_the_first_sample(real_body: RealBody, wire_port: Any) -> None:
    health = real_body.read(inf).health
    assert health is not None
    assert health.voltage == pytest.approx(np.full(14, 7.0))
    assert not health.torque.any()


def test_a_servo_that_loses_its_torque_is_told_from_one_that_is_limp(
    real_body: RealBody, wire_port: Any, clock: Any
) -> None:
    real_body.enable(200)

    def drive(seconds: float) -> Health:
        for _ in range(round(seconds / 0.02)):
            clock.now += 0.02
            sample = real_body.read(inf)
        assert sample.health is not None
        return sample.health

    assert drive(1.2).torque.all()
    wire_port.servo(23).reboot()
    assert drive(1.2).rebooted == ("left_knee",)
    real_body.limp()
    assert drive(1.2).rebooted == ()
    real_body.enable(200)
    health = drive(1.2)
    assert health.rebooted == ()
    assert health.torque.all()
    assert wire_port.servo(23).peek(registers.POSITION_P_GAIN) == 200


def test_rebooting_clears_a_fault_and_ends_limp(
    real_body: RealBody, wire_port: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("firmware_bridge.robot.servos.sleep", lambda seconds: None)
    real_body.enable(200)
    wire_port.servo(24).trip(0x20)
    assert real_body.read(inf).alerts == ("left_ankle",)
    real_body.reboot(["left_ankle"])
    sample = real_body.read(inf)
    assert sample.alerts == ()
    assert sample.health is not None
    assert not sample.health.torque.any()
    assert sample.health.rebooted == ()


def test_a_device_without_fast_reads_is_found_out_before_the_first_tick(
    wire_port: Any, wire_bus: Bus, standing: None, caplog: pytest.LogCaptureFixture
) -> None:
    wire_port.servo(31).knows_fast_sync_read = False
    body = RealBody(wire_bus, Calibration())
    assert "device 31 does not answer fast sync reads" in caplog.text
    wire_port.sent.clear()
    body.read(inf)
    assert [packet.instruction for packet in wire_port.sent] == [Instruction.SYNC_READ]


def test_what_went_wrong_on_the_bus_is_told_by_kind_and_id(real_body: RealBody, wire_port: Any) -> None:
    good = [False, True]  # the first reply loses a byte of its last block
    wire_port.wire.filter = lambda reply: reply if good.pop(0) else reply[:-3] + b"\xaa" + reply[-2:]
    real_body.read(inf)
    assert real_body.stats.totals() == {"crc": 1, "timeout": 1, "retry": 1}
    assert real_body.stats.of(14) == {"crc": 1, "timeout": 1, "retry": 1}


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
        real_body.read(inf)


def test_a_real_port_is_opened_for_one_body_and_given_back(duck: EmulatedDuck) -> None:
    with open_body(duck.port, Calibration()) as body:
        body.enable(200)
        body.write(np.zeros(14))
        with pytest.raises(PortError, match="in use"), open_body(duck.port, Calibration()):
            pass
        body.limp()
    with open_body(duck.port, Calibration()) as body:
        assert body.read(inf).position.shape == (14,)
    assert not duck.torque.any()


def test_a_failed_handshake_gives_the_port_back(duck: EmulatedDuck) -> None:
    servo = duck.servo(31)
    duck.unplug(31)
    with pytest.raises(DeviceError, match="head_pitch"), open_body(duck.port, Calibration()):
        pass
    duck.plug(servo)
    with open_body(duck.port, Calibration()):
        pass


def switch(duck: EmulatedDuck, on: bool) -> None:
    for device in (duck.imu_board, *map(duck.servo, (*SERVO_IDS, MOUTH_ID))):
        device.boot_s = 0.0
        (device.power_up if on else device.power_down)()


def test_a_duck_whose_power_comes_late_is_ready_without_a_restart(
    duck: EmulatedDuck, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    lines: list[str] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            switch(duck, True)

    monkeypatch.setattr("firmware_bridge.robot.body.sleep", sleep)
    switch(duck, False)
    with open_body(duck.port, Calibration(), wait_s=inf, report=lines.append) as body:
        assert body.read(inf).position.shape == (14,)
    assert lines == [
        f"no device on {duck.port} answers; waiting for the servos' power",
        f"devices on {duck.port} answer now",
    ]
    assert slept[-1] >= 0.5  # the last device may start later than the first one that answers


def test_the_wait_for_power_ends_when_its_time_is_over(duck: EmulatedDuck) -> None:
    switch(duck, False)
    with (
        pytest.raises(
            BusTimeoutError, match=f"no device on {duck.port} answers; switch the servos' power on"
        ),
        open_body(duck.port, Calibration()),
    ):
        pass


def test_the_wait_for_power_can_be_stopped(duck: EmulatedDuck) -> None:
    reasons = iter([None, None, "Ctrl-C"])
    switch(duck, False)
    with (
        pytest.raises(BusTimeoutError, match="Ctrl-C while no device"),
        open_body(duck.port, Calibration(), wait_s=inf, stop=lambda: next(reasons)),
    ):
        pass


def test_a_duck_that_answers_in_part_is_not_waited_for(duck: EmulatedDuck) -> None:
    lines: list[str] = []
    duck.unplug(31)
    with (
        pytest.raises(DeviceError, match=r"no answer from head_pitch \(id 31\)"),
        open_body(duck.port, Calibration(), wait_s=inf, report=lines.append),
    ):
        pass
    assert lines == []
