"""The usual course of a drive: limp, rise, stand and run, what is asked, and how the ticks go."""

from __future__ import annotations

import gc
from collections.abc import Callable
from math import cos, inf, nan, pi, sin
from typing import Any

import numpy as np
import pytest

import firmware_bridge.drive.loop
from firmware_bridge.commands.request import Event
from firmware_bridge.drive.modes import STIFF, Mode
from firmware_bridge.drive.poses import SEAT
from firmware_bridge.drive.realtime import quiet_collector
from hardware.errors import BundleError
from hardware.joints import STAND

RISE_WRITES = 100
"""Writes before the policy drives; the one with that number, from 0, is its first, the read to it has 102."""
ANKLE = 4


def ankle_target(write: int) -> float:
    """Left ankle's target of the stand skill: its clock runs at 2 Hz from the first tick of the policy on."""
    return STAND[ANKLE] + 0.8 * 0.5 * sin(-1.5237 + 2 * pi * 2.0 * 0.02 * (write - RISE_WRITES))


# The whole drive


def test_a_drive_rises_runs_for_the_time_asked_sits_down_and_ends_limp(drive: Any) -> None:
    summary = drive.run()
    assert drive.modes == [Mode.RISE, Mode.RUN, Mode.SIT, Mode.STOPPED]
    assert (summary.mode, summary.reason) == (Mode.STOPPED, "drove the time asked for")
    assert summary.run_s == pytest.approx(1.0)
    assert summary.tally.policy_ticks == 50
    assert drive.body.calls == ["enable", "limp"]
    assert (drive.body.torque, drive.body.gain) == (False, 200)
    assert drive.body.writes[-1] == pytest.approx(SEAT)
    assert summary.rate_hz == pytest.approx(50.0, abs=1e-3)
    assert (summary.ticks, summary.missed) == (len(drive.ticks), 0)


def test_another_gain_than_the_policys_may_be_asked_for(drive: Any) -> None:
    drive.run(p_gain=120)
    assert drive.body.gain == 120


def test_a_skill_the_bundle_lacks_is_refused_before_anything_is_read(drive: Any) -> None:
    with pytest.raises(BundleError, match="no skill 'swim'; choose one of"):
        drive.run(skill="swim")
    assert (drive.body.reads, drive.body.calls) == (0, [])


# Rise


def test_the_rise_starts_at_the_measured_pose_and_reaches_stand_without_a_jump(drive: Any) -> None:
    drive.run(seconds=0.1)
    rise = np.array(drive.body.writes[: RISE_WRITES + 1])
    assert rise[0] == pytest.approx(STAND + 0.1)
    assert np.delete(rise[-1], ANKLE) == pytest.approx(np.delete(STAND, ANKLE), abs=1e-9)
    assert np.abs(np.diff(rise[:-1], axis=0)).max() < 0.002


def test_the_rise_starts_where_the_joints_are_once_they_are_stiff(drive: Any) -> None:
    def moved() -> None:
        drive.body.position = STAND - 0.2  # by hand, while torque came on

    drive.at(2, moved)
    drive.run(seconds=0.1)
    assert drive.body.writes[0] == pytest.approx(STAND - 0.2)


def test_a_joint_found_out_of_range_is_brought_back_by_the_rise_without_a_jump(drive: Any) -> None:
    drive.body.position = STAND.copy()
    drive.body.position[1] = -0.6  # left hip roll reaches -22 degrees = -0.384 rad
    drive.run(seconds=0.1)
    roll = np.array(drive.body.writes[: RISE_WRITES + 1])[:, 1]
    assert roll[0] == pytest.approx(-0.6)
    assert np.abs(np.diff(roll)).max() < 0.01
    assert roll[-1] == pytest.approx(STAND[1])


def test_the_policys_first_observation_is_that_of_a_training_episodes_first_step(drive: Any) -> None:
    drive.run(seconds=0.1)
    first = drive.ticks[RISE_WRITES + 1]
    assert (first.mode, first.mode_s) == (Mode.RUN, 0.0)
    assert first.observation[38:41] == pytest.approx([sin(-1.5237), cos(-1.5237), 0.0], abs=1e-6)
    assert first.observation[41:].tolist() == [0.0] * 14
    assert drive.ticks[RISE_WRITES + 2].observation[40] == pytest.approx(0.05)


