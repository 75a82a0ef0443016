"""Every ending takes the same way: to a halt, down to the seat, torque off, within three seconds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from firmware_bridge.commands.request import Event
from firmware_bridge.drive.modes import Mode
from firmware_bridge.drive.poses import SEAT
from hardware.errors import BusTimeoutError

SIT_TICKS = 125
"""0.5 s to a halt, 1.2 s down, 0.4 s on the seat."""
END = 151
"""Number of the read, from 1, before which the ending comes; the policy has driven for a second."""


def stop(drive: Any) -> None:
    drive.stop = lambda: "SIGTERM received" if drive.body.reads >= END else None


def quit_event(drive: Any) -> None:
    drive.source.events = {END - 1: Event.QUIT}


def run_out(drive: Any) -> None:
    drive.options = drive.options.__class__(skill="walk", seconds=0.98)


def heat(drive: Any) -> None:
    health = drive.make_health(temperature=np.full(14, 66.0))
    drive.at(END, lambda: setattr(drive.body, "health", health))


@pytest.fixture
def walking(drive: Any, make_health: Callable[..., Any]) -> Any:
    """A drive at 0.3 m/s with no end of its own."""
    drive.make_health = make_health
    drive.options = drive.options.__class__(skill="walk")
    drive.source.ask(vx=0.3)
    return drive


@pytest.mark.parametrize("ending", [stop, quit_event, run_out, heat])
def test_a_walking_duck_halts_sits_down_and_goes_limp(walking: Any, ending: Callable[[Any], None]) -> None:
    ending(walking)
    walking.run()
    assert walking.modes[:3] == [Mode.RISE, Mode.RUN, Mode.SIT]
    assert walking.body.reads == END + SIT_TICKS
    first = END - 1
    vx = [tick.command[0] for tick in walking.ticks[first:]]
    assert vx[0] == pytest.approx(0.3)
    assert vx[1] == pytest.approx(0.28)
    assert vx[25] == 0.0
    seated = np.array(walking.body.writes)[-20:]
    assert seated == pytest.approx(np.tile(SEAT, (20, 1)))
    assert walking.body.calls == ["enable", "limp"]


def test_the_policy_balances_the_duck_on_the_way_down(walking: Any) -> None:
    stop(walking)
    walking.run()
    actions = np.array([tick.observation[45] for tick in walking.ticks[END : END + 80]])
    assert np.abs(np.diff(actions)).min() > 0.0  # its clock goes on, and so does its ankle


def test_the_way_down_has_no_jump(walking: Any) -> None:
    stop(walking)
    walking.run(skill="stand")
    writes = np.array(walking.body.writes)
    usual = np.abs(np.diff(writes[101:148], axis=0)).max()
    down = np.abs(np.diff(writes[148:], axis=0)).max()
    assert down < usual + 0.04  # the seat's own way adds at most 1.5 x 1.57 rad / 1.2 s


def test_an_end_while_rising_goes_down_from_there(drive: Any) -> None:
    drive.stop = lambda: "SIGINT received" if drive.body.reads >= 60 else None
    summary = drive.run()
    assert drive.modes == [Mode.RISE, Mode.SIT, Mode.STOPPED]
    assert drive.body.reads == 60 + 100  # no halt is needed
    assert np.abs(np.diff(np.array(drive.body.writes), axis=0)).max() < 0.05
    assert drive.body.writes[-1] == pytest.approx(SEAT)
    assert summary.reason == "SIGINT received"


def test_a_second_ctrl_c_skips_the_sitting(walking: Any) -> None:
    stop(walking)
    walking.hurry = lambda: walking.body.reads >= END + 10
    summary = walking.run()
    assert walking.body.reads == END + 10
    assert summary.mode is Mode.STOPPED and "limp at once, as asked" in summary.reason
    assert not walking.body.torque


def test_limp_skips_the_sitting_too(walking: Any) -> None:
    walking.source.interactive = True
    walking.source.events = {0: Event.START, 150: Event.SIT, 160: Event.LIMP}
    walking.stop = lambda: "enough" if walking.body.reads >= 170 else None
    walking.run()
    assert walking.modes == [Mode.RISE, Mode.RUN, Mode.SIT, Mode.LIMP, Mode.STOPPED]
    assert walking.ticks[160].mode is Mode.LIMP


def test_an_end_during_a_seated_stop_ends_the_process_when_the_duck_sits(walking: Any) -> None:
    walking.source.interactive = True
    walking.source.events = {0: Event.START, 150: Event.SIT, 160: Event.QUIT}
    summary = walking.run()
    assert walking.modes[-2:] == [Mode.SIT, Mode.STOPPED]
    assert (walking.body.reads, summary.reason) == (151 + SIT_TICKS, "told to end")


def test_an_end_before_the_start_never_enables_a_servo(drive: Any) -> None:
    drive.stop = lambda: "SIGINT received"
    assert drive.run().mode is Mode.STOPPED
    assert drive.body.calls == ["limp"] and drive.body.writes == []


@pytest.mark.parametrize(
    ("gravity", "why"),
    [([0.5, 0.0, -0.866], "it is not upright"), ([1.0, 0.0, 0.0], "it is not upright")],
)
def test_who_is_not_upright_goes_limp_at_once(walking: Any, gravity: list[float], why: str) -> None:
    stop(walking)
    walking.at(END, lambda: setattr(walking.body, "gravity", np.array(gravity)))
    summary = walking.run()
    assert walking.modes == [Mode.RISE, Mode.RUN, Mode.STOPPED]
    assert summary.reason == f"SIGTERM received; limp at once, since {why}"
    assert walking.body.reads == END and not walking.body.torque


def test_who_cannot_be_read_goes_limp_at_once(walking: Any) -> None:
    stop(walking)
    walking.body.failing = lambda read: read >= END - 3
    summary = walking.run()
    assert (summary.mode, walking.body.reads) == (Mode.STOPPED, END)
    assert "since it cannot be read" in summary.reason


def test_a_bus_lost_on_the_way_down_ends_it_there(walking: Any) -> None:
    stop(walking)
    walking.body.failing = lambda read: read >= END + 30
    summary = walking.run()
    assert (summary.mode, walking.body.reads) == (Mode.STOPPED, END + 33)
    assert "limp on the way down" in summary.reason
    assert not walking.body.torque


def test_a_fall_on_the_way_down_ends_it_there(walking: Any) -> None:
    stop(walking)
    walking.at(END + 30, lambda: setattr(walking.body, "gravity", np.array([1.0, 0.0, 0.0])))
    summary = walking.run()
    assert (summary.mode, walking.body.reads) == (Mode.STOPPED, END + 39)
    assert "it fell on the way down" in summary.reason


def test_a_lean_on_the_way_down_is_not_taken_for_a_fall(walking: Any) -> None:
    def lean() -> None:
        walking.body.gravity = np.array([0.6, 0.0, -0.8])
        walking.body.angular_velocity = np.array([0.0, 3.0, 0.0])

    stop(walking)
    walking.at(END + 30, lean)
    walking.run()
    assert walking.body.reads == END + SIT_TICKS


def test_a_servo_lost_on_the_way_down_is_a_fault_at_once(walking: Any) -> None:
    stop(walking)
    health = walking.make_health(rebooted=("left_knee",))
    walking.at(END + 30, lambda: setattr(walking.body, "health", health))
    summary = walking.run()
    assert (summary.mode, walking.body.reads) == (Mode.FAULT, END + 30)


def test_a_clock_that_stops_cannot_keep_the_duck_from_going_limp(walking: Any) -> None:
    # Each tick of the way down takes 100 ms: the wall clock decides, not the number of ticks.
    stop(walking)
    write = walking.body.write

    def slow(targets: np.ndarray) -> None:
        write(targets)
        walking.time.now_s += 0.1 if walking.body.reads > END else 0.0

    walking.body.write = slow
    started: list[float] = []
    walking.on_tick = lambda tick: started.append(tick.time_s) if tick.mode is Mode.SIT else None
    walking.run()
    assert walking.time.now_s - started[0] < 3.0


# Errors that nobody foresaw


class UnforeseenError(Exception):
    """An error of no class that the loop knows."""


def in_the_source(drive: Any) -> None:
    latest = drive.source.latest

    def failing() -> Any:
        if drive.body.reads >= END:
            raise UnforeseenError
        return latest()

    drive.source.latest = failing


def in_a_watcher(drive: Any) -> None:
    def failing(tick: Any) -> None:
        if len(drive.ticks) == END:
            raise UnforeseenError

    drive.on_tick = failing


@pytest.mark.parametrize("error", [in_the_source, in_a_watcher])
def test_after_an_error_outside_the_policy_the_duck_sits_down_and_the_error_is_not_hidden(
    walking: Any, error: Callable[[Any], None]
) -> None:
    error(walking)
    with pytest.raises(UnforeseenError):
        walking.run()
    assert walking.modes[-2:] == [Mode.SIT, Mode.FAULT]
    assert walking.body.writes[-1] == pytest.approx(SEAT)
    assert walking.body.calls == ["enable", "limp"]


def test_an_error_in_the_policy_leaves_the_duck_limp_and_is_not_hidden(
    walking: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def act(observation: np.ndarray, skill: object) -> np.ndarray:
        calls.append(1)
        if len(calls) == 50:
            raise ZeroDivisionError("in the policy")
        return np.zeros(14, np.float32)

    monkeypatch.setattr(walking.bundle, "act", act)
    with pytest.raises(ZeroDivisionError):
        walking.run()
    assert walking.body.calls == ["enable", "limp"] and not walking.body.torque
    assert walking.modes[-2:] == [Mode.RUN, Mode.FAULT]
    assert "the policy failed" in walking.reasons[-1]


def test_an_error_that_comes_back_on_the_way_down_leaves_the_duck_limp(walking: Any) -> None:
    def failing(tick: Any) -> None:
        if len(walking.ticks) >= END:
            raise UnforeseenError

    walking.on_tick = failing
    with pytest.raises(UnforeseenError):
        walking.run()
    assert walking.modes[-2:] == [Mode.SIT, Mode.FAULT] and not walking.body.torque


def test_an_interrupt_between_two_lines_leaves_the_duck_limp(walking: Any) -> None:
    def on_read(read: int) -> None:
        if read in (130, 140):
            raise KeyboardInterrupt

    walking.body.on_read = on_read
    with pytest.raises(KeyboardInterrupt):
        walking.run()
    assert not walking.body.torque


def test_an_error_before_the_start_leaves_the_duck_limp(drive: Any) -> None:
    drive.source.interactive = True
    drive.at(5, lambda: (_ for _ in ()).throw(UnforeseenError))
    with pytest.raises(UnforeseenError):
        drive.run()
    assert drive.modes == [Mode.FAULT] and drive.body.calls == ["limp"]


def test_torque_that_stays_on_after_an_error_is_told(walking: Any) -> None:
    in_the_source(walking)

    def limp() -> None:
        raise BusTimeoutError("ids 23 did not answer")

    walking.body.limp = limp
    with pytest.raises(UnforeseenError):
        walking.run()
    assert "torque may be on" in walking.reasons[-1]
