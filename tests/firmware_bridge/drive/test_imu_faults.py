"""Each IMU with a link of its own, each of its faults: the mode that docs/safety.md promises, in its bound.

Real loop, body, servo bus and driver; an emulated duck and an emulated sensor; time that passes only when
someone waits.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from firmware_bridge.commands.request import Event
from firmware_bridge.drive import motion, poses
from firmware_bridge.drive.modes import Mode
from firmware_bridge.drive.summary import Summary
from firmware_bridge.emulator.imu_chip import ImuFault
from hardware.joints import STAND

KINDS = ("bno055-uart", "bno055-i2c", "bmi088-i2c")
UPRIGHT = np.array([1.0, 0.0, 0.0, 0.0])
ON_ITS_SIDE = np.array([0.5**0.5, 0.5**0.5, 0.0, 0.0])
MATRIX = """
fault         limp  rise      stand     run       sit      fallen
disconnected  on    fault 29  fault 29  fault 29  limp 8   on
garbage       on    fault 29  fault 29  fault 29  limp 8   on
restarted     on    fault 29  fault 29  fault 29  limp 8   on
frozen        on    fault 42  fault 42  fault 42  limp 21  on
stuck         on    fault 46  fault 46  fault 46  limp 25  on
"""
"""The mode that follows, and the latest tick, counted from the first with the fault; `on`: none.

