from __future__ import annotations

import numpy as np
import pytest

from firmware_bridge.robot.health import Health, HealthWatch
from firmware_bridge.robot.servos import Servos
from firmware_bridge.wire import registers, transport
from firmware_bridge.wire.bus import Bus

TICK_S = 0.02
KNEE, ANKLE = 23, 24


@pytest.fixture(autouse=True)
def driver_time(monkeypatch: pytest.MonkeyPatch, clock) -> None:
    monkeypatch.setattr(transport, "monotonic", clock)
    monkeypatch.setattr("firmware_bridge.robot.health.monotonic", clock)


@pytest.fixture
def watch(wire_bus: Bus, wire_port) -> HealthWatch:
    watch = HealthWatch(wire_bus)
    watch.read_all()
    wire_port.sent.clear()
    return watch


class Ticks:
    """Ticks with room for all, or for less."""

    def __init__(self, watch: HealthWatch, port, clock, room_s: float = 0.01) -> None:
        self.watch, self.port, self.clock, self.room_s = watch, port, clock, room_s

    def run(self, seconds: float, alerts: tuple[int, ...] = ()) -> Health:
        for _ in range(round(seconds / TICK_S)):
            self.clock.now += TICK_S
            for device in self.port.wire.devices:
                device.hear()  # the tick's own read and write
            self.watch.update(alerts, self.clock.now, self.clock.now + self.room_s)
        assert self.watch.newest is not None
        return self.watch.newest

    def reads(self) -> list[tuple[int, int]]:
        """Address and length of what was asked, which is forgotten then."""
        words = [packet.parameters for packet in self.port.sent]
        self.port.sent.clear()
        return [(int.from_bytes(p[:2], "little"), int.from_bytes(p[2:4], "little")) for p in words]


@pytest.fixture
def ticks(watch: HealthWatch, wire_port, clock) -> Ticks:
    return Ticks(watch, wire_port, clock)


def enable(bus: Bus, watch: HealthWatch) -> None:
    Servos(bus).enable(200)
    watch.switched(True)


def test_everything_is_known_after_the_first_reading(watch: HealthWatch, wire_port, clock) -> None:
    health = watch.newest
    assert health is not None
    assert health.voltage == pytest.approx(np.full(14, 7.0))
    assert health.temperature == pytest.approx(np.full(14, 30.0))
    assert not health.torque.any()
    assert (health.faults, health.watchdog_tripped, health.rebooted) == ({}, False, ())
    assert health.time_s == clock.now


def test_each_part_is_read_once_a_second_and_one_at_a_time(ticks: Ticks) -> None:
    ticks.run(1.0)
    ticks.reads()
    for _ in range(5):
        ticks.run(TICK_S)
        assert len(ticks.reads()) <= 1
    ticks.run(3.0)
    reads = ticks.reads()
    assert {part: reads.count(part) for part in reads} == {(64, 7): 3, (98, 1): 3, (144, 3): 3}


def test_values_are_those_of_their_joints(ticks: Ticks, wire_port) -> None:
    wire_port.servo(KNEE).poke(registers.PRESENT_INPUT_VOLTAGE, 68)
    wire_port.servo(ANKLE).poke(registers.PRESENT_TEMPERATURE, 61)
    wire_port.servo(10).poke(registers.TORQUE_ENABLE, 1)
    health = ticks.run(1.1)
    assert health.voltage[3] == pytest.approx(6.8)
    assert health.voltage[4] == pytest.approx(7.0)
    assert health.temperature[4] == 61.0
    assert health.torque.tolist() == [i == 9 for i in range(14)]


def test_time_tells_how_old_the_oldest_value_may_be(ticks: Ticks, clock) -> None:
    for _ in range(100):
        health = ticks.run(TICK_S)
        assert clock.now - health.time_s <= 1.1
    ticks.room_s = 0.0
    seen = ticks.run(5.0).time_s
    assert clock.now - seen > 5.0


def test_nothing_is_read_in_ticks_without_room(ticks: Ticks) -> None:
    """The smallest part takes 28 bytes out and 78 back: 1.06 ms, and 1 ms for a USB frame."""
    ticks.room_s = 2.0e-3
    ticks.run(3.0)
    assert ticks.reads() == []
    ticks.room_s = 3.1e-3  # the largest: 28 out, 162 back
    ticks.run(1.1)
    assert set(ticks.reads()) == {(64, 7), (98, 1), (144, 3)}


def test_new_alert_is_explained_in_its_own_tick_and_only_once(
    ticks: Ticks, wire_port, caplog: pytest.LogCaptureFixture
) -> None:
    ticks.run(0.1)
    ticks.reads()
    wire_port.servo(ANKLE).trip(0x24)
    health = ticks.run(TICK_S, alerts=(ANKLE,))
    assert health.faults == {"left_ankle": ("overload", "overheating")}
    (packet,) = wire_port.sent
    assert packet.parameters[4:] == bytes([ANKLE])
    ticks.reads()
    caplog.clear()
    ticks.run(10.0, alerts=(ANKLE,))
    assert caplog.records == []
    assert len(ticks.reads()) == pytest.approx(30, abs=1)  # the usual parts alone


