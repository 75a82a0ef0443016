from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import cos, pi, sin
from typing import Any

import numpy as np
import pytest

from firmware_bridge.commands import Command, CommandSource, FixedCommand
from firmware_bridge.loop import Hooks, run
from firmware_bridge.modes import Mode
from firmware_bridge.skills import Bundle
from firmware_bridge.summary import Summary, Tick
from hardware.errors import BusTimeoutError, DeviceError, PortError
from hardware.joints import STAND

RISE_TICKS = 100
"""Ticks before the policy drives; the tick of that number is its first."""
ANKLE = 4


@dataclass
class Drive:
    """Drives the test bundle on a fake body in fake time, and keeps what was seen."""

    body: Any
    bundle: Bundle
    time: Any
    skill: str = "stand"
    commands: CommandSource = field(default_factory=lambda: FixedCommand([0.0, 0.0, 0.0]))
    stop: Callable[[], str | None] = lambda: None
    ticks: list[Tick] = field(default_factory=list)
    modes: list[Mode] = field(default_factory=list)

    def run(self, seconds: float | None = 1.0) -> Summary:
        hooks = Hooks(
            stop=self.stop,
            on_mode=lambda mode, reason: self.modes.append(mode),
            on_tick=self.ticks.append,
            ticker=self.time.ticker(),
        )
        return run(self.body, self.bundle, self.bundle.skill(self.skill), self.commands, seconds, hooks)


@pytest.fixture
def drive(body: Any, bundle: Bundle, fake_time: Any) -> Drive:
    return Drive(body, bundle, fake_time)


def ankle_target(tick: int) -> float:
    """Left ankle's target of the stand skill: its clock runs at 2 Hz from the first tick of the policy on."""
    return STAND[ANKLE] + 0.8 * 0.5 * sin(-1.5237 + 2 * pi * 2.0 * 0.02 * (tick - RISE_TICKS))


def test_a_drive_rises_runs_for_the_time_asked_and_ends_limp(drive: Drive) -> None:
    summary = drive.run(1.0)
    assert drive.modes == [Mode.RISE, Mode.RUN, Mode.STOPPED]
    assert (summary.mode, summary.run_s, summary.tally.policy_ticks) == (Mode.STOPPED, 1.0, 50)
    assert drive.body.calls == ["enable", "limp"]
    assert (drive.body.torque, drive.body.gain) == (False, 200)
    assert summary.rate_hz == pytest.approx(50.0, abs=1e-3)
    assert (summary.ticks, summary.missed) == (151, 0)


def test_the_rise_starts_at_the_measured_pose_and_reaches_stand_without_a_jump(drive: Drive) -> None:
    drive.run(0.1)
    rise = np.array(drive.body.writes[: RISE_TICKS + 1])
    assert rise[0] == pytest.approx(STAND + 0.1)
    assert np.delete(rise[-1], ANKLE) == pytest.approx(np.delete(STAND, ANKLE), abs=1e-9)
    assert np.abs(np.diff(rise[:-1], axis=0)).max() < 0.002


def test_a_joint_found_out_of_range_is_brought_back_by_the_rise_without_a_jump(drive: Drive) -> None:
    drive.body.position = STAND.copy()
    drive.body.position[1] = -0.6  # left hip roll reaches -22 degrees = -0.384 rad
    drive.run(0.1)
    roll = np.array(drive.body.writes)[:, 1]
    assert roll[0] == pytest.approx(-0.6)
    assert np.abs(np.diff(roll)).max() < 0.01
    assert roll[RISE_TICKS] == pytest.approx(STAND[1])


def test_the_policys_first_observation_is_that_of_a_training_episodes_first_step(drive: Drive) -> None:
    drive.run(0.1)
    first = drive.ticks[RISE_TICKS]
    assert (first.mode, first.mode_s) == (Mode.RUN, 0.0)
    assert first.observation[38:41] == pytest.approx([sin(-1.5237), cos(-1.5237), 0.0], abs=1e-6)
    assert first.observation[41:].tolist() == [0.0] * 14
    assert drive.ticks[RISE_TICKS + 1].observation[40] == pytest.approx(0.05)


def test_targets_follow_the_policys_clock(drive: Drive) -> None:
    drive.run(1.0)
    for tick in range(RISE_TICKS, RISE_TICKS + 50):
        assert drive.body.writes[tick][ANKLE] == pytest.approx(ankle_target(tick), abs=1e-5)


@pytest.mark.parametrize("missed", [{120}, {120, 121, 122}])
def test_up_to_three_missed_reads_change_nothing_in_the_targets(drive: Drive, missed: set[int]) -> None:
    drive.body.failing = lambda read: read - 1 in missed
    summary = drive.run(1.0)
    for tick in range(RISE_TICKS, RISE_TICKS + 50):
        assert drive.body.writes[tick][ANKLE] == pytest.approx(ankle_target(tick), abs=1e-5)
    assert summary.tally.bus_errors == {"BusTimeoutError": len(missed)}
    assert (summary.mode, summary.tally.held_ticks) == (Mode.STOPPED, 0)


