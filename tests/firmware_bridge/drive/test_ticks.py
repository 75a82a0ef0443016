"""What each tick tells of the joints: what the policy said, what was asked for, what was written."""

from __future__ import annotations

from typing import Any

import pytest

from firmware_bridge.drive.limits import Limits
from firmware_bridge.drive.modes import Mode
from hardware.joints import STAND


def test_a_ramp_asks_for_targets_without_a_policy(drive: Any) -> None:
    drive.run()
    rising = [tick for tick in drive.ticks if tick.mode is Mode.RISE and tick.targets is not None]
    assert len(rising) > 50 and all(tick.action is None for tick in rising)
    assert rising[-1].requested_targets == pytest.approx(STAND, abs=0.01)


def test_a_step_of_the_policy_is_told_whole_and_what_is_written_is_what_the_limits_leave(drive: Any) -> None:
    drive.run(skill="walk", limits=Limits(target_rate=5.0))
    first = next(tick for tick in drive.ticks if tick.action is not None)
    assert first.action[0] == 0.25 and first.requested_targets[0] == pytest.approx(0.2)  # 0.8 rad an action
    assert first.targets[0] == pytest.approx(0.1, abs=1e-3) and "target rate" in first.limited_by


def test_a_tick_that_holds_asks_for_nothing(drive: Any) -> None:
    drive.body.failing = lambda read: 120 <= read < 130
    drive.run(seconds=1.0)
    held = [tick for tick in drive.ticks if "held" in tick.limited_by]
    assert held and all(tick.action is None and tick.requested_targets is None for tick in held)
    assert all(tick.targets is not None for tick in held)


def test_a_limp_duck_is_asked_for_nothing(drive: Any) -> None:
    drive.run()
    last = drive.ticks[-1]
    assert last.mode is Mode.STOPPED
    assert last.action is None and last.requested_targets is None and last.targets is None