def test_fault_is_logged_with_joint_and_causes(ticks: Ticks, wire_port, caplog) -> None:
    wire_port.servo(ANKLE).trip(0x24)
    wire_port.servo(KNEE).trip(0x08)
    ticks.run(3.0, alerts=(KNEE, ANKLE))
    assert [record.message for record in caplog.records] == [
        "left_knee (id 23) reports motor encoder",
        "left_ankle (id 24) reports overload + overheating and has switched its torque off",
    ]


def test_voltage_of_a_charged_pack_is_told_once_for_all_servos(ticks: Ticks, wire_port, caplog) -> None:
    for device in (KNEE, ANKLE):
        wire_port.servo(device).trip(0x01)
    health = ticks.run(3.0, alerts=(KNEE, ANKLE))
    assert health.faults == dict.fromkeys(("left_knee", "left_ankle"), ("input voltage",))
    wire_port.servo(ANKLE).trip(0x21)
    ticks.run(3.0, alerts=(KNEE, ANKLE))
    charged, overload = (record.message for record in caplog.records)
    assert charged.startswith("servos report input voltage, as on any charged pack")
    assert overload.startswith("left_ankle (id 24) reports overload + input voltage and has switched")


def test_voltage_is_the_same_array_until_it_is_measured_again(ticks: Ticks, wire_port) -> None:
    seen = [ticks.run(TICK_S).voltage for _ in range(250)]
    assert 4 <= len({id(voltage) for voltage in seen}) <= 6  # once a second, over five


def test_alert_that_finds_no_room_waits_for_a_tick_that_has_some(ticks: Ticks, wire_port) -> None:
    wire_port.servo(ANKLE).trip(0x04)
    ticks.room_s = 1.0e-3
    assert ticks.run(0.1, alerts=(ANKLE,)).faults == {}
    ticks.room_s = 1.5e-3  # one device: 15 bytes out and 19 back, and 1 ms for a USB frame
    assert ticks.run(TICK_S, alerts=(ANKLE,)).faults == {"left_ankle": ("overheating",)}


def test_alert_that_comes_again_is_read_again(ticks: Ticks, wire_port, caplog) -> None:
    servo = wire_port.servo(ANKLE)
    for bits, cause in ((0x04, "overheating"), (0x20, "overload")):
        servo.poke(registers.HARDWARE_ERROR, bits)
        assert ticks.run(TICK_S, alerts=(ANKLE,)).faults == {"left_ankle": (cause,)}
        servo.poke(registers.HARDWARE_ERROR, 0)
        assert ticks.run(1.2).faults == {}
    assert [record.message.split()[4] for record in caplog.records] == ["overheating", "overload"]


def test_fault_without_an_alert_is_found_within_a_second(ticks: Ticks, wire_port) -> None:
    wire_port.servo(ANKLE).trip(0x20)
    assert ticks.run(1.1).faults == {"left_ankle": ("overload",)}


def test_servo_that_restarted_by_itself_is_found_within_a_second(
    ticks: Ticks, watch: HealthWatch, wire_bus: Bus, wire_port
) -> None:
    enable(wire_bus, watch)
    assert ticks.run(2.0).rebooted == ()
    wire_port.servo(KNEE).reboot()
    assert ticks.run(1.1).rebooted == ("left_knee",)


def test_servo_that_tripped_has_not_restarted(
    ticks: Ticks, watch: HealthWatch, wire_bus: Bus, wire_port
) -> None:
    enable(wire_bus, watch)
    wire_port.servo(ANKLE).trip(0x20)
    health = ticks.run(2.0, alerts=(ANKLE,))
    assert health.faults == {"left_ankle": ("overload",)}
    assert not health.torque[4]
    assert health.rebooted == ()


def test_restarted_servo_whose_torque_is_on_again_has_lost_its_gains(
    ticks: Ticks, watch: HealthWatch, wire_bus: Bus, wire_port
) -> None:
    enable(wire_bus, watch)
    wire_port.servo(KNEE).reboot()
    wire_port.servo(KNEE).poke(registers.TORQUE_ENABLE, 1)
    assert ticks.run(1.1).rebooted == ("left_knee",)


def test_limp_servos_have_not_restarted(ticks: Ticks, watch: HealthWatch, wire_bus: Bus, wire_port) -> None:
    enable(wire_bus, watch)
    Servos(wire_bus).limp()
    watch.switched(False)
    wire_port.servo(KNEE).reboot()
    health = ticks.run(2.0)
    assert health.rebooted == ()
    assert not health.torque.any()


@pytest.mark.parametrize("before_s", [1.1, 1.4, 1.7])
def test_servos_that_stopped_in_a_pause_are_found_in_the_next_tick(
    ticks: Ticks, watch: HealthWatch, wire_bus: Bus, clock, before_s: float
) -> None:
    enable(wire_bus, watch)
    assert not ticks.run(before_s).watchdog_tripped
    clock.now += 0.21
    health = ticks.run(TICK_S)
    assert health.watchdog_tripped
    assert health.rebooted == ()


def test_answers_that_do_not_come_leave_the_old_values(ticks: Ticks, wire_port, watch: HealthWatch) -> None:
    before = watch.newest
    assert before is not None
    wire_port.wire.filter = lambda reply: None
    health = ticks.run(2.0)
    assert np.array_equal(health.voltage, before.voltage)
    assert health.time_s == before.time_s
    assert len(ticks.reads()) <= 7  # three a second, and none is repeated
