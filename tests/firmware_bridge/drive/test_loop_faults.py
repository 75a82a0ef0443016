"""A policy that fails, a loop that stands still, and torque that stays on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from firmware_bridge.drive.modes import Mode
from hardware.errors import BusTimeoutError

RISE_WRITES = 100


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
