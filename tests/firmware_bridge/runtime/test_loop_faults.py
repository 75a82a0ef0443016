"""What goes wrong on the way: missed reads, falls, servos, policy and a loop that stands still."""

from __future__ import annotations

from collections.abc import Callable
from math import pi, sin
from typing import Any

import numpy as np
import pytest

from firmware_bridge.commands.request import Event
from firmware_bridge.drive.limits import Battery
from firmware_bridge.drive.modes import Mode
from firmware_bridge.robot.imu import ImuFrozenError
from hardware.errors import BusTimeoutError, DeviceError, PortError
from hardware.joints import STAND

RISE_WRITES = 100
FIRST_READ = 102
"""Number of the read, from 1, with which the policy drives first."""
ANKLE = 4


def ankle_target(write: int) -> float:
    """Left ankle's target of the stand skill: its clock runs at 2 Hz from the first tick of the policy on."""
    return STAND[ANKLE] + 0.8 * 0.5 * sin(-1.5237 + 2 * pi * 2.0 * 0.02 * (write - RISE_WRITES))


def missing(*writes: int) -> Callable[[int], bool]:
    """Let the reads fail that belong to these writes."""
    return lambda read: read - 2 in writes


# Missed reads


@pytest.mark.parametrize("missed", [[120], [120, 121, 122]])
def test_up_to_three_missed_reads_change_nothing_in_the_targets(drive: Any, missed: list[int]) -> None:
    drive.body.failing = missing(*missed)
    summary = drive.run()
    for write in range(RISE_WRITES, RISE_WRITES + 50):
        assert drive.body.writes[write][ANKLE] == pytest.approx(ankle_target(write), abs=1e-5)
    assert summary.tally.bus_errors == {"BusTimeoutError": len(missed)}
    assert (summary.mode, summary.tally.held_ticks) == (Mode.STOPPED, 0)


def test_from_the_fourth_missed_read_on_the_last_target_is_held_and_never_home(drive: Any) -> None:
    drive.body.failing = missing(*range(120, 128))
    summary = drive.run()
    held = ankle_target(122)
    assert [w[ANKLE] for w in drive.body.writes[122:128]] == pytest.approx([held] * 6, abs=1e-5)
    assert abs(held - STAND[ANKLE]) > 0.1
    assert (summary.tally.held_ticks, summary.tally.limited["held"]) == (5, 5)
    assert drive.body.writes[128][ANKLE] == pytest.approx(ankle_target(128), abs=1e-5)  # its clock went on


def test_the_policy_keeps_its_history_over_missed_reads(drive: Any) -> None:
    drive.body.failing = missing(120, 121)
    drive.run()
    before = (ankle_target(121) - STAND[ANKLE]) / 0.8
    assert drive.ticks[123].observation[45] == pytest.approx(before, abs=1e-5)


def test_half_a_second_without_a_sample_is_a_fault_that_names_the_cause(drive: Any) -> None:
    drive.body.failing = lambda read: read >= 122
    summary = drive.run(seconds=5.0)
    assert summary.mode is Mode.FAULT
    assert "no sample for 0.50 s" in summary.reason and "ids 20 did not answer" in summary.reason
    assert drive.body.reads == 121 + 25
    assert drive.body.calls == ["enable", "limp"]


def test_an_imu_that_froze_stops_the_policy_and_is_named(drive: Any) -> None:
    read = drive.body.read

    def frozen(deadline: float) -> Any:
        sample = read(deadline)
        if drive.body.reads >= 122:
            raise ImuFrozenError("the IMU sent the same sample 25 times in a row")
        return sample

    drive.body.read = frozen
    summary = drive.run(seconds=5.0)
    assert summary.mode is Mode.FAULT and "the same sample 25 times" in summary.reason
    assert summary.tally.policy_ticks == 121 - FIRST_READ + 1 + 3  # it coasts for three ticks


def test_before_the_first_sample_nothing_is_enabled(drive: Any) -> None:
    drive.body.failing = lambda read: read <= 5
    drive.run(seconds=0.1)
    assert drive.ticks[4].mode is Mode.LIMP and drive.ticks[5].mode is Mode.RISE
    assert drive.body.writes[0] == pytest.approx(STAND + 0.1)