def test_targets_follow_the_policys_clock(drive: Any) -> None:
    drive.run()
    for write in range(RISE_WRITES, RISE_WRITES + 50):
        assert drive.body.writes[write][ANKLE] == pytest.approx(ankle_target(write), abs=1e-5)


# Start, stop and start again


@pytest.fixture
def by_hand(drive: Any) -> Any:
    """A drive whose source must give START, and that is stopped after 250 ticks."""
    drive.source.interactive = True
    drive.options = drive.options.__class__(skill="stand")
    drive.stop = lambda: "enough" if drive.body.reads >= 250 else None
    return drive


def test_without_start_nothing_ever_moves(by_hand: Any) -> None:
    summary = by_hand.run()
    assert by_hand.modes == [Mode.STOPPED]
    assert by_hand.body.writes == [] and "enable" not in by_hand.body.calls
    assert (summary.ticks, summary.run_s) == (250, 0.0)
    assert {tick.mode for tick in by_hand.ticks} <= {Mode.LIMP, Mode.STOPPED}
    assert by_hand.ticks[100].fresh  # it is watched all the while


def test_start_and_sit_may_follow_each_other(by_hand: Any) -> None:
    by_hand.source.events = {10: Event.START, 120: Event.SIT, 250: Event.START, 360: Event.QUIT}
    by_hand.stop = lambda: None
    summary = by_hand.run()
    once = [Mode.RISE, Mode.RUN, Mode.SIT]
    assert by_hand.modes == [*once, Mode.LIMP, *once, Mode.STOPPED]
    assert by_hand.body.calls == ["enable", "limp"] * 2
    assert summary.reason == "told to end"


def test_a_second_rise_starts_where_the_joints_are_then(by_hand: Any) -> None:
    by_hand.source.events = {10: Event.START, 115: Event.LIMP, 130: Event.START}
    by_hand.at(125, lambda: setattr(by_hand.body, "position", STAND + 0.7))
    by_hand.run()
    second = next(i for i, tick in enumerate(by_hand.ticks) if i > 130 and tick.targets is not None)
    assert by_hand.ticks[second].targets == pytest.approx(STAND + 0.7)
    assert by_hand.ticks[second + 100].observation[41:].tolist() == [0.0] * 14


def test_limp_is_obeyed_at_once_and_the_process_lives_on(by_hand: Any) -> None:
    by_hand.source.events = {10: Event.START, 120: Event.LIMP}
    by_hand.run()
    assert by_hand.modes == [Mode.RISE, Mode.RUN, Mode.LIMP, Mode.STOPPED]
    assert by_hand.ticks[120].mode is Mode.LIMP and by_hand.ticks[120].targets is None


def test_limp_switches_torque_off_again_when_the_duck_is_limp(by_hand: Any) -> None:
    by_hand.source.events = {10: Event.LIMP}
    by_hand.run()
    assert by_hand.modes == [Mode.LIMP, Mode.STOPPED]
    assert by_hand.body.calls == ["limp", "limp"]


def test_an_end_that_is_asked_for_in_the_tick_of_a_fall_is_not_forgotten(by_hand: Any) -> None:
    by_hand.at(131, lambda: setattr(by_hand.body, "gravity", np.array([1.0, 0.0, 0.0])))
    by_hand.source.events = {10: Event.START, 139: Event.QUIT}  # with the tenth read of leaning
    summary = by_hand.run()
    assert by_hand.modes[-2:] == [Mode.FALLEN, Mode.STOPPED]
    assert (by_hand.body.reads, summary.reason) == (141, "told to end")


@pytest.mark.parametrize("event", [Event.START, Event.SIT])
def test_orders_that_make_no_sense_change_nothing(by_hand: Any, event: Event) -> None:
    when = 120 if event is Event.START else 5
    by_hand.source.events = {10: Event.START, when: event}
    by_hand.run()
    assert by_hand.modes == [Mode.RISE, Mode.RUN, Mode.SIT, Mode.STOPPED]


def test_a_lying_duck_does_not_rise_and_says_so_until_it_is_held_upright(by_hand: Any) -> None:
    by_hand.body.gravity = np.array([0.9, 0.0, -0.43])  # 64 degrees
    by_hand.source.events = {10: Event.START, 20: Event.START}
    by_hand.at(15, lambda: setattr(by_hand.body, "gravity", np.array([0.0, 0.5, -0.87])))  # 30 degrees
    by_hand.run()
    assert by_hand.news == [
        "cannot start: the duck leans more than 60 degrees; hold it upright and start again"
    ]
    assert by_hand.ticks[19].mode is Mode.LIMP and by_hand.ticks[20].mode is Mode.RISE


