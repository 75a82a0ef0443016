from __future__ import annotations

import time
from itertools import groupby

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware_bridge.emulator.devices import EmulatedImuBoard, EmulatedServo
from firmware_bridge.emulator.duck import EmulatedDuck
from firmware_bridge.emulator.wire import Wire
from firmware_bridge.robot import imu
from firmware_bridge.robot.imu import BOARD_ID, BusImu
from firmware_bridge.robot.servos import Servos
from firmware_bridge.wire import protocol, registers
from firmware_bridge.wire.bus import Bus
from firmware_bridge.wire.protocol import Packet
from hardware import rotations
from hardware.errors import DeviceError
from hardware.joints import SERVO_IDS

COUNT = 2 * np.pi / 4096
TICK = (Servos.TICK_ADDRESS, Servos.TICK_LENGTH, (BOARD_ID, *SERVO_IDS))


# --- registers and rules ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "data", "error"),
    [
        (132, "00 00 00 00", 7),  # read only
        (14, "01", 7),  # no such register
        (116, "00 10 00 00", 6),  # 4096 is beyond the position limit
        (84, "FF FF", 4),  # gain beyond 16383
        (116, "00 08", 5),  # half a register
        (118, "00 00", 7),  # the other half
        (64, "01", 0),
        (80, "00 00 00 00 C8 00", 0),  # three gains at once
    ],
)
def test_writes_are_accepted_or_refused_as_the_manual_says(address: int, data: str, error: int) -> None:
    servo = EmulatedServo(20)
    before = bytes(servo.memory)
    assert servo.write(address, bytes.fromhex(data)) == error
    assert (bytes(servo.memory) == before) == bool(error)


def test_eeprom_is_locked_while_torque_is_on() -> None:
    servo = EmulatedServo(20)
    assert servo.write(9, b"\x01") == 0
    servo.poke(registers.TORQUE_ENABLE, 1)
    assert servo.write(9, b"\x02") == 7
    assert servo.peek(registers.RETURN_DELAY) == 1


def test_tripped_servo_goes_limp_alerts_and_stays_limp_until_reboot() -> None:
    servo = EmulatedServo(20)
    servo.write(64, b"\x01")
    servo.write(84, b"\xc8\x00")
    servo.trip(0x20)
    assert (servo.torque, servo.alert) == (False, 0x80)
    servo.write(64, b"\x01")
    assert not servo.torque
    servo.reboot()
    assert (servo.alert, servo.peek(registers.POSITION_P_GAIN)) == (0, 400)
    servo.write(64, b"\x01")
    assert servo.torque


def test_low_voltage_only_alerts_with_the_ducks_mask_and_trips_with_the_factorys() -> None:
    duck, fresh = EmulatedServo(20), EmulatedServo(1, factory=True)
    for servo in (duck, fresh):
        servo.write(64, b"\x01")
        servo.trip(0x01)
        assert servo.alert == 0x80
    assert duck.torque
    assert not fresh.torque


def test_read_past_the_end_is_refused() -> None:
    assert EmulatedServo(20).read(250, 12) == (7, b"")


@pytest.mark.parametrize(
    ("instruction", "parameters", "error"),
    [
        (0x04, "74 00 00 08 00 00", 2),  # registered write: not offered
        (0x02, "84 00", 5),
        (0x03, "40 00", 5),
    ],
)
def test_malformed_instructions_are_answered_with_an_error(
    instruction: int, parameters: str, error: int
) -> None:
    reply = Wire([EmulatedServo(20)]).answer(Packet(20, instruction, bytes.fromhex(parameters)))
    assert reply == protocol.status(20, error)


@pytest.mark.parametrize("instruction", [0x82, 0x83, 0x8A, 0x55, 0x03])
def test_malformed_broadcasts_are_ignored(instruction: int) -> None:
    assert Wire([EmulatedServo(20)]).answer(Packet(0xFE, instruction, b"\x74\x00\x04")) == b""


def test_two_servos_with_one_id_garble_each_other() -> None:
    one, other = EmulatedServo(20), EmulatedServo(20)
    wire = Wire([one, other])
    same = wire.answer(Packet(20, 0x01, b""))
    assert same == protocol.status(20, 0, bytes.fromhex("B0 04 34"))
    other.poke(registers.PRESENT_POSITION, 1234)
    discarded = protocol.Discarded()
    differing = wire.answer(Packet(20, 0x02, bytes.fromhex("84 00 04 00")))
    assert protocol.StatusParser((20,), discarded).feed(differing) == []
    assert discarded.crc == 1
    fast = wire.answer(Packet(0xFE, 0x8A, bytes.fromhex("84 00 04 00 14")))
    assert protocol.parse_fast_sync_read(fast, (20,), 4, discarded) == {}