def test_a_duck_that_is_never_seen_is_never_enabled(drive: Any) -> None:
    drive.body.failing = lambda read: True
    summary = drive.run()
    assert summary.mode is Mode.FAULT and "no sample for 0.50 s" in summary.reason
    assert drive.body.calls == ["limp"] and drive.body.writes == []


def test_a_rise_waits_while_the_duck_cannot_be_read(drive: Any) -> None:
    drive.body.failing = missing(*range(50, 60))
    drive.run(seconds=0.1)
    steps = np.abs(np.diff(np.array(drive.body.writes[:RISE_WRITES]), axis=0)).max(axis=1)
    assert steps[50:58].max() == 0.0
    assert steps.max() < 0.002


def test_a_failed_write_is_counted_and_the_drive_goes_on(drive: Any) -> None:
    write = drive.body.write

    def failing(targets: np.ndarray) -> None:
        write(targets)
        if len(drive.body.writes) == 110:
            raise PortError("no bytes taken")

    drive.body.write = failing
    summary = drive.run(seconds=0.5)
    assert (summary.mode, summary.tally.bus_errors) == (Mode.STOPPED, {"PortError": 1})


# Falls


def lean(drive: Any, reads: range) -> None:
    def on_read(read: int) -> None:
        drive.body.gravity = np.array([1.0, 0.0, 0.0] if read in reads else [0.0, 0.0, -1.0])

    drive.body.on_read = on_read


def test_a_duck_on_its_side_for_200_ms_goes_limp(drive: Any) -> None:
    lean(drive, range(121, 1000))
    summary = drive.run(seconds=5.0)
    assert summary.mode is Mode.FALLEN
    assert drive.body.reads == 130  # ten reads of leaning
    assert not drive.body.torque


def test_a_lean_shorter_than_200_ms_is_no_fall(drive: Any) -> None:
    lean(drive, range(121, 130))
    assert drive.run().mode is Mode.STOPPED


def test_time_without_samples_counts_as_time_on_the_side(drive: Any) -> None:
    lean(drive, range(121, 1000))
    drive.body.failing = lambda read: 122 <= read <= 128
    assert drive.run(seconds=5.0).mode is Mode.FALLEN
    assert drive.body.reads == 130


def test_a_fall_under_way_is_caught_after_three_samples(drive: Any) -> None:
    def tip() -> None:
        drive.body.gravity = np.array([0.5, 0.0, -0.866])  # 30 degrees nose down
        drive.body.angular_velocity = np.array([0.0, 3.0, 0.0])

    drive.at(121, tip)
    summary = drive.run(seconds=5.0)
    assert summary.mode is Mode.FALLEN and "tipping over" in summary.reason
    assert drive.body.reads == 123
    assert drive.body.calls == ["enable", "limp"]


def test_two_samples_of_tipping_are_no_fall_even_with_a_gap_before_them(drive: Any) -> None:
    def tips(yes: bool) -> Callable[[], None]:
        def change() -> None:
            drive.body.gravity = np.array([0.5, 0.0, -0.866] if yes else [0.0, 0.0, -1.0])
            drive.body.angular_velocity = np.array([0.0, 3.0 if yes else 0.0, 0.0])

        return change

    drive.body.failing = lambda read: read in (119, 120)
    drive.at(121, tips(True))
    drive.at(123, tips(False))
    assert drive.run().mode is Mode.STOPPED


def test_a_fall_while_rising_goes_limp_too(drive: Any) -> None:
    lean(drive, range(2, 1000))
    assert drive.run().mode is Mode.FALLEN
    assert drive.modes == [Mode.RISE, Mode.FALLEN]


# The policy


def test_a_non_finite_action_is_never_written(drive: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drive.bundle, "act", lambda observation, skill: np.full(14, np.nan, np.float32))
    summary = drive.run()
    assert summary.mode is Mode.FAULT and "not finite" in summary.reason
    assert len(drive.body.writes) == RISE_WRITES and np.isfinite(drive.body.writes).all()
    assert drive.modes[-2:] == [Mode.RUN, Mode.FAULT]  # nobody could balance it on the way down
    assert not drive.body.torque


