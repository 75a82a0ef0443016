from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from firmware_bridge.emulator.devices import EmulatedServo
from firmware_bridge.emulator.duck import EmulatedDuck
from firmware_bridge.robot.imu import BOARD_ID, BusImu
from firmware_bridge.robot.servos import Servos
from firmware_bridge.wire import registers
from firmware_bridge.wire.bus import Bus
from firmware_bridge.wire.port import SerialPort
from hardware.errors import BusTimeoutError
from hardware.joints import LOW, SERVO_IDS, STAND

COUNT = 2 * np.pi / 4096
TICK = (Servos.TICK_ADDRESS, Servos.TICK_LENGTH, (BOARD_ID, *SERVO_IDS))


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

    def arrived() -> bool:
        servos.write_goals(STAND)  # again and again, else the bus watchdog stops the servos
        return bool(np.abs(duck.positions - STAND).max() <= COUNT / 2)

    assert until(arrived)
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


def test_devices_hear_and_answer_only_at_their_own_speed(duck: EmulatedDuck, patient: None) -> None:
    duck.unplug(23)
    duck.plug(EmulatedServo(1, factory=True))
    with SerialPort(duck.port, 1_000_000) as port:
        assert {found.id for found in Bus(port).scan()} == {*SERVO_IDS, 34, BOARD_ID} - {23}
    with SerialPort(duck.port, 57_600) as port:
        bus = Bus(port, 57_600)
        assert [found.id for found in bus.scan()] == [1]
        assert bus.read(1, registers.RETURN_DELAY) == pytest.approx(500e-6)
        assert bus.read(1, registers.SHUTDOWN) == 53
        with pytest.raises(BusTimeoutError):
            bus.ping(20)
    with SerialPort(duck.port, 115_200) as port:
        assert Bus(port, 115_200).scan() == []


def test_motors_are_no_longer_driven_soon_after_the_last_instruction(still_duck: EmulatedDuck, clock) -> None:
    with SerialPort(still_duck.port) as port:
        bus = Bus(port)
        bus.sync_write(registers.BUS_WATCHDOG, dict.fromkeys(SERVO_IDS, 0.2))
        bus.sync_write(registers.TORQUE_ENABLE, dict.fromkeys(SERVO_IDS, 1))
        assert until(lambda: bool(still_duck.torque.all()))
        clock.now = 0.19
        bus.ping(20)
        clock.now = 0.38
        assert still_duck.torque.all()
        clock.now = 0.4
        assert not still_duck.torque.any()
        assert bus.read(20, registers.BUS_WATCHDOG) == pytest.approx(-0.02)


def test_homing_offset_moves_what_is_read_but_not_the_joint(duck: EmulatedDuck, bus: Bus) -> None:
    duck.set_state(np.zeros(14))
    duck.servo(23).poke(registers.HOMING_OFFSET, -512)
    assert bus.read(23, registers.PRESENT_POSITION) == pytest.approx(-np.pi / 4)
    assert np.all(duck.positions == 0.0)
    duck.set_state(np.full(14, 0.5))
    assert bus.read(23, registers.PRESENT_POSITION) == pytest.approx(0.5 - np.pi / 4, abs=COUNT)
    bus.write(23, registers.GOAL_POSITION, -np.pi / 4)
    assert duck.goals[3] == pytest.approx(0.0, abs=COUNT)


def test_paced_reply_comes_no_sooner_than_a_real_wire_brings_it(patient: None) -> None:
    slow = EmulatedServo(1, factory=True)
    slow.poke(registers.BAUD_RATE, 0)
    slow.poke(registers.RETURN_DELAY, 250)
    with EmulatedDuck(paced=True) as duck:
        duck.plug(slow)
        with SerialPort(duck.port, 9_600) as port:
            before = time.monotonic()
            Bus(port, 9_600).ping(1)
            # 10 bytes out and 14 back at 9600 baud, and the factory's return delay of 0.5 ms.
            assert time.monotonic() - before >= 0.0255