def test_start_waits_for_a_sample(by_hand: Any) -> None:
    by_hand.body.failing = lambda read: 10 <= read <= 20
    by_hand.source.events = {10: Event.START}  # read 11
    by_hand.run()
    assert by_hand.ticks[19].mode is Mode.LIMP and by_hand.ticks[20].mode is Mode.RISE


def test_a_duck_that_cannot_be_read_does_not_rise_and_that_is_told_once(by_hand: Any) -> None:
    by_hand.body.failing = lambda read: 10 <= read <= 200
    by_hand.source.events = {100: Event.START}
    by_hand.run()
    assert by_hand.modes == [Mode.STOPPED]
    lost, refused, back = by_hand.news
    assert lost.startswith("no sample for 0.50 s, last because: ids 20 did not answer")
    assert refused.startswith("cannot start: no sample for")
    assert back == "the duck can be read again"


def test_a_drive_without_start_does_not_lift_a_lying_duck(drive: Any) -> None:
    drive.body.gravity = np.array([0.9, 0.0, -0.43])
    summary = drive.run()
    assert summary.mode is Mode.FAULT and "hold it upright" in summary.reason
    assert drive.body.writes == [] and "enable" not in drive.body.calls


# Stand and run


def test_who_steers_is_followed_and_who_falls_silent_is_not(drive: Any) -> None:
    drive.source.ask(vx=0.3)
    age = [0.0]

    def on_tick(tick: Any) -> None:
        age[0] = age[0] + 0.02 if drive.source.ticks > 142 else 0.0
        drive.source.request = drive.source.request._replace(
            age_s=age[0] if drive.source.ticks < 200 else 0.0
        )

    drive.on_tick = on_tick
    drive.run(skill="walk", seconds=2.5)
    assert drive.modes == [Mode.RISE, Mode.RUN, Mode.STAND, Mode.RUN, Mode.SIT, Mode.STOPPED]
    vx = [tick.command[0] for tick in drive.ticks]
    standing = [i for i, tick in enumerate(drive.ticks) if tick.mode is Mode.STAND]
    assert standing[0] == 167  # the last news came with tick 142, half a second before
    assert vx[166] == pytest.approx(0.3)
    assert vx[167] == pytest.approx(0.28)
    assert drive.ticks[167].limited_by == ("deadman", "command slew")
    assert drive.ticks[167].requested.tolist() == [0.3, 0.0, 0.0]
    assert vx[182] == pytest.approx(0.0)


def test_nobody_who_ever_steers_makes_a_duck_that_stands(drive: Any) -> None:
    drive.source.ask(vx=0.3, age_s=inf)
    drive.run(skill="walk")
    assert drive.modes[:2] == [Mode.RISE, Mode.STAND]
    assert max(tick.command[0] for tick in drive.ticks) == 0.0


def test_standing_is_the_skill_of_that_name(drive: Any) -> None:
    drive.source.ask(vx=0.3)
    drive.on_tick = lambda tick: drive.source.ask(vx=0.3, age_s=inf) if len(drive.ticks) == 130 else None
    drive.run(skill="walk")
    assert {tick.skill for tick in drive.ticks[102:131]} == {"walk"}
    assert drive.ticks[-110].skill == "stand"


def test_a_skill_is_changed_by_name_and_the_clock_runs_on(drive: Any) -> None:
    drive.source.ask(skill="walk")
    drive.on_tick = lambda tick: drive.source.ask(skill="stand") if len(drive.ticks) == 120 else None
    drive.run()
    names = [tick.skill for tick in drive.ticks[101:150]]
    assert names == ["walk"] * 19 + ["stand"] * 30
    ramp = [tick.observation[40] for tick in drive.ticks[101:150]]
    assert ramp == pytest.approx([min(1.0, 0.05 * i) for i in range(49)], abs=1e-6)


def test_an_unknown_skill_is_told_once_and_changes_nothing(drive: Any) -> None:
    drive.source.ask(skill="swim")
    drive.run()
    assert drive.news == ["the bundle has no skill 'swim'; it has ['stand', 'walk']"]
    assert "skill" in drive.ticks[120].limited_by
    assert drive.ticks[120].skill == "stand"


