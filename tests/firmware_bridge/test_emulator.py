from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from itertools import groupby

import dynamixel_sdk as sdk
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
from firmware_bridge.port import SerialPort
from firmware_bridge.protocol import Packet
from firmware_bridge.servos import Servos
from hardware import rotations
from hardware.errors import BusTimeoutError, DeviceError
from hardware.joints import LOW, SERVO_IDS, STAND

COUNT = 2 * np.pi / 4096
TICK = (Servos.TICK_ADDRESS, Servos.TICK_LENGTH, (BOARD_ID, *SERVO_IDS))


@pytest.fixture
def bus(duck: EmulatedDuck) -> Iterator[Bus]:
    with SerialPort(duck.port) as port:
        yield Bus(port)


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def until(condition: Callable[[], bool]) -> bool:
    """Wait for something another thread does, however slow the machine."""
    for _ in range(2000):
        if condition():
            return True
        time.sleep(0.005)
    return False


# --- the whole duck through a real port -------------------------------------------------------------------


def test_duck_passes_the_handshake_stands_up_and_goes_limp(duck: EmulatedDuck, bus: Bus) -> None:
    servos, board = Servos(bus), BusImu(bus)
    servos.check()
    board.check()
    assert not duck.torque.any()
    servos.enable(200)
    assert duck.torque.all()
    assert set(duck.p_gains) == {200}
    servos.write_goals(STAND)
    assert until(lambda: bool(np.abs(duck.positions - STAND).max() <= COUNT / 2))
    blocks = bus.fast_sync_read(*TICK)
    assert np.abs(servos.decode(blocks).position - STAND).max() <= COUNT / 2
    assert board.decode(blocks[BOARD_ID].data).gravity == pytest.approx([0, 0, -1], abs=1e-3)
    servos.limp()
    assert not duck.torque.any()


def test_state_set_by_a_simulator_is_what_the_driver_reads(patient: None) -> None:
    position, velocity, current = LOW * 0.5, np.linspace(-9, 9, 14), np.linspace(-0.7, 0.6, 14)
    with EmulatedDuck(follow=False) as duck, SerialPort(duck.port) as port:
        duck.set_state(position, velocity, current, voltage=7.3, temperature=41)
        bus = Bus(port)
        sample = Servos(bus).decode(bus.fast_sync_read(*TICK))
        assert np.allclose(sample.position, position, atol=COUNT / 2)
        assert np.allclose(sample.velocity, velocity, atol=0.012)
        assert np.allclose(sample.current, current, atol=0.0005)
        assert bus.read(14, registers.PRESENT_INPUT_VOLTAGE) == pytest.approx(7.3)
        assert bus.read(20, registers.PRESENT_TEMPERATURE) == 41


def test_goals_reach_a_simulator_in_joint_order(duck: EmulatedDuck, bus: Bus) -> None:
    Servos(bus).write_goals(STAND)
    assert until(lambda: bool(np.allclose(duck.goals, STAND, atol=COUNT / 2)))


def test_two_drivers_one_after_the_other_find_the_duck(duck: EmulatedDuck) -> None:
    for _ in range(2):
        with SerialPort(duck.port) as port:
            assert Bus(port).ping(20) == (1200, 52)


def test_dropped_reply_costs_one_retry(duck: EmulatedDuck, bus: Bus) -> None:
    dropped: list[bytes] = []

    def once(reply: bytes) -> bytes | None:
        if dropped:
            return reply
        dropped.append(reply)
        return None

    duck.filter = once
    assert bus.read(21, registers.MODEL_NUMBER) == 1200
    assert bus.stats.retry == 1
    duck.filter = None


def test_damaged_and_cut_replies_are_counted(duck: EmulatedDuck, bus: Bus) -> None:
    duck.filter = lambda reply: reply[:-1] + bytes([reply[-1] ^ 0x80])
    with pytest.raises(BusTimeoutError):
        bus.read(21, registers.MODEL_NUMBER)
    assert bus.stats.crc == 2
    duck.filter = lambda reply: reply[:5]
    with pytest.raises(BusTimeoutError):
        bus.read(21, registers.MODEL_NUMBER)
    assert bus.stats.timeout == 4


def test_plugged_and_unplugged_devices_are_noticed(duck: EmulatedDuck, bus: Bus) -> None:
    duck.unplug(23)
    duck.plug(EmulatedServo(1, factory=True))
    with pytest.raises(BusTimeoutError):
        bus.ping(23)
    assert bus.read(1, registers.RETURN_DELAY) == pytest.approx(500e-6)
    assert bus.read(1, registers.SHUTDOWN) == 53


def test_terminal_disappears_with_the_duck(patient: None) -> None:
    with EmulatedDuck() as emulated:
        assert os.path.exists(emulated.port)
        thread = emulated._thread
    assert not os.path.exists(emulated.port)
    assert not thread.is_alive()


# --- the vendor's own library as the driver ---------------------------------------------------------------


@pytest.fixture
def vendor(duck: EmulatedDuck, monkeypatch: pytest.MonkeyPatch) -> Iterator[sdk.PortHandler]:
    monkeypatch.setattr("dynamixel_sdk.port_handler.LATENCY_TIMER", 1000)
    port = sdk.PortHandler(duck.port)
    port.setBaudRate(1_000_000)
    yield port
    port.closePort()


