"""Falls, under way or over: the duck goes limp, and may start again by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from firmware_bridge.commands.request import Event
from firmware_bridge.drive.modes import Mode


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


def test_a_duck_that_lies_on_its_beak_has_fallen_after_a_second(drive: Any) -> None:
    leaned = np.array(
        [-np.sin(np.radians(40)), 0.0, -np.cos(np.radians(40))]
    )  # less than a fall's 60 degrees
    drive.at(130, lambda: setattr(drive.body, "gravity", leaned))
    summary = drive.run(seconds=5.0)
    assert summary.mode is Mode.FALLEN and "leaned more than 26 degrees for 1 s" in summary.reason
    assert drive.body.reads == 130 + 49  # fifty samples, the first of them at 130


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


def test_a_fallen_duck_can_start_again_by_hand(drive: Any) -> None:
    drive.source.interactive = True
    drive.source.events = {0: Event.START, 160: Event.START}
    lean(drive, range(121, 150))
    drive.stop = lambda: "enough" if drive.body.reads >= 170 else None
    drive.run(seconds=None)
    assert drive.modes[:4] == [Mode.RISE, Mode.RUN, Mode.FALLEN, Mode.RISE]
    assert drive.body.calls[:3] == ["enable", "limp", "enable"]
