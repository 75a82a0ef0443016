"""Reads that fail: the policy coasts for three ticks, then the last target is held, then the drive ends."""

from __future__ import annotations

from collections.abc import Callable
from math import pi, sin
from typing import Any

import numpy as np
import pytest

from firmware_bridge.drive.modes import Mode
from firmware_bridge.robot.imu import ImuFrozenError
from hardware.errors import PortError
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
