from __future__ import annotations

import time
from itertools import groupby

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware_bridge import imu, protocol, registers
from firmware_bridge.bus import Bus
from firmware_bridge.emulated_devices import EmulatedImuBoard, EmulatedServo
from firmware_bridge.emulated_wire import Wire
from firmware_bridge.emulator import EmulatedDuck
from firmware_bridge.imu import BOARD_ID, BusImu
from firmware_bridge.protocol import Packet
from firmware_bridge.servos import Servos
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


def test_samples_count_up_and_are_noisy_until_the_board_freezes(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("firmware_bridge.emulated_devices.monotonic", lambda: now[0])
    board = EmulatedImuBoard()
    seen = []
    for tick in range(500):
        now[0] = tick * 0.02 + 0.001
        seen.append(board.read(imu.SAMPLE_ADDRESS, imu.SAMPLE_LENGTH)[1])
    assert board.peek(imu.SAMPLE_COUNTER) == 998
    assert max(len(list(run)) for _, run in groupby(seen)) < 6
    board.frozen = True
    now[0] += 1.0
    assert board.read(imu.SAMPLE_ADDRESS, imu.SAMPLE_LENGTH)[1] == seen[-1]


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