A sample may be 50 ms old, so that the last good one is used in three ticks more than on the servo bus: 25
ticks make 0.5 s unseen (`lost_s`), 4 more than three missed reads. The 25th identical reading comes in the
13th tick. An orientation that stands still shows when the trunk, at 0.6 rad/s, has turned by 0.15 rad, after
17 ticks.
"""
TURNING = np.array([0.0, 0.0, 0.6])
PATIENCE = 50
"""Ticks after which a fault that changed nothing changes nothing any more, being unseen for 0.5 s at most."""


class EnoughSeenError(Exception):
    """Ends a drive that the fault did not end."""


def cells() -> list[Any]:
    """Return each driver with each fault in RUN, and one of them in all modes."""
    head, *rows = (re.split(r"\s{2,}", line) for line in MATRIX.strip().splitlines())
    return [
        pytest.param(kind, row[0], Mode(name), text, id=f"{kind} {row[0]} in {name}")
        for kind in KINDS
        for row in rows
        for name, text in zip(head[1:], row[1:], strict=True)
        if kind == "bno055-uart" or name == "run"
    ]


class Story:
    """Leads a drive into a mode, lets something happen to the sensor there, and watches."""

    def __init__(self, drive: Any, rig: Any, duck: Any, mode: Mode, happen: Callable[[int], None]) -> None:
        self.drive, self.rig, self.duck, self.mode, self.happen = drive, rig, duck, mode, happen
        self.struck: int | None = None

    def run(self) -> Summary | None:
        """Drive until the end, or until enough was seen."""
        source = self.drive.source
        source.interactive = True
        source.ask(vx=0.2, age_s=np.inf if self.mode is Mode.STAND else 0.0)
        source.events = {} if self.mode is Mode.LIMP else {0: Event.START}
        self.drive.on_tick = self._on_tick
        try:
            summary: Summary = self.drive.run(skill="stand", seconds=None)
        except EnoughSeenError:
            return None
        return summary

    def followed(self) -> list[tuple[Mode, int]]:
        """Return the modes since the fault, each with its tick, 1 for the first one with the fault."""
        assert self.struck is not None
        changes = zip(self.drive.modes, self.drive.changed, strict=True)
        watched = range(self.struck, self.struck + PATIENCE)
        return [(mode, number - self.struck + 1) for mode, number in changes if number in watched]

    def _on_tick(self, tick: Any) -> None:
        number = len(self.drive.ticks)
        if self.struck is None and tick.mode_s >= 0.1:
            self._lead(tick.mode, number)
        if self.struck is not None:
            if number >= self.struck + PATIENCE:
                raise EnoughSeenError
            self.happen(number - self.struck)

    def _lead(self, mode: Mode, number: int) -> None:
        source = self.drive.source
        if mode is self.mode:
            self.struck = number
        elif mode is Mode.RUN and self.mode is Mode.SIT:
            source.events[source.ticks] = Event.SIT
        elif mode is Mode.RUN and self.mode is Mode.FALLEN:
            self.rig.sensor.set_motion(np.zeros(3), ON_ITS_SIDE)


@pytest.fixture
def tell(
    drive: Any,
    stepped: Any,
    make_stepped_body: Callable[..., Any],
    make_rig: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., Story]:
    """Makes the story of something that happens to a sensor, told the tick since it began, in a mode."""

    def make(kind: str, mode: Mode, happen: Callable[[Any, int], None]) -> Story:
        if mode is not Mode.RISE:  # else it takes too long to get there
            monkeypatch.setattr(motion, "RISE_S", 0.1)
            monkeypatch.setattr(poses, "RISE_S", 0.1)
        rig = make_rig(kind, stepped.now)
        duck, drive.body = make_stepped_body(rig.imu)
        duck.unplug(200)
        duck.set_state(STAND)
        stepped.every(0.01, rig.imu.step)
        drive.time = stepped
        return Story(drive, rig, duck, mode, lambda tick: happen(rig.sensor, tick))

    return make


def strike(fault: str) -> Callable[[Any, int], None]:
    """Return what lets a fault begin, and last."""

    def happen(sensor: Any, tick: int) -> None:
        if tick == 0 and fault == "restarted":
            sensor.restart()
        elif tick == 0:
            sensor.fault = ImuFault(fault)
            sensor.set_motion(TURNING, UPRIGHT)

    return happen


@pytest.mark.parametrize(("kind", "fault", "mode", "cell"), cells())
def test_each_fault_of_each_sensor_ends_as_documented_within_its_bound(
    tell: Callable[..., Story], kind: str, fault: str, mode: Mode, cell: str
) -> None:
    story = tell(kind, mode, strike(fault))
    end = story.run()
    followed = story.followed()
    usual = [Mode.RUN] if mode is Mode.RISE else []
    expected = usual if cell == "on" else [Mode(cell.split(maxsplit=1)[0])]
    assert [entered for entered, _ in followed] == expected
    if cell != "on":
        assert followed[-1][1] <= int(cell.split()[1])
        assert not story.duck.torque.any()
    if expected == [Mode.FAULT]:
        assert end is not None and "no sample for 0.5" in end.reason


@pytest.mark.parametrize("kind", KINDS)
def test_a_sensor_that_is_gone_for_a_moment_is_coasted_over(tell: Callable[..., Story], kind: str) -> None:
    def happen(sensor: Any, tick: int) -> None:
        sensor.fault = ImuFault.DISCONNECTED if tick < 3 else None

    story = tell(kind, Mode.RUN, happen)
    assert story.run() is None and story.followed() == []
    assert not any("held" in tick.limited_by for tick in story.drive.ticks)


@pytest.mark.parametrize("kind", KINDS)
def test_targets_are_held_while_a_sensor_is_gone_for_longer_and_the_walk_goes_on_after_it(
    tell: Callable[..., Story], kind: str
) -> None:
    def happen(sensor: Any, tick: int) -> None:
        sensor.fault = ImuFault.DISCONNECTED if tick < 15 else None

    story = tell(kind, Mode.RUN, happen)
    assert story.run() is None and story.followed() == []
    # Seen for three ticks more, then coasted over for three.
    held = [number for number, tick in enumerate(story.drive.ticks) if "held" in tick.limited_by]
    assert 7 <= len(held) <= 10 and story.drive.ticks[-1].fresh


@pytest.mark.parametrize("kind", KINDS)
def test_a_robot_that_stands_still_is_not_taken_for_a_frozen_sensor(
    tell: Callable[..., Story], kind: str
) -> None:
    story = tell(kind, Mode.RUN, lambda sensor, tick: None)
    assert story.run() is None and story.followed() == []
    assert all(tick.fresh for tick in story.drive.ticks)
