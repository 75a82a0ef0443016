from __future__ import annotations

from typing import Any

import pytest

from firmware_bridge.cli import main
from firmware_bridge.wire import registers


def set_up(*arguments: str) -> int:
    return main(["setup", "--port", "desk", *arguments])


@pytest.fixture
def newcomer(served: Any) -> Any:
    servo = served.new_servo(1, factory=True)
    served.plug(servo)
    return servo


def test_a_new_servo_becomes_the_missing_one_after_a_yes(
    served: Any, newcomer: Any, capsys: pytest.CaptureFixture[str], answer: Any
) -> None:
    served.unplug(23)
    answer("n\n")
    assert set_up() == 1 and served.orders == []
    answer("y\n")
    assert set_up() == 0 and (newcomer.id, newcomer.baud) == (23, 1_000_000)
    shown = capsys.readouterr()
    assert "Make the servo with id 1 at 57600 baud the left_knee (id 23)? [y/N]" in shown.err
    assert shown.out == "left_knee (id 23): XL330-M288 (1200), firmware 52, is set up\n"


def test_a_complete_duck_is_left_as_it_is(
    served: Any, newcomer: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert set_up() == 0 and served.orders == [] and served.opened == [1_000_000]
    assert "nothing to adopt" in capsys.readouterr().out


def test_two_missing_servos_are_refused_in_one_line(
    served: Any, newcomer: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    served.unplug(23, 24)
    assert set_up() == 1 and served.orders == []
    told = capsys.readouterr().err
    assert told.startswith("duck: 2 servos are missing (left_knee (id 23), left_ankle (id 24))")


def test_the_joint_named_gets_the_new_servo(served: Any, newcomer: Any) -> None:
    served.unplug(23, 34)
    assert set_up("--joint", "left_knee", "--yes") == 0 and newcomer.id == 23


def test_what_still_differs_at_the_new_servo_is_told(
    served: Any, newcomer: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    served.unplug(23)
    newcomer.poke(registers.HOMING_OFFSET, -512)
    assert set_up("--yes") == 0
    assert "homing offset is -0.7854 rad, not 0 rad" in capsys.readouterr().out


def test_a_set_is_left_incomplete_when_nobody_answers(
    served: Any, capsys: pytest.CaptureFixture[str], answer: Any
) -> None:
    served.unplug(23)
    answer("")
    assert set_up("--all") == 1
    shown = capsys.readouterr()
    assert "14 of 15 servos have their ids" in shown.out and "still missing: left_knee (id 23)" in shown.out
    assert "Plug in the servo for left_knee (id 23)" in shown.err


def test_a_set_is_complete_without_a_mouth(
    served: Any, capsys: pytest.CaptureFixture[str], answer: Any
) -> None:
    served.unplug(34)
    answer("s\n")
    assert set_up("--all") == 0
    assert "The set is complete, without a mouth." in capsys.readouterr().out
