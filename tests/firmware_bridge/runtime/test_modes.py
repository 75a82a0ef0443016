from __future__ import annotations

import itertools

import numpy as np
import pytest

from firmware_bridge.modes import TRANSITIONS, Mode, ModeMachine, rise_pose
from hardware.errors import SafetyError
from hardware.joints import STAND


def machine_in(mode: Mode) -> ModeMachine:
    machine = ModeMachine(lambda mode, reason: None)
    machine.mode = mode
    return machine


def test_a_drive_goes_from_limp_through_rise_to_run_and_reports_each_change() -> None:
    seen: list[tuple[Mode, str]] = []
    machine = ModeMachine(lambda mode, reason: seen.append((mode, reason)))
    machine.change(Mode.RISE, "a")
    machine.change(Mode.RUN, "b")
    machine.change(Mode.FALLEN, "c")
    assert seen == [(Mode.RISE, "a"), (Mode.RUN, "b"), (Mode.FALLEN, "c")]
    assert (machine.mode, machine.reason) == (Mode.FALLEN, "c")


@pytest.mark.parametrize("before", [Mode.LIMP, Mode.STOPPED, Mode.FALLEN, Mode.FAULT])
def test_a_policy_never_drives_without_a_rise(before: Mode) -> None:
    with pytest.raises(SafetyError, match=f"mode '{before.value}' cannot become 'run'"):
        machine_in(before).change(Mode.RUN, "x")


@pytest.mark.parametrize("end", [Mode.STOPPED, Mode.FALLEN, Mode.FAULT])
def test_an_end_is_final(end: Mode) -> None:
    for mode in set(Mode) - {Mode.FAULT}:
        with pytest.raises(SafetyError):
            machine_in(end).change(mode, "x")


@pytest.mark.parametrize("active", [Mode.RISE, Mode.RUN])
@pytest.mark.parametrize("end", [Mode.STOPPED, Mode.FALLEN, Mode.FAULT])
def test_every_end_can_come_at_any_moment_of_a_drive(active: Mode, end: Mode) -> None:
    machine = machine_in(active)
    machine.change(end, "x")
    assert machine.mode is end


def test_no_mode_leads_back_to_limp() -> None:
    assert Mode.LIMP not in set(itertools.chain.from_iterable(TRANSITIONS.values()))
    assert set(TRANSITIONS) == set(Mode)


def test_the_rise_starts_at_the_measured_pose_and_ends_at_stand() -> None:
    start = STAND + np.linspace(-0.5, 0.5, 14)
    assert rise_pose(start, 0.0).tolist() == start.tolist()
    assert rise_pose(start, 1.0) == pytest.approx((start + STAND) / 2)
    assert rise_pose(start, 2.0) == pytest.approx(STAND)
    assert rise_pose(start, 9.0) == pytest.approx(STAND)


def test_the_rise_starts_and_ends_at_rest_and_never_turns_back() -> None:
    path = np.array([rise_pose(STAND + 1.0, t)[0] for t in np.arange(0, 2.0001, 0.02)])
    steps = np.diff(path)
    assert (steps <= 0).all()
    assert abs(steps[0]) < 0.001 and abs(steps[-1]) < 0.001
    assert np.abs(steps).max() == pytest.approx(0.015, abs=2e-4)  # 1.5 x the mean speed of 0.5 rad/s