def test_fast_reply_stops_at_the_first_device_that_does_not_know_it() -> None:
    servos = [EmulatedServo(device) for device in (20, 21, 22)]
    servos[1].knows_fast_sync_read = False
    reply = Wire(servos).answer(Packet(0xFE, 0x8A, bytes.fromhex("84 00 04 00 14 15 16")))
    assert list(protocol.parse_fast_sync_read(reply, (20, 21, 22), 4, protocol.Discarded())) == [20]
    servos[0].knows_fast_sync_read = False
    assert Wire(servos).answer(Packet(0xFE, 0x8A, bytes.fromhex("84 00 04 00 14 15 16"))) == b""


@given(
    st.sampled_from([0x01, 0x02, 0x03, 0x04, 0x08, 0x55, 0x82, 0x83, 0x8A]),
    st.sampled_from([20, 200, 253, 254]),
    st.binary(max_size=40),
)
def test_no_instruction_however_odd_stops_the_wire(instruction: int, device: int, parameters: bytes) -> None:
    wire = Wire([EmulatedServo(20), EmulatedServo(20), EmulatedImuBoard()])
    for data in (parameters, parameters + bytes([20, 200, 20])):
        wire.answer(Packet(device, instruction, data))
    assert len(wire.devices) == 3


# --- a servo alone: bus watchdog, limits, restart, EEPROM --------------------------------------------------


def test_bus_watchdog_stops_a_servo_as_the_manual_says(clock) -> None:
    servo = EmulatedServo(20, clock=clock)
    servo.poke(registers.PRESENT_POSITION, 2300)
    servo.write(112, bytes.fromhex("64 00 00 00"))
    servo.write(98, b"\x0a")  # 10 units of 20 ms
    servo.write(64, b"\x01")
    clock.now = 0.2
    assert servo.torque
    clock.now = 0.201
    assert not servo.torque
    assert servo.read(98, 1) == (0, b"\xff")  # -1
    assert servo.read(112, 4) == (0, bytes(4))
    assert servo.read(64, 1) == (0, b"\x01")
    goals = {100: "64 00", 102: "64 00", 104: "64 00 00 00", 116: "00 08 00 00"}
    assert [servo.write(at, bytes.fromhex(data)) for at, data in goals.items()] == [4, 4, 4, 4]
    assert servo.write(98, b"\x0a") == 4
    assert servo.write(98, b"\x00") == 0
    assert servo.torque
    assert servo.peek(registers.GOAL_POSITION) == 2300
    assert servo.write(116, bytes.fromhex("00 08 00 00")) == 0


@pytest.mark.parametrize(
    ("packet", "baud", "kept"),
    [
        (Packet(21, 0x01, b""), 1_000_000, True),  # to another servo
        (Packet(0xFE, 0x83, bytes.fromhex("74 00 04 00 15 00 08 00 00")), 1_000_000, True),
        (Packet(20, 0x01, b""), 57_600, False),  # at a speed it does not hear
        (Packet(21, 0x55, b"\x00"), 1_000_000, False),  # another's answer is no instruction
    ],
)
def test_every_instruction_that_a_servo_hears_keeps_its_watchdog_quiet(
    clock, packet: Packet, baud: int, kept: bool
) -> None:
    servo = EmulatedServo(20, clock=clock)
    wire = Wire([servo, EmulatedServo(21, clock=clock)])
    servo.write(98, b"\x0a")
    servo.write(64, b"\x01")
    for tick in range(1, 20):
        clock.now = tick * 0.1
        wire.answer(packet, baud)
    assert servo.torque == kept


def test_watchdog_sleeps_while_torque_is_off(clock) -> None:
    servo = EmulatedServo(20, clock=clock)
    servo.write(98, b"\x01")
    clock.now = 60.0
    servo.hear()
    assert servo.read(98, 1) == (0, b"\x01")


@pytest.mark.parametrize(("tenths", "alert"), [(34, True), (35, False), (70, False), (71, True), (84, True)])
def test_voltage_out_of_the_limits_is_reported_until_a_restart(tenths: int, alert: bool) -> None:
    servo = EmulatedServo(20)
    servo.write(64, b"\x01")
    servo.poke(registers.PRESENT_INPUT_VOLTAGE, tenths)
    assert servo.read(70, 1) == (0, bytes([alert]))
    assert servo.alert == 0x80 * alert
    assert servo.torque  # the duck's shutdown mask leaves this bit out
    servo.poke(registers.PRESENT_INPUT_VOLTAGE, 60)
    assert servo.read(70, 1) == (0, bytes([alert]))
    servo.reboot()
    assert servo.read(70, 1) == (0, b"\x00")


def test_factory_servo_on_a_charged_pack_goes_limp() -> None:
    servo = EmulatedServo(1, factory=True)
    servo.write(64, b"\x01")
    servo.poke(registers.PRESENT_INPUT_VOLTAGE, 74)
    assert not servo.torque
    servo.write(64, b"\x01")
    assert not servo.torque