def test_from_the_fourth_missed_read_on_the_last_target_is_held_and_never_home(drive: Drive) -> None:
    drive.body.failing = lambda read: 120 <= read - 1 <= 127
    summary = drive.run(1.0)
    held = ankle_target(122)
    assert [w[ANKLE] for w in drive.body.writes[122:128]] == pytest.approx([held] * 6, abs=1e-5)
    assert abs(held - STAND[ANKLE]) > 0.1
    assert summary.tally.held_ticks == 5
    assert drive.body.writes[128][ANKLE] == pytest.approx(ankle_target(128), abs=1e-5)  # its clock went on


def test_the_policy_keeps_its_history_over_missed_reads(drive: Drive) -> None:
    drive.body.failing = lambda read: read - 1 in (120, 121)
    drive.run(1.0)
    before = (ankle_target(121) - STAND[ANKLE]) / 0.8
    assert drive.ticks[122].observation[45] == pytest.approx(before, abs=1e-5)


def test_half_a_second_without_a_sample_is_a_fault_that_names_the_cause(drive: Drive) -> None:
    drive.body.failing = lambda read: read - 1 >= 120
    summary = drive.run(5.0)
    assert summary.mode is Mode.FAULT
    assert "no sample for 0.50 s" in summary.reason and "ids 20 did not answer" in summary.reason
    assert (len(drive.body.writes), drive.body.calls) == (144, ["enable", "limp"])


def test_before_the_first_sample_nothing_is_written(drive: Drive) -> None:
    drive.body.failing = lambda read: read <= 5
    drive.run(0.1)
    assert drive.body.writes[0] == pytest.approx(STAND + 0.1)
    assert len(drive.body.writes) == RISE_TICKS + 5


def test_a_rise_waits_while_the_duck_cannot_be_read(drive: Drive) -> None:
    drive.body.failing = lambda read: 51 <= read <= 60
    drive.run(0.1)
    steps = np.abs(np.diff(np.array(drive.body.writes[:RISE_TICKS]), axis=0)).max(axis=1)
    assert steps[53:59].max() == 0.0
    assert steps.max() < 0.002


def test_a_failed_write_is_counted_and_the_drive_goes_on(drive: Drive) -> None:
    write = drive.body.write

    def failing(targets: np.ndarray) -> None:
        write(targets)
        if len(drive.body.writes) == 110:
            raise PortError("no bytes taken")

    drive.body.write = failing
    summary = drive.run(0.5)
    assert (summary.mode, summary.tally.bus_errors) == (Mode.STOPPED, {"PortError": 1})


def lean(drive: Drive, reads: range) -> None:
    def on_read(read: int) -> None:
        drive.body.gravity = np.array([1.0, 0.0, 0.0] if read in reads else [0.0, 0.0, -1.0])

    drive.body.on_read = on_read


def test_a_duck_on_its_side_for_200_ms_goes_limp(drive: Drive) -> None:
    lean(drive, range(121, 1000))
    summary = drive.run(5.0)
    assert summary.mode is Mode.FALLEN
    assert drive.body.reads == 130  # ten reads of leaning
    assert not drive.body.torque


def test_a_lean_shorter_than_200_ms_is_no_fall(drive: Drive) -> None:
    lean(drive, range(121, 130))
    assert drive.run(1.0).mode is Mode.STOPPED


def test_a_fall_while_rising_goes_limp_too(drive: Drive) -> None:
    lean(drive, range(1, 1000))
    assert drive.run(1.0).mode is Mode.FALLEN
    assert drive.modes == [Mode.RISE, Mode.FALLEN]


def test_a_non_finite_action_is_never_written(drive: Drive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drive.bundle, "act", lambda observation, skill: np.full(14, np.nan, np.float32))
    summary = drive.run(1.0)
    assert summary.mode is Mode.FAULT and "not finite" in summary.reason
    assert len(drive.body.writes) == RISE_TICKS and np.isfinite(drive.body.writes).all()
    assert not drive.body.torque


def test_a_jump_of_the_policy_is_slowed_and_counted(drive: Drive, monkeypatch: pytest.MonkeyPatch) -> None:
    action = np.zeros(14, np.float32)

    def act(observation: np.ndarray, skill: object) -> np.ndarray:
        action[7] = -action[7] or 1.0  # from one end to the other: 1.6 rad
        return action.copy()

    monkeypatch.setattr(drive.bundle, "act", act)
    summary = drive.run(0.1)
    assert [w[7] for w in drive.body.writes[RISE_TICKS:]] == pytest.approx([0.8, -0.4, 0.8, -0.4, 0.8])
    assert summary.tally.slewed == 2