def test_vendors_library_pings_reads_and_writes(duck: EmulatedDuck, vendor: sdk.PortHandler) -> None:
    handler = sdk.PacketHandler(2.0)
    assert handler.ping(vendor, 20) == (1200, sdk.COMM_SUCCESS, 0)
    assert handler.write2ByteTxRx(vendor, 20, 84, 321) == (sdk.COMM_SUCCESS, 0)
    assert handler.read2ByteTxRx(vendor, 20, 84) == (321, sdk.COMM_SUCCESS, 0)
    assert duck.p_gains[0] == 321
    assert handler.reboot(vendor, 20) == (sdk.COMM_SUCCESS, 0)
    assert duck.p_gains[0] == 400


def test_vendors_library_understands_stuffed_and_refused_replies(
    duck: EmulatedDuck, vendor: sdk.PortHandler
) -> None:
    handler = sdk.PacketHandler(2.0)
    duck.servo(20).poke(registers.PRESENT_POSITION, 0x00FDFFFF)
    assert handler.read4ByteTxRx(vendor, 20, 132) == (0x00FDFFFF, sdk.COMM_SUCCESS, 0)
    assert handler.write4ByteTxRx(vendor, 20, 132, 0) == (sdk.COMM_SUCCESS, sdk.ERRNUM_ACCESS)
    assert handler.write4ByteTxRx(vendor, 20, 116, 5000) == (sdk.COMM_SUCCESS, sdk.ERRNUM_DATA_LIMIT)


@pytest.mark.parametrize("fast", [False, True])
def test_vendors_library_reads_all_servos_at_once(
    duck: EmulatedDuck, vendor: sdk.PortHandler, fast: bool
) -> None:
    duck.set_state(np.arange(14) * 0.1)
    group = sdk.GroupSyncRead(vendor, sdk.PacketHandler(2.0), 132, 4)
    for device in SERVO_IDS:
        group.addParam(device)
    assert (group.fastSyncRead() if fast else group.txRxPacket()) == sdk.COMM_SUCCESS
    counts = [group.getData(device, 132, 4) for device in SERVO_IDS]
    assert counts[:3] == [2048, 2113, 2178]
    assert counts[13] == 2895


def test_vendors_library_writes_all_servos_at_once(duck: EmulatedDuck, vendor: sdk.PortHandler) -> None:
    group = sdk.GroupSyncWrite(vendor, sdk.PacketHandler(2.0), 116, 4)
    for device in SERVO_IDS:
        group.addParam(device, (2048 + device).to_bytes(4, "little"))
    assert group.txPacket() == sdk.COMM_SUCCESS
    assert until(lambda: bool(np.allclose(duck.goals, np.array(SERVO_IDS) * COUNT)))


# --- following servos -------------------------------------------------------------------------------------


@pytest.fixture
def standing_clock(patient: None) -> Iterator[tuple[EmulatedDuck, Clock]]:
    clock = Clock()
    with EmulatedDuck(clock=clock) as emulated:
        yield emulated, clock


def test_enabled_servo_follows_its_goal_and_a_limp_one_stays(
    standing_clock: tuple[EmulatedDuck, Clock],
) -> None:
    duck, clock = standing_clock
    for device in (20, 21):
        duck.servo(device).poke(registers.GOAL_POSITION, 2448)
    duck.servo(20).poke(registers.TORQUE_ENABLE, 1)
    clock.now = 0.02
    first = duck.positions
    assert 0 < first[0] < 400 * COUNT
    clock.now = 2.0
    assert duck.positions[0] == pytest.approx(400 * COUNT)
    assert np.all(duck.positions[1:] == 0.0)


def test_following_servo_is_no_faster_than_a_real_one(standing_clock: tuple[EmulatedDuck, Clock]) -> None:
    duck, clock = standing_clock
    duck.servo(20).poke(registers.GOAL_POSITION, 4095)
    duck.servo(20).poke(registers.TORQUE_ENABLE, 1)
    for tick in range(1, 11):
        clock.now = tick * 0.01
        assert duck.positions[0] <= 10.8 * clock.now + 11 * COUNT
    assert duck.positions[0] > 0.5
    assert duck.servo(20).peek(registers.PRESENT_VELOCITY) * 0.02398 == pytest.approx(10.8, abs=0.2)


def test_following_slowly_in_small_steps_still_reaches_the_goal(
    standing_clock: tuple[EmulatedDuck, Clock],
) -> None:
    duck, clock = standing_clock
    duck.servo(20).poke(registers.GOAL_POSITION, 2045)
    duck.servo(20).poke(registers.TORQUE_ENABLE, 1)
    for tick in range(1, 20):
        clock.now = tick * 0.001
        assert duck.positions[0] >= -3 * COUNT - 1e-12
    assert duck.positions[0] == pytest.approx(-3 * COUNT)


def test_torque_without_a_new_goal_jumps_to_the_old_one(
    standing_clock: tuple[EmulatedDuck, Clock],
) -> None:
    """The hazard that the driver's order of writes avoids is real on this duck."""
    duck, clock = standing_clock
    duck.set_state(np.full(14, 0.5))
    with SerialPort(duck.port) as port:
        bus = Bus(port)
        bus.write(20, registers.TORQUE_ENABLE, 1)
        clock.now = 1.0
        assert duck.positions[0] == pytest.approx(0.0, abs=1e-9)
        duck.set_state(np.full(14, 0.5))
        Servos(bus).limp()
        Servos(bus).enable(200)
        clock.now = 2.0
        assert np.allclose(duck.positions, 0.5, atol=COUNT)


def test_without_following_only_the_simulator_moves_servos(patient: None) -> None:
    clock = Clock()
    with EmulatedDuck(follow=False, clock=clock) as duck:
        duck.servo(20).poke(registers.GOAL_POSITION, 2448)
        duck.servo(20).poke(registers.TORQUE_ENABLE, 1)
        clock.now = 5.0
        assert duck.positions[0] == 0.0


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