def test_a_jump_of_the_policy_is_slowed_and_counted(drive: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    action = np.zeros(14, np.float32)

    def act(observation: np.ndarray, skill: object) -> np.ndarray:
        action[7] = -action[7] or 1.0  # from one end to the other: 1.6 rad
        return action.copy()

    monkeypatch.setattr(drive.bundle, "act", act)
    drive.run(seconds=0.1)
    assert [w[7] for w in drive.body.writes[RISE_WRITES:][:5]] == pytest.approx([0.8, -0.4, 0.8, -0.4, 0.8])
    assert drive.ticks[RISE_WRITES + 2].limited_by == ("target rate",)
    assert drive.ticks[RISE_WRITES + 3].limited_by == ()


# Servos


def set_health(drive: Any, read: int, **changes: Any) -> None:
    drive.at(read, lambda: setattr(drive.body, "health", drive.body.make_health(**changes)))


@pytest.fixture
def measured(drive: Any, make_health: Callable[..., Any]) -> Any:
    """A drive of five seconds on a body with servos that report their health."""
    drive.body.make_health = make_health
    drive.body.health = make_health()
    drive.options = drive.options.__class__(skill="stand", seconds=5.0)
    return drive


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"rebooted": ("left_knee",)}, "left_knee has restarted by itself"),
        ({"faults": {"left_knee": ("overload",)}}, "left_knee has tripped on overload"),
        ({"watchdog_tripped": True}, "the servos' watchdog has stopped them"),
    ],
)
@pytest.mark.parametrize("read", [50, 120])
def test_a_servo_that_lost_its_torque_makes_all_limp(
    measured: Any, changes: dict[str, Any], reason: str, read: int
) -> None:
    set_health(measured, read, **changes)
    summary = measured.run()
    assert (summary.mode, summary.reason) == (Mode.FAULT, reason)
    assert measured.body.reads == read
    assert not measured.body.torque


def test_high_input_voltage_alone_stops_nobody(measured: Any) -> None:
    set_health(measured, 120, faults={"left_knee": ("input voltage",)})
    assert measured.run(seconds=1.0).mode is Mode.STOPPED


def test_a_tripped_servo_must_be_rebooted_before_the_duck_rises(measured: Any) -> None:
    measured.body.health = measured.body.make_health(faults={"left_knee": ("overheating",)})
    summary = measured.run()
    assert summary.mode is Mode.FAULT
    assert "left_knee has tripped on overheating" in summary.reason and "reboot it" in summary.reason
    assert "enable" not in measured.body.calls


def hot_at(joint: int, celsius: float) -> np.ndarray:
    return np.where(np.arange(14) == joint, celsius, 40.0)


def test_heat_is_told_once_and_then_makes_the_duck_sit(measured: Any) -> None:
    for read, celsius in ((110, 60.0), (160, 61.0), (210, 65.0)):
        set_health(measured, read, temperature=hot_at(3, celsius))
    summary = measured.run()
    assert measured.news == ["left_knee 60 deg C: hot; at 65 deg C the duck sits down"]
    assert measured.modes == [Mode.RISE, Mode.RUN, Mode.SIT, Mode.FAULT]
    assert summary.reason == "too hot: left_knee 65 deg C"
    assert measured.ticks[209].mode is Mode.SIT


def test_a_hot_duck_does_not_rise(measured: Any) -> None:
    measured.body.health = measured.body.make_health(temperature=hot_at(3, 66.0))
    assert "too hot: left_knee 66 deg C; let it cool" in measured.run().reason
    assert "enable" not in measured.body.calls


def test_a_current_that_no_gait_takes_for_a_second_makes_the_duck_sit(measured: Any) -> None:
    measured.at(121, lambda: measured.body.current.__setitem__(3, -1.2))
    summary = measured.run()
    assert summary.mode is Mode.FAULT
    assert summary.reason == "left_knee took more than 1 A for 1 s; is it blocked?"
    assert [tick.mode for tick in measured.ticks[167:170]] == [Mode.RUN, Mode.RUN, Mode.SIT]


def test_a_current_that_a_gait_takes_is_let_through(measured: Any) -> None:
    for read in range(110, 160, 10):  # the shipped walker: 2.5 A, at most 0.16 s above 1 A
        measured.at(read, lambda: measured.body.current.__setitem__(3, 2.5))
        measured.at(read + 8, lambda: measured.body.current.__setitem__(3, 0.2))
    assert measured.run(seconds=1.0).mode is Mode.STOPPED