@pytest.mark.parametrize(("celsius", "limp"), [(70, False), (71, True)])
def test_servo_above_its_temperature_limit_goes_limp(celsius: int, limp: bool) -> None:
    servo = EmulatedServo(20)
    servo.write(64, b"\x01")
    servo.poke(registers.PRESENT_TEMPERATURE, celsius)
    assert servo.torque == (not limp)
    assert servo.peek(registers.HARDWARE_ERROR) == 0x04 * limp


def test_restart_loses_what_lives_in_ram_and_keeps_the_eeprom(clock) -> None:
    servo = EmulatedServo(20, clock=clock)
    servo.write(9, b"\x05")
    for address, data in ((84, b"\xc8\x00"), (98, b"\x0a"), (108, bytes((9, 0, 0, 0))), (64, b"\x01")):
        assert servo.write(address, data) == 0
    servo.poke(registers.PRESENT_POSITION, 1500)
    clock.now = 1.5
    servo.reboot()
    lost = (registers.TORQUE_ENABLE, registers.BUS_WATCHDOG, registers.PROFILE_ACCELERATION)
    assert [servo.peek(register) for register in lost] == [0, 0, 0]
    assert servo.peek(registers.POSITION_P_GAIN) == 400
    assert servo.peek(registers.GOAL_POSITION) == 1500
    assert servo.peek(registers.RETURN_DELAY) == 5
    assert servo.read(120, 2) == (0, b"\0\0")


def test_servo_acknowledges_a_restart_and_is_deaf_while_it_starts(clock) -> None:
    wire = Wire([EmulatedServo(20, clock=clock), EmulatedServo(21, clock=clock)])
    assert wire.answer(Packet(20, 0x08, b"")) == protocol.status(20)
    clock.now = 0.29
    assert wire.answer(Packet(20, 0x01, b"")) == b""
    assert wire.answer(Packet(21, 0x01, b"")) != b""
    clock.now = 0.31
    assert wire.answer(Packet(20, 0x01, b"")) != b""


def test_write_to_the_eeprom_is_acknowledged_counted_and_followed_by_a_deaf_moment(clock) -> None:
    servo = EmulatedServo(20, clock=clock)
    wire = Wire([servo])
    assert wire.answer(Packet(20, 0x03, bytes.fromhex("09 00 00"))) == protocol.status(20)
    assert wire.answer(Packet(20, 0x01, b"")) == b""
    clock.now = 0.016
    assert wire.answer(Packet(20, 0x03, bytes.fromhex("40 00 01"))) == protocol.status(20)
    assert wire.answer(Packet(20, 0x03, bytes.fromhex("09 00 00"))) == protocol.status(20, 7)
    assert wire.answer(Packet(20, 0x01, b"")) != b""
    assert servo.eeprom_writes == 1


def test_new_id_and_new_speed_count_from_the_next_instruction_on(clock) -> None:
    servo = EmulatedServo(1, factory=True, clock=clock)
    wire = Wire([servo])
    assert wire.answer(Packet(1, 0x01, b""), 1_000_000) == b""
    assert wire.answer(Packet(1, 0x03, bytes.fromhex("07 00 17")), 57_600) == protocol.status(1)
    clock.now = 1.0
    assert wire.answer(Packet(1, 0x01, b""), 57_600) == b""
    assert wire.answer(Packet(23, 0x03, bytes.fromhex("08 00 03")), 57_600) == protocol.status(23)
    clock.now = 2.0
    assert wire.answer(Packet(23, 0x01, b""), 57_600) == b""
    ping = protocol.status(23, 0, bytes.fromhex("B0 04 34"))
    assert wire.answer(Packet(23, 0x01, b""), 1_000_000) == ping


@pytest.mark.parametrize(("offset", "shown"), [(-512, 1536), (1024, 3072), (1025, 2048), (-1025, 2048)])
def test_homing_offset_is_added_to_the_position_unless_too_large_for_position_mode(
    offset: int, shown: int
) -> None:
    servo = EmulatedServo(13)
    assert servo.write(20, offset.to_bytes(4, "little", signed=True)) == 0
    assert servo.peek(registers.PRESENT_POSITION) == shown
    assert servo.write(20, bytes(4)) == 0
    assert servo.peek(registers.PRESENT_POSITION) == 2048


def test_goals_stay_within_the_limits_in_the_eeprom() -> None:
    servo = EmulatedServo(20)
    servo.write(36, bytes.fromhex("F4 01"))  # 500
    servo.write(48, bytes.fromhex("00 0C 00 00"))  # 3072
    results = [
        servo.write(100, (600).to_bytes(2, "little")),
        servo.write(100, (-500).to_bytes(2, "little", signed=True)),
        servo.write(100, (900).to_bytes(2, "little")),  # beyond what the register holds at all
        servo.write(116, (3073).to_bytes(4, "little")),
        servo.write(116, (3072).to_bytes(4, "little")),
    ]
    assert results == [6, 0, 4, 6, 0]