def test_terminal_disappears_with_the_duck(patient: None) -> None:
    with EmulatedDuck() as emulated:
        assert os.path.exists(emulated.port)
        thread = emulated.line._thread
    assert not os.path.exists(emulated.port)
    assert not thread.is_alive()


# --- following servos -------------------------------------------------------------------------------------


@pytest.fixture
def still_duck(patient: None, clock) -> Iterator[EmulatedDuck]:
    """A duck whose time stands until `clock` is moved."""
    with EmulatedDuck(clock=clock) as emulated:
        yield emulated


def test_enabled_servo_follows_its_goal_and_a_limp_one_stays(still_duck: EmulatedDuck, clock) -> None:
    duck = still_duck
    for device in (20, 21):
        duck.servo(device).poke(registers.GOAL_POSITION, 2448)
    duck.servo(20).poke(registers.TORQUE_ENABLE, 1)
    clock.now = 0.02
    first = duck.positions
    assert 0 < first[0] < 400 * COUNT
    clock.now = 2.0
    assert duck.positions[0] == pytest.approx(400 * COUNT)
    assert np.all(duck.positions[1:] == 0.0)


def test_following_servo_is_no_faster_than_a_real_one(still_duck: EmulatedDuck, clock) -> None:
    duck = still_duck
    duck.servo(20).poke(registers.GOAL_POSITION, 4095)
    duck.servo(20).poke(registers.TORQUE_ENABLE, 1)
    for tick in range(1, 11):
        clock.now = tick * 0.01
        assert duck.positions[0] <= 10.8 * clock.now + 11 * COUNT
    assert duck.positions[0] > 0.5
    assert duck.servo(20).peek(registers.PRESENT_VELOCITY) * 0.02398 == pytest.approx(10.8, abs=0.2)


def test_following_slowly_in_small_steps_still_reaches_the_goal(still_duck: EmulatedDuck, clock) -> None:
    duck = still_duck
    duck.servo(20).poke(registers.GOAL_POSITION, 2045)
    duck.servo(20).poke(registers.TORQUE_ENABLE, 1)
    for tick in range(1, 20):
        clock.now = tick * 0.001
        assert duck.positions[0] >= -3 * COUNT - 1e-12
    assert duck.positions[0] == pytest.approx(-3 * COUNT)


def test_torque_without_a_new_goal_jumps_to_the_old_one(still_duck: EmulatedDuck, clock) -> None:
    """The hazard that the driver's order of writes avoids is real on this duck."""
    duck = still_duck
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


def test_without_following_only_the_simulator_moves_servos(patient: None, clock) -> None:
    with EmulatedDuck(follow=False, clock=clock) as duck:
        duck.servo(20).poke(registers.GOAL_POSITION, 2448)
        duck.servo(20).poke(registers.TORQUE_ENABLE, 1)
        clock.now = 5.0
        assert duck.positions[0] == 0.0


def test_angles_are_those_of_the_joints_also_where_servos_are_offset() -> None:
    offsets = np.zeros(14)
    offsets[3] = 0.2
    with EmulatedDuck(joint_offsets=offsets.tolist()) as duck:
        assert duck.positions[3] == pytest.approx(-0.2)  # its servo stands at its centre
        duck.set_state(np.full(14, 0.1))
        assert np.allclose(duck.positions, 0.1, atol=1e-3)
        counts = [duck.servo(device).peek(registers.PRESENT_POSITION) for device in (22, 23)]
        assert counts == [2048 + 65, 2048 + 196]  # 0.1 and 0.3 rad at 0.0015340 rad a count


def test_a_hand_turns_one_joint() -> None:
    with EmulatedDuck() as duck:
        duck.turn("left_knee", 0.5)
        assert duck.positions[3] == pytest.approx(0.5, abs=1e-3)
        assert not duck.positions[[0, 1, 2, 4]].any()
