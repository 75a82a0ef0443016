"""What the conversation makes of answers that are lost on the bus, and of a result that cannot be kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from firmware_bridge.calibrate.dialogue import StoppedError, Task, walk
from firmware_bridge.robot.imu.sample import ImuSilentError
from hardware.errors import BusTimeoutError, CalibrationError, PortError


class Script:
    """A console at which keys were typed ahead; None is a moment in which nothing is pressed."""

    def __init__(self, *keys: str | None) -> None:
        self.keys = list(keys)
        self.told: list[str] = []

    def tell(self, text: str) -> None:
        self.told.append(text)

    def show(self, text: str) -> None:
        pass

    def key(self) -> str | None:
        return self.keys.pop(0) if self.keys else None

    def forget_keys(self) -> None:
        pass


def losing(times: int, error: Exception, then: str = "found") -> Callable[[], str]:
    """Return an action that fails so often before it works."""
    failures: Iterator[Exception] = iter([error] * times)

    def action() -> str:
        for failure in failures:
            raise failure
        return then

    return action


class Walked:
    """One task, and what became of it."""

    def __init__(self, **actions: Any) -> None:
        self.events: list[str] = []
        defaults: dict[str, Any] = {
            "begin": lambda: "begin",
            "measure": lambda: "found",
            "keep": lambda: self.events.append("kept"),
            "end": lambda: self.events.append("ended"),
        }
        self.task = Task(**{**defaults, **actions})

    def through(self, console: Script, pause: Callable[[], None] = lambda: None) -> list[str]:
        walk([self.task], console, pause)
        return self.events


LOST = BusTimeoutError("no good answer in time from ids 23")


@pytest.mark.parametrize("error", [LOST, ImuSilentError("the BNO055 does not answer")])
def test_answers_that_are_lost_while_nobody_presses_a_key_end_nothing(error: Exception) -> None:
    console = Script(*[None] * 12, "enter", "enter")
    assert Walked(idle=losing(10, error)).through(console) == ["kept", "ended"]


def test_a_bus_that_stays_silent_ends_it() -> None:
    walked = Walked(idle=losing(1000, LOST))
    console = Script()
    with pytest.raises(BusTimeoutError):
        walked.through(console)
    assert walked.events == ["ended"]


def test_a_port_that_is_gone_ends_it_at_once() -> None:
    walked = Walked(idle=losing(1, PortError("/dev/ttyUSB0 stopped working")))
    with pytest.raises(PortError):
        walked.through(Script("enter", "enter"))
    assert walked.events == ["ended"]


def test_answers_lost_now_and_then_never_add_up() -> None:
    looks = iter([True, True, False] * 40)

    def idle() -> str:
        if next(looks):
            raise LOST
        return "fine"

    assert Walked(idle=idle).through(Script(*[None] * 100, "enter", "enter")) == ["kept", "ended"]


def test_the_program_is_ended_while_answers_are_lost() -> None:
    moments = iter(range(3))

    def pause() -> None:
        if next(moments, None) is None:
            raise StoppedError("SIGINT received")

    with pytest.raises(StoppedError):
        Walked(idle=losing(1000, LOST)).through(Script(), pause)


def test_a_measurement_that_loses_an_answer_is_begun_again() -> None:
    assert Walked(measure=losing(2, LOST)).through(Script("enter", "enter")) == ["kept", "ended"]


def test_a_measurement_that_keeps_losing_answers_is_told_and_left_to_the_person() -> None:
    console = Script("enter", "enter", "enter")
    assert Walked(measure=losing(3, LOST)).through(console) == ["kept", "ended"]
    assert "  no good answer in time from ids 23" in console.told


def test_a_key_whose_answer_is_lost_is_told_and_may_be_pressed_again() -> None:
    console = Script("h", "h", "enter", "enter")
    assert Walked(keys={"h": losing(1, LOST)}).through(console) == ["kept", "ended"]
    assert console.told.count("  no good answer in time from ids 23") == 1


def test_a_result_that_cannot_be_kept_leaves_its_step_open() -> None:
    full = losing(1, CalibrationError("cannot write a.toml: No space left on device"))
    console = Script("enter", "enter")
    assert Walked(keep=full, ready=True).through(console) == ["ended"]
    assert console.told == ["begin", "  cannot write a.toml: No space left on device"]