def test_an_error_in_the_policy_leaves_the_duck_limp_and_is_not_hidden(
    drive: Drive, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def act(observation: np.ndarray, skill: object) -> np.ndarray:
        calls.append(1)
        if len(calls) == 50:
            raise ZeroDivisionError("in the policy")
        return np.zeros(14, np.float32)

    monkeypatch.setattr(drive.bundle, "act", act)
    with pytest.raises(ZeroDivisionError):
        drive.run(5.0)
    assert drive.body.calls == ["enable", "limp"] and not drive.body.torque
    assert drive.modes[-1] is Mode.FAULT


def test_an_interrupt_between_two_lines_leaves_the_duck_limp(drive: Drive) -> None:
    def on_read(read: int) -> None:
        if read == 105:
            raise KeyboardInterrupt

    drive.body.on_read = on_read
    with pytest.raises(KeyboardInterrupt):
        drive.run(5.0)
    assert not drive.body.torque


def test_a_request_to_stop_is_obeyed_at_the_next_tick(drive: Drive) -> None:
    drive.stop = lambda: "SIGTERM received" if drive.body.reads >= 110 else None
    summary = drive.run(None)
    assert (summary.mode, summary.reason) == (Mode.STOPPED, "SIGTERM received")
    assert drive.body.reads == 110 and not drive.body.torque


def test_a_request_to_stop_before_the_start_never_enables_a_servo(drive: Drive) -> None:
    drive.stop = lambda: "SIGINT received"
    assert drive.run(1.0).mode is Mode.STOPPED
    assert "enable" not in drive.body.calls and drive.body.writes == []


def test_servos_that_cannot_be_enabled_are_made_limp(drive: Drive, monkeypatch: pytest.MonkeyPatch) -> None:
    def enable(p_gain: int) -> None:
        drive.body.torque = True
        raise DeviceError("left_knee (id 23) did not take torque_enable = 1")

    monkeypatch.setattr(drive.body, "enable", enable)
    summary = drive.run(1.0)
    assert summary.mode is Mode.FAULT and "left_knee" in summary.reason
    assert drive.body.writes == [] and not drive.body.torque


def test_torque_that_cannot_be_switched_off_is_a_fault_that_says_what_to_do(
    drive: Drive, monkeypatch: pytest.MonkeyPatch
) -> None:
    def limp() -> None:
        raise BusTimeoutError("ids 23 did not answer")

    monkeypatch.setattr(drive.body, "limp", limp)
    summary = drive.run(0.1)
    assert summary.mode is Mode.FAULT
    assert "drove the time asked for; torque may be on" in summary.reason and "ids 23" in summary.reason
    assert "switch the servos' power off" in summary.reason


def test_skipped_ticks_leave_the_gait_clock_in_real_time(drive: Drive) -> None:
    def on_read(read: int) -> None:
        drive.time.now_s += 0.075 if read == 121 else 0.0  # the next deadline ahead is that of tick 124

    drive.body.on_read = on_read
    summary = drive.run(1.0)
    assert summary.missed == 3
    assert drive.body.writes[121][ANKLE] == pytest.approx(ankle_target(124), abs=1e-5)
    assert (summary.run_s, summary.tally.policy_ticks) == (1.0, 47)


def test_a_loop_that_stood_still_for_half_a_second_ends(drive: Drive) -> None:
    def on_read(read: int) -> None:
        drive.time.now_s += 0.6 if read == 121 else 0.0

    drive.body.on_read = on_read
    summary = drive.run(5.0)
    assert summary.mode is Mode.FAULT and "the loop stood still for 0.6" in summary.reason
    assert not drive.body.torque


class SilentAfter:
    """A sender of vx = 0.3 that falls silent after the policy's tick of that number."""

    def __init__(self, tick: int) -> None:
        self.refused, self._last, self._tick = 2, tick, 0

    def latest(self) -> Command:
        self._tick += 1
        return Command(np.array([0.3, 0.0, 0.0]), max(0, self._tick - self._last) * 0.02)


def test_a_lost_sender_is_followed_by_zero_after_half_a_second_while_the_duck_stays_up(drive: Drive) -> None:
    drive.skill, drive.commands = "walk", SilentAfter(40)
    summary = drive.run(2.0)
    vx = [tick.command[0] for tick in drive.ticks[RISE_TICKS:]]
    assert vx[40] == vx[64] == pytest.approx(0.3)  # the last line was at 0.8 s
    assert vx[65] == pytest.approx(0.28)  # 0.5 s later
    assert vx[80] == pytest.approx(0.0)
    assert summary.mode is Mode.STOPPED
    assert summary.commands_refused == 2


def test_a_servos_alert_is_kept_in_the_summary(drive: Drive) -> None:
    def on_read(read: int) -> None:
        drive.body.alerts = ("left_knee",) if read == 130 else ()

    drive.body.on_read = on_read
    assert drive.run(1.0).tally.alerts == {"left_knee"}
