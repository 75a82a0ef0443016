from __future__ import annotations

import re
from pathlib import Path

import pytest

from firmware_bridge.drive.modes import ENDS, STIFF, TRANSITIONS, Mode, ModeMachine, diagram
from hardware.errors import SafetyError

SAFETY = Path(__file__).parents[3] / "docs" / "safety.md"


def machine_in(mode: Mode) -> ModeMachine:
    machine = ModeMachine(lambda mode, reason: None)
    machine.mode = mode
    return machine


def test_a_drive_starts_limp_and_reports_each_change() -> None:
    seen: list[tuple[Mode, str]] = []
    machine = ModeMachine(lambda mode, reason: seen.append((mode, reason)))
    assert machine.mode is Mode.LIMP
    for mode, reason in ((Mode.RISE, "a"), (Mode.RUN, "b"), (Mode.FALLEN, "c")):
        machine.change(mode, reason)
    assert seen == [(Mode.RISE, "a"), (Mode.RUN, "b"), (Mode.FALLEN, "c")]
    assert (machine.mode, machine.reason) == (Mode.FALLEN, "c")


def test_the_time_in_a_mode_starts_anew_with_each_mode() -> None:
    machine = machine_in(Mode.RISE)
    machine.periods = 100
    assert machine.seconds == pytest.approx(2.0)
    machine.change(Mode.STAND, "x")
    assert machine.seconds == 0.0


@pytest.mark.parametrize("limp", [mode for mode in Mode if mode not in STIFF])
def test_only_a_rise_brings_torque_back(limp: Mode) -> None:
    assert set(TRANSITIONS[limp]) & STIFF <= {Mode.RISE}


def test_only_a_rise_leads_to_the_policy() -> None:
    for mode in (Mode.STAND, Mode.RUN):
        before = {other for other in Mode if mode in TRANSITIONS[other]}
        assert before <= {Mode.RISE, Mode.STAND, Mode.RUN}


@pytest.mark.parametrize("end", sorted(ENDS, key=lambda mode: mode.value))
def test_an_end_is_final_but_for_the_news_that_torque_stays_on(end: Mode) -> None:
    for mode in set(Mode) - {Mode.FAULT}:
        with pytest.raises(SafetyError, match=f"mode '{end.value}' cannot become"):
            machine_in(end).change(mode, "x")
    machine_in(end).change(Mode.FAULT, "torque may be on")


@pytest.mark.parametrize("before", sorted(set(Mode) - ENDS, key=lambda mode: mode.value))
@pytest.mark.parametrize("end", sorted(ENDS, key=lambda mode: mode.value))
def test_every_end_can_come_in_every_mode(before: Mode, end: Mode) -> None:
    machine = machine_in(before)
    machine.change(end, "x")
    assert machine.mode is end


@pytest.mark.parametrize("before", sorted(STIFF, key=lambda mode: mode.value))
def test_from_every_mode_with_torque_there_is_a_way_to_limp(before: Mode) -> None:
    assert Mode.LIMP in TRANSITIONS[before]


def test_a_fallen_duck_rises_only_anew_and_a_seated_one_only_from_limp() -> None:
    assert set(TRANSITIONS[Mode.FALLEN]) & STIFF == {Mode.RISE}
    assert not set(TRANSITIONS[Mode.SIT]) & STIFF


def test_every_mode_has_a_row_in_the_table() -> None:
    assert set(TRANSITIONS) == set(Mode)


def test_the_drawing_in_the_documentation_is_that_of_the_code() -> None:
    drawn = re.findall(r"```mermaid\n(.*?)\n```", SAFETY.read_text(encoding="utf-8"), re.DOTALL)
    assert drawn == [diagram()], "put the text of modes.diagram() into docs/safety.md"


def test_the_drawing_has_an_arrow_for_each_change_and_no_other() -> None:
    arrows = re.findall(r"^    (\w+) --> (\w+): .+$", diagram(), re.MULTILINE)
    assert len(arrows) == len(set(arrows)) == sum(len(followers) for followers in TRANSITIONS.values())
    assert {Mode(after) for before, after in arrows if before == "run"} == set(TRANSITIONS[Mode.RUN])