def test_gains_are_lost_with_a_write_of_the_operating_mode() -> None:
    servo = EmulatedServo(20)
    servo.write(80, bytes.fromhex("05 00 06 00 C8 00"))
    servo.write(11, b"\x03")
    assert servo.read(80, 6) == (0, bytes.fromhex("00 00 00 00 90 01"))


# --- IMU board --------------------------------------------------------------------------------------------


def random_quaternions(count: int) -> np.ndarray:
    draws = np.random.default_rng(3).normal(size=(count, 4))
    return draws / np.linalg.norm(draws, axis=1, keepdims=True)


@pytest.mark.parametrize("mounting", [(0.5**0.5, 0.0, 0.5**0.5, 0.0), (0.0, 1.0, 0.0, 0.0)])
def test_motion_of_the_trunk_comes_back_from_the_boards_bytes(mounting: tuple[float, ...]) -> None:
    board = EmulatedImuBoard(mounting)
    driver = BusImu(Bus(port=None), mounting)  # type: ignore[arg-type]
    rate = np.array([0.4, -2.0, 3.0])
    for quaternion in random_quaternions(200):
        board.set_motion(rate, quaternion)
        board._samples = -1
        _, data = board.read(imu.SAMPLE_ADDRESS, imu.SAMPLE_LENGTH)
        sample = driver.decode(data)
        assert np.allclose(sample.angular_velocity, rate, atol=6 * 1.1 * imu.RAD_PER_S_PER_COUNT)
        down = rotations.rotate_inverse(quaternion, np.array([0.0, 0.0, -1.0]))
        # Half floats leave w = sqrt(1 - x2 - y2 - z2) uncertain by up to 0.03 where it is near zero.
        assert np.abs(sample.gravity - down).max() < 0.06


def test_samples_count_up_and_are_noisy_until_the_board_freezes(clock) -> None:
    board = EmulatedImuBoard(clock=clock)
    seen = []
    for tick in range(500):
        clock.now = tick * 0.02 + 0.001
        seen.append(board.read(imu.SAMPLE_ADDRESS, imu.SAMPLE_LENGTH)[1])
    assert board.peek(imu.SAMPLE_COUNTER) == 998
    assert max(len(list(run)) for _, run in groupby(seen)) < 6
    board.frozen = True
    clock.now += 1.0
    assert board.read(imu.SAMPLE_ADDRESS, imu.SAMPLE_LENGTH)[1] == seen[-1]


def test_a_stuck_board_repeats_its_orientation_while_the_gyroscope_goes_on(clock) -> None:
    board = EmulatedImuBoard(clock=clock)
    upright = board.read(imu.SAMPLE_ADDRESS, imu.SAMPLE_LENGTH)[1]
    board.stuck = True
    seen = []
    for tick in range(1, 30):
        clock.now = tick * 0.02 + 0.001
        board.set_motion(np.zeros(3), np.array([0.0, 1.0, 0.0, 0.0]))
        seen.append(board.read(imu.SAMPLE_ADDRESS, imu.SAMPLE_LENGTH)[1])
    assert {sample[6:] for sample in seen} == {upright[6:]}
    assert len({sample[:6] for sample in seen}) > 10
    board.stuck = False
    clock.now += 0.02
    assert board.read(imu.SAMPLE_ADDRESS, imu.SAMPLE_LENGTH)[1][6:] != upright[6:]


def test_board_cannot_be_written() -> None:
    assert EmulatedImuBoard().write(imu.SAMPLE_ADDRESS, b"\0") == 7


def test_driver_and_duck_agree_on_a_turning_trunk(duck: EmulatedDuck, bus: Bus) -> None:
    pitched = np.array([np.cos(0.15), 0.0, np.sin(0.15), 0.0])
    duck.set_imu(np.array([0.0, 0.0, 1.5]), pitched)
    time.sleep(2 * imu.SAMPLE_PERIOD_S)
    sample = BusImu(bus).decode(bus.fast_sync_read(*TICK)[BOARD_ID].data)
    assert sample.gravity == pytest.approx([np.sin(0.3), 0, -np.cos(0.3)], abs=2e-3)
    assert sample.angular_velocity == pytest.approx([0, 0, 1.5], abs=0.01)


def test_wrong_model_is_refused_over_a_real_port(duck: EmulatedDuck, bus: Bus) -> None:
    duck.servo(20).poke(registers.MODEL_NUMBER, 1190)
    with pytest.raises(DeviceError, match=r"XL330-M077 \(1190\), but XL330-M288 \(1200\)"):
        Servos(bus).check()
