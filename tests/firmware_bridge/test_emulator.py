from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator

import dynamixel_sdk as sdk
import numpy as np
import pytest

from firmware_bridge import registers
from firmware_bridge.bus import Bus
from firmware_bridge.emulated_devices import EmulatedServo
from firmware_bridge.emulator import EmulatedDuck
from firmware_bridge.imu import BOARD_ID, BusImu
from firmware_bridge.port import SerialPort
from firmware_bridge.servos import Servos
from hardware.errors import BusTimeoutError
from hardware.joints import LOW, SERVO_IDS, STAND

COUNT = 2 * np.pi / 4096
TICK = (Servos.TICK_ADDRESS, Servos.TICK_LENGTH, (BOARD_ID, *SERVO_IDS))


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
