"""Faults on purpose: what each does, to what, when, and the same from the same seed."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from firmware_bridge.cli import main
from firmware_bridge.emulator.devices import EmulatedImuBoard, EmulatedServo
from firmware_bridge.emulator.duck import EmulatedDuck
from firmware_bridge.emulator.faults import RULES, Fault, FaultKind, Schedule, parse_fault
from firmware_bridge.emulator.injector import Injector
from firmware_bridge.emulator.wire import Wire
from firmware_bridge.robot import imu
from firmware_bridge.wire import protocol, registers
from firmware_bridge.wire.bus import Bus
from firmware_bridge.wire.port import SerialPort
from firmware_bridge.wire.protocol import Block, Discarded, Packet, Status, StatusParser
from hardware.errors import BusTimeoutError, ConfigError

PING_20 = Packet(20, 0x01, b"")
ANSWER = protocol.status(20, 0, bytes.fromhex("B0 04 34"))
FAST = Packet(0xFE, 0x8A, bytes.fromhex("84 00 04 00 14 15 16"))
"""Fast sync read of the positions of ids 20, 21 and 22."""
CENTRE = Block(0, bytes.fromhex("00 08 00 00"))


class Desk:
    """Three servos and a board on a wire, and the faults that strike them."""

    def __init__(self, clock: Any, *faults: Fault, seed: int = 0) -> None:
        self.servos = [EmulatedServo(device, clock=clock) for device in (20, 21, 22)]
        self.board = EmulatedImuBoard(clock=clock)
        self.wire = Wire([*self.servos, self.board])
        self.clock = clock
        self.injector = Injector(Schedule(faults, seed), self.wire, clock)
        self.injector.advance()

    def at(self, time_s: float) -> None:
        self.clock.now = time_s
        self.injector.advance()

    def hear(self, packet: Packet) -> bytes:
        return b"".join(reply.data for reply in self.injector.damage(packet, self.wire.exchange(packet)))

    def fast_read(self) -> dict[int, Block]:
        return protocol.parse_fast_sync_read(self.hear(FAST), (20, 21, 22), 4, Discarded())

    def sample(self) -> bytes:
        return self.board.read(imu.SAMPLE_ADDRESS, imu.SAMPLE_LENGTH)[1]


def statuses(data: bytes, *devices: int) -> list[Status]:
    return StatusParser(devices, Discarded()).feed(data)


# --- what replies suffer ----------------------------------------------------------------------------------


def test_without_faults_nothing_changes(clock) -> None:
    desk = Desk(clock)
    assert desk.hear(PING_20) == ANSWER
    assert desk.fast_read() == {20: CENTRE, 21: CENTRE, 22: CENTRE}


def test_dropped_reply_never_comes(clock) -> None:
    desk = Desk(clock, Fault(FaultKind.DROP))
    assert desk.hear(PING_20) == desk.hear(FAST) == b""


def test_flipped_reply_differs_in_one_bit_each_time_in_another(clock) -> None:
    desk = Desk(clock, Fault(FaultKind.FLIP))
    sent = int.from_bytes(ANSWER, "big")
    flips = [int.from_bytes(desk.hear(PING_20), "big") ^ sent for _ in range(60)]
    assert {flip.bit_count() for flip in flips} == {1}
    assert len(set(flips)) > 30


def test_truncated_reply_is_a_beginning_of_it(clock) -> None:
    desk = Desk(clock, Fault(FaultKind.TRUNCATE))
    lengths = set()
    for _ in range(200):
        heard = desk.hear(PING_20)
        assert ANSWER.startswith(heard)
        lengths.add(len(heard))
    assert lengths == set(range(14))


def test_duplicated_reply_comes_twice(clock) -> None:
    assert Desk(clock, Fault(FaultKind.DUPLICATE)).hear(PING_20) == 2 * ANSWER


def test_noise_comes_before_the_reply(clock) -> None:
    heard = Desk(clock, Fault(FaultKind.NOISE, amount=5)).hear(PING_20)
    assert heard[5:] == ANSWER
    assert len(heard) == 5 + 14


def test_reply_under_another_id_is_whole_but_nobodys_that_was_asked(clock) -> None:
    desk = Desk(clock, Fault(FaultKind.WRONG_ID))
    for _ in range(50):
        heard = desk.hear(PING_20)
        assert statuses(heard, 20) == []
        assert [status.data for status in statuses(heard, *range(253))] == [bytes.fromhex("B0 04 34")]


def test_one_block_of_a_fast_reply_can_name_another_id(clock) -> None:
    desk = Desk(clock, Fault(FaultKind.WRONG_ID))
    for _ in range(50):
        blocks = desk.fast_read()
        assert len(blocks) == 2
        assert set(blocks.values()) == {CENTRE}


def test_delayed_reply_leaves_the_wire_free(clock) -> None:
    desk = Desk(clock, Fault(FaultKind.DELAY, amount=0.05))
    (reply,) = desk.injector.damage(PING_20, desk.wire.exchange(PING_20))
    assert (reply.data, reply.late_s, reply.delay_s) == (ANSWER, 0.05, 0.0)


def test_fault_strikes_the_part_of_replies_that_it_is_to(clock) -> None:
    desk = Desk(clock, Fault(FaultKind.DROP, probability=0.08), seed=3)
    lost = sum(desk.hear(PING_20) == b"" for _ in range(5000))
    assert 0.064 < lost / 5000 < 0.096  # four standard deviations around 0.08


def test_fault_strikes_the_one_device_alone(clock) -> None:
    desk = Desk(clock, Fault(FaultKind.DROP, device=21))
    heard = desk.hear(Packet(0xFE, 0x82, bytes.fromhex("84 00 04 00 14 15 16")))
    assert [status.id for status in statuses(heard, 20, 21, 22)] == [20, 22]


def test_fault_strikes_in_its_time_alone(clock) -> None:
    clock.now = 100.0
    desk = Desk(clock, Fault(FaultKind.DROP, start_s=2.0, seconds=0.5))
    heard = []
    for moment in (0.0, 1.99, 2.0, 2.49, 2.5, 9.0):
        clock.now = 100.0 + moment
        heard.append(desk.hear(PING_20) != b"")
    assert heard == [True, True, False, False, True, True]


def conversation(clock: Any, seed: int) -> list[bytes]:
    faults = [
        Fault(FaultKind.FLIP, probability=0.3),
        Fault(FaultKind.NOISE, probability=0.2),
        Fault(FaultKind.TRUNCATE, probability=0.2),
        Fault(FaultKind.WRONG_ID, probability=0.2),
    ]
    desk = Desk(clock, *faults, seed=seed)
    return [desk.hear(packet) for packet in 30 * [PING_20, FAST]]


def test_same_seed_does_the_same_damage_and_another_seed_another(clock) -> None:
    assert conversation(clock, 5) == conversation(clock, 5)
    assert conversation(clock, 5) != conversation(clock, 6)


# --- what devices suffer ----------------------------------------------------------------------------------


def test_reset_servo_lost_its_torque_and_gain_and_comes_back(clock) -> None:
    desk = Desk(clock, Fault(FaultKind.RESET, start_s=1.0, device=21))
    for servo in desk.servos:
        servo.write(84, b"\xc8\x00")
        servo.write(64, b"\x01")
    desk.at(0.9)
    assert all(servo.torque for servo in desk.servos)
    desk.at(1.0)
    assert [servo.torque for servo in desk.servos] == [True, False, True]
    assert sorted(desk.fast_read()) == [20]  # a silent device silences those after it
    desk.at(1.4)
    assert sorted(desk.fast_read()) == [20, 21, 22]
    assert [servo.peek(registers.POSITION_P_GAIN) for servo in desk.servos] == [200, 400, 200]


def test_brown_out_takes_every_device_and_what_lives_in_ram(clock) -> None:
    desk = Desk(clock, Fault(FaultKind.BROWN_OUT, start_s=1.0, seconds=0.5))
    desk.servos[0].write(84, b"\xc8\x00")
    desk.servos[0].write(64, b"\x01")
    for moment, answers in ((0.9, True), (1.0, False), (1.49, False), (1.79, False), (1.81, True)):
        desk.at(moment)
        assert (desk.hear(PING_20) != b"") == answers
        assert (desk.hear(Packet(200, 0x01, b"")) != b"") == answers
        assert desk.servos[0].torque == (moment < 1.0)
    assert desk.servos[0].peek(registers.POSITION_P_GAIN) == 400


def test_a_brown_out_between_two_looks_still_happened(clock) -> None:
    desk = Desk(clock, Fault(FaultKind.BROWN_OUT, start_s=1.0, seconds=0.1))
    desk.servos[0].write(64, b"\x01")
    desk.at(5.0)
    assert not desk.servos[0].torque


def test_silent_device_comes_back_as_it_was_unless_its_watchdog_stopped_it(clock) -> None:
    desk = Desk(clock, Fault(FaultKind.SILENT, seconds=3.0, device=20))
    desk.servos[0].poke(registers.POSITION_P_GAIN, 200)
    assert desk.hear(PING_20) == b""
    assert sorted(statuses(desk.hear(Packet(21, 0x01, b"")), 21))
    desk.servos[0].poke(registers.BUS_WATCHDOG, 10)
    desk.servos[0].poke(registers.TORQUE_ENABLE, 1)
    for moment in (0.1, 0.2, 0.3):
        desk.at(moment)
        desk.hear(Packet(0xFE, 0x83, bytes.fromhex("74 00 04 00 15 00 08 00 00")))
    assert not desk.servos[0].torque
    desk.at(3.0)
    assert desk.hear(PING_20) == ANSWER
    assert desk.servos[0].peek(registers.POSITION_P_GAIN) == 200


def test_alert_bit_comes_with_good_data_until_a_restart(clock) -> None:
    desk = Desk(clock, Fault(FaultKind.ALERT, device=21), Fault(FaultKind.ALERT, device=22, amount=0x20))
    desk.servos[1].write(64, b"\x01")
    desk.servos[2].write(64, b"\x01")
    alerting = Block(0x80, CENTRE.data)
    assert desk.fast_read() == {20: CENTRE, 21: alerting, 22: alerting}
    assert desk.hear(Packet(22, 0x02, bytes.fromhex("46 00 01 00"))) == protocol.status(22, 0x80, b"\x20")
    assert [servo.torque for servo in desk.servos[1:]] == [True, False]
    desk.servos[2].reboot()
    desk.at(1.0)
    assert desk.fast_read()[22] == CENTRE


def test_servo_grows_hot_along_a_ramp_and_trips_above_its_limit(clock) -> None:
    desk = Desk(clock, Fault(FaultKind.OVERHEAT, start_s=10.0, seconds=100.0, device=20, amount=80))
    desk.servos[0].write(64, b"\x01")
    temperatures = []
    for moment in (9.0, 60.0, 90.0, 92.0, 110.0, 500.0):
        desk.at(moment)
        temperatures.append((desk.servos[0].read(146, 1)[1][0], desk.servos[0].torque))
    # From 30 deg C, half a degree a second; the limit is 70.
    assert temperatures == [(30, True), (55, True), (70, True), (71, False), (80, False), (80, False)]
    assert desk.servos[1].read(146, 1) == (0, b"\x1e")


def test_battery_falls_whatever_a_simulator_says(clock, patient: None) -> None:
    with EmulatedDuck(clock=clock) as duck:
        duck.inject(Schedule((Fault(FaultKind.BATTERY, seconds=100.0, amount=6.0),)))
        volts = []
        for moment in (0.0, 50.0, 100.0, 200.0):
            clock.now = moment
            duck.set_state(np.zeros(14), voltage=7.4)
            volts.append(duck.servo(14).read(144, 1)[1][0])
    assert volts == [70, 65, 60, 60]


def test_firmware_without_fast_sync_read_is_silent_to_it_alone(clock) -> None:
    desk = Desk(clock, Fault(FaultKind.NO_FAST_READ, device=20))
    assert desk.hear(FAST) == b""
    assert desk.hear(PING_20) == ANSWER


def test_frozen_board_repeats_everything_and_a_stuck_one_the_orientation(clock) -> None:
    stuck = Fault(FaultKind.IMU_STUCK, start_s=1.0, seconds=1.0)
    frozen = Fault(FaultKind.IMU_FROZEN, start_s=3.0, seconds=1.0)
    desk = Desk(clock, stuck, frozen)

    def five_samples(moment: float) -> list[bytes]:
        samples = []
        for tick in range(5):
            desk.at(moment + 0.02 * tick)
            angle = moment + tick
            desk.board.set_motion(np.zeros(3), np.array([np.cos(angle), np.sin(angle), 0.0, 0.0]))
            samples.append(desk.sample())
        return samples

    def kinds(moment: float) -> tuple[int, int]:
        samples = five_samples(moment)
        return len({sample[:6] for sample in samples}), len({sample[6:] for sample in samples})

    assert kinds(0.5)[1] == 5
    rates, orientations = kinds(1.5)
    assert (rates > 1, orientations) == (True, 1)
    assert kinds(2.5)[1] == 5
    assert kinds(3.5) == (1, 1)
    assert kinds(4.5)[1] == 5


def test_board_whose_filter_has_not_started_says_so(clock) -> None:
    desk = Desk(clock, Fault(FaultKind.IMU_NOT_STARTED, seconds=1.0))
    clock.now = 0.5
    assert desk.sample()[6:] == bytes(6)
    assert desk.board.peek(imu.STATUS) == 1
    desk.at(1.5)
    assert desk.sample()[6:] != bytes(6)


# --- through a real port ----------------------------------------------------------------------------------


def test_faults_reach_a_driver_and_end_with_the_next_schedule(duck: EmulatedDuck, bus: Bus) -> None:
    duck.inject(Schedule((Fault(FaultKind.SILENT, device=21),)))
    with pytest.raises(BusTimeoutError, match="device 21"):
        bus.ping(21)
    assert bus.ping(20) == (1200, 52)
    duck.inject(Schedule())
    assert bus.ping(21) == (1200, 52)


def test_delayed_and_echoed_bytes_come_in_their_time(duck: EmulatedDuck) -> None:
    duck.inject(Schedule((Fault(FaultKind.ECHO), Fault(FaultKind.DELAY, amount=0.1))))
    with SerialPort(duck.port) as port:
        before = time.monotonic()
        port.write(protocol.ping(20))
        assert port.read(10, before + 10.0) == protocol.ping(20)
        assert port.read(14, before + 10.0) == ANSWER
        assert time.monotonic() - before >= 0.1


def test_echo_costs_no_time_on_the_wire(duck: EmulatedDuck, bus: Bus) -> None:
    duck.inject(Schedule((Fault(FaultKind.ECHO),)))
    bus.read(20, registers.MODEL_NUMBER)
    assert duck.wire_clock.total.bytes_back == 13 * duck.wire_clock.total.packets


# --- as plain data, from the command line -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("drop", Fault(FaultKind.DROP)),
        ("flip:probability=0.08", Fault(FaultKind.FLIP, probability=0.08)),
        (
            "silent:device=23,start=5,seconds=2",
            Fault(FaultKind.SILENT, start_s=5.0, seconds=2.0, device=23),
        ),
        ("overheat:amount=75.5", Fault(FaultKind.OVERHEAT, amount=75.5)),
    ],
)
def test_fault_is_read_from_a_line_of_text(text: str, fault: Fault) -> None:
    assert parse_fault(text) == fault


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("fire", "no fault 'fire'; give one of drop, delay"),
        ("drop:", None),
        ("drop:often=1", "has no 'often'; give start, seconds, probability, device, amount"),
        ("drop:probability", "probability = '' of a fault is no number"),
        ("drop:probability=1.5", "probability = 1.5 of the fault drop must be above 0, up to 1"),
        ("drop:probability=nan", "must be above 0"),
        ("drop:start=-1", "start_s = -1.0 of the fault drop must be 0 or more seconds"),
        ("drop:seconds=nan", "seconds = nan"),
        ("drop:amount=1", "amount = 1.0 of the fault drop must be left out: this kind has none"),
        ("noise:amount=0", "must be from 1 to 256 bytes"),
        ("silent:device=x", "device = 'x' of a fault is no number"),
        ("silent:device=-1", "must be an id on the bus"),
        ("silent:probability=0.5", "left out: it strikes devices"),
        ("imu-stuck:device=200", "left out: it strikes the IMU board"),
        ("echo:device=20", "left out: it strikes instructions"),
    ],
)
def test_fault_that_cannot_be_is_refused_with_what_can(text: str, told: str | None) -> None:
    if told is None:
        assert parse_fault(text) == Fault(FaultKind.DROP)
        return
    with pytest.raises(ConfigError) as caught:
        parse_fault(text)
    assert told in str(caught.value)


def test_fault_of_an_absent_device_is_refused(duck: EmulatedDuck) -> None:
    with pytest.raises(ConfigError, match="strike device 99; on this bus are 10, 11,"):
        duck.inject(Schedule((Fault(FaultKind.SILENT, device=99),)))


def test_command_lists_every_fault_and_refuses_what_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["emulate", "--help"])
    shown = capsys.readouterr().out
    assert all(f"  {kind} " in shown for kind in RULES)
    assert set(RULES) == set(FaultKind)
    for wrong in (["--fault", "fire"], ["--seed", "-1"], ["--seed", "1.5"]):
        with pytest.raises(SystemExit, match="2"):
            main(["emulate", *wrong])
        assert wrong[1].strip("-") in capsys.readouterr().err