def test_the_head_follows_slowly_within_its_ends(drive: Any) -> None:
    drive.source.ask(head=np.array([0.0, 0.0, 5.0, 0.0]))
    summary = drive.run()
    yaw = np.array([write[7] for write in drive.body.writes[RISE_WRITES : RISE_WRITES + 50]])
    assert np.diff(yaw).max() == pytest.approx(0.04)
    assert yaw[-1] == pytest.approx(1.0)
    assert drive.ticks[140].head == pytest.approx([0.0, 0.0, 1.0, 0.0])
    assert summary.tally.limited["head box"] == 49
    assert drive.body.writes[-1] == pytest.approx(SEAT)  # looking ahead again


@pytest.mark.parametrize("value", [nan, inf])
def test_a_command_that_is_no_number_is_zero_and_named(drive: Any, value: float) -> None:
    drive.source.ask(vx=value, head=np.array([value, 0.0, 0.0, 0.0]))
    drive.run(skill="walk")
    assert drive.ticks[130].limited_by == ("non-finite", "non-finite")
    assert np.isfinite(drive.body.writes).all()
    assert not drive.ticks[130].command.any() and not drive.ticks[130].head.any()


# Ticks


def test_a_read_ends_before_policy_and_write_must_start(drive: Any) -> None:
    drive.run()
    ticks = [tick.time_s for tick in drive.ticks]
    left = np.array(drive.body.deadlines) - np.array(ticks)
    assert left == pytest.approx(np.full(len(left), 0.016), abs=1e-6)


def test_each_stage_of_a_tick_is_timed(drive: Any) -> None:
    def slow(method: Callable[..., Any], seconds: float) -> Callable[..., Any]:
        def slowed(*arguments: Any) -> Any:
            drive.time.now_s += seconds
            return method(*arguments)

        return slowed

    drive.body.read = slow(drive.body.read, 0.004)
    drive.body.write = slow(drive.body.write, 0.001)
    drive.source.latest = slow(drive.source.latest, 0.002)
    summary = drive.run()
    wanted = {"read": 0.004, "policy": 0.002, "write": 0.001, "idle": 0.013}
    assert drive.ticks[120].stages == pytest.approx(wanted, abs=1e-6)
    assert summary.stages["read"] == pytest.approx((0.004, 0.004), abs=1e-6)
    assert summary.stages["idle"].worst_s == pytest.approx(0.014, abs=1e-6)  # before the first write


def test_time_to_switch_torque_on_is_no_time_of_the_policy_and_ticks_missed_there_are_none_of_the_drive(
    drive: Any,
) -> None:
    enable = drive.body.enable

    def slow(p_gain: int) -> None:
        drive.time.now_s += 0.05
        enable(p_gain)

    drive.body.enable = slow
    summary = drive.run()
    assert summary.stages["policy"].worst_s < 0.001
    assert summary.stages["write"].worst_s == pytest.approx(0.05, abs=0.001)
    assert (summary.missed, summary.tally.missed_driving) == (2, 0)


def test_skipped_ticks_leave_the_gait_clock_in_real_time(drive: Any) -> None:
    drive.at(123, lambda: setattr(drive.time, "now_s", drive.time.now_s + 0.075))
    summary = drive.run()
    assert summary.missed == summary.tally.missed_driving == 3
    assert drive.body.writes[122][ANKLE] == pytest.approx(ankle_target(125), abs=1e-5)
    assert summary.run_s == pytest.approx(1.0)
    assert summary.tally.policy_ticks == 47


def test_the_collector_keeps_quiet_while_the_loop_runs_and_works_again_afterwards(
    drive: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(firmware_bridge.drive.loop, "quiet_collector", quiet_collector)
    assert gc.isenabled()
    inside = []
    drive.on_tick = lambda tick: inside.append(gc.isenabled())
    drive.run()
    assert not any(inside)
    assert gc.isenabled() and gc.get_freeze_count() == 0


def test_a_tick_tells_its_mode_and_why(drive: Any) -> None:
    drive.run()
    assert {tick.mode for tick in drive.ticks} == {*STIFF - {Mode.STAND}, Mode.STOPPED}
    running = drive.ticks[130]
    assert (running.mode, running.reason) == (Mode.RUN, "the policy does what is asked")
    assert running.mode_s == pytest.approx(0.58)
    assert running.rate_hz == pytest.approx(50.0)