@pytest.mark.parametrize(("pack", "end"), [(True, Mode.FAULT), (False, Mode.STOPPED)])
def test_an_empty_pack_makes_the_duck_sit_and_a_regulated_rail_never_does(
    measured: Any, pack: bool, end: Mode
) -> None:
    for i in range(60):  # once a second on a duck; here at every second tick
        set_health(measured, 110 + 2 * i, voltage=np.full(14, 6.0))
    summary = measured.run(battery=Battery(rail_is_pack=pack))
    assert summary.mode is end
    assert ("the battery is empty: 6.6 V" in summary.reason) is pack
    assert Mode.SIT in measured.modes


def test_an_empty_duck_does_not_rise(measured: Any) -> None:
    measured.body.health = measured.body.make_health(voltage=np.full(14, 6.4))
    summary = measured.run(battery=Battery(rail_is_pack=True))
    assert "the battery is empty: 6.4 V; charge it" in summary.reason
    assert "enable" not in measured.body.calls


def test_a_servos_alert_is_kept_in_the_summary(drive: Any) -> None:
    drive.at(130, lambda: setattr(drive.body, "alerts", ("left_knee",)))
    drive.at(131, lambda: setattr(drive.body, "alerts", ()))
    assert drive.run().tally.alerts == {"left_knee"}


def test_servos_that_cannot_be_enabled_are_made_limp(drive: Any) -> None:
    def enable(p_gain: int) -> None:
        drive.body.torque = True
        raise DeviceError("left_knee (id 23) did not take torque_enable = 1")

    drive.body.enable = enable
    summary = drive.run()
    assert summary.mode is Mode.FAULT and "left_knee" in summary.reason
    assert drive.body.writes == [] and not drive.body.torque


# Time


@pytest.mark.parametrize(("stall_s", "end"), [(0.15, Mode.STOPPED), (0.25, Mode.FAULT)])
@pytest.mark.parametrize("where", ["read", "write"])
def test_a_loop_that_stood_still_for_longer_than_the_servos_wait_ends(
    drive: Any, where: str, stall_s: float, end: Mode
) -> None:
    method = getattr(drive.body, where)
    calls = []

    def slow(argument: Any) -> Any:
        calls.append(1)
        drive.time.now_s += stall_s if len(calls) == 120 else 0.0
        return method(argument)

    setattr(drive.body, where, slow)
    summary = drive.run()
    assert summary.mode is end
    assert ("the loop stood still for 0.2" in summary.reason) is (end is Mode.FAULT)
    assert not drive.body.torque


def test_the_time_that_switching_torque_on_takes_is_no_standstill(drive: Any) -> None:
    enable = drive.body.enable

    def slow(p_gain: int) -> None:
        enable(p_gain)
        drive.time.now_s += 0.5

    drive.body.enable = slow
    assert drive.run().mode is Mode.STOPPED


def test_a_limp_duck_may_be_left_alone_for_any_time(drive: Any) -> None:
    drive.source.interactive = True
    drive.stop = lambda: "enough" if drive.body.reads >= 50 else None
    drive.at(20, lambda: setattr(drive.time, "now_s", drive.time.now_s + 60.0))
    assert drive.run().mode is Mode.STOPPED


def test_a_fallen_duck_can_start_again_by_hand(drive: Any) -> None:
    drive.source.interactive = True
    drive.source.events = {0: Event.START, 160: Event.START}
    lean(drive, range(121, 150))
    drive.stop = lambda: "enough" if drive.body.reads >= 170 else None
    drive.run(seconds=None)
    assert drive.modes[:4] == [Mode.RISE, Mode.RUN, Mode.FALLEN, Mode.RISE]
    assert drive.body.calls[:3] == ["enable", "limp", "enable"]


def test_torque_that_cannot_be_switched_off_is_a_fault_that_says_what_to_do(drive: Any) -> None:
    tries = []

    def limp() -> None:
        tries.append(1)
        raise BusTimeoutError("ids 23 did not answer")

    drive.body.limp = limp
    summary = drive.run(seconds=0.1)
    assert summary.mode is Mode.FAULT
    assert "drove the time asked for; torque may be on" in summary.reason and "ids 23" in summary.reason
    assert "switch the servos' power off" in summary.reason
    assert len(tries) == 2


def test_torque_that_is_off_at_the_second_try_is_off(drive: Any) -> None:
    limp, tries = drive.body.limp, []

    def second() -> None:
        tries.append(1)
        if len(tries) == 1:
            raise BusTimeoutError("ids 23 did not answer")
        limp()

    drive.body.limp = second
    assert drive.run(seconds=0.1).mode is Mode.STOPPED
    assert not drive.body.torque
