"""The conversation with the person who calibrates: one task after the other, with a way back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import Protocol, TypeVar

from hardware.errors import BusTimeoutError, CalibrationError, DuckError, ImuError

Result = TypeVar("Result")
ENTER, SKIP, REDO, BACK, QUIT, HELP = "enter", "s", "r", "b", "q", "?"
_FOUND_KEYS = "Enter keeps it | r again | s leave the old value | b back | q quit"
_COMMON_KEYS = "Enter measure | s leave the old value | b back | q quit, writing nothing"
LOST = (BusTimeoutError, ImuError)
"""An answer that did not come, or was no good one; the next may well."""
LOST_LOOKS = 25
"""Looks in a row, half a second, that may be without an answer; after more the bus counts as gone."""
MEASURE_TRIES = 3
"""How often a measurement in which an answer was lost is begun."""


class StoppedError(DuckError):
    """The calibration was ended before its end; the file is as it was."""


class Console(Protocol):
    """Where the person is."""

    def tell(self, text: str) -> None:
        """Show lines."""
        ...

    def show(self, text: str) -> None:
        """Show a line that the next one replaces."""
        ...

    def key(self) -> str | None:
        """Return the next key, None when there is none; never waits.

        Raises:
            StoppedError: there will be none any more.
        """
        ...

    def forget_keys(self) -> None:
        """Forget keys pressed while nobody asked, which may be those of an impatient person."""
        ...


def _nothing() -> None:
    pass


@dataclass(frozen=True)
class Task:
    """Something to measure.

    Attributes:
        begin: returns what the person is to do.
        measure: measures, and returns what was found; raises CalibrationError where it cannot be used.
        keep: makes what was found part of the result; raises CalibrationError where that does not work yet.
        skip: leaves the old value.
        end: leaves everything as it was before the task; always called.
        idle: called all the time; returns a line to show.
        keys: what further keys do.
        help: what those keys do, in words.
        ready: whether there is nothing to measure, only to keep.
    """

    begin: Callable[[], str]
    measure: Callable[[], str]
    keep: Callable[[], None]
    skip: Callable[[], None] = _nothing
    end: Callable[[], None] = _nothing
    idle: Callable[[], str] = str
    keys: Mapping[str, Callable[[], None]] = field(default_factory=dict)
    help: str = ""
    ready: bool = False


class Go(Enum):
    """Which task comes next."""

    ON, BACK = 1, -1


def walk(tasks: Sequence[Task], console: Console, pause: Callable[[], None]) -> None:
    """Carry tasks out in order, and back where the person wants to.

    Args:
        tasks: what to do.
        console: where the person is.
        pause: waits for a moment; raises StoppedError when the calibration is to end.

    Raises:
        StoppedError: the person or the system ended it.
        BusError: the bus is gone; an answer that is lost now and then is asked for again.
    """
    index = 0
    while index < len(tasks):
        task = tasks[index]
        try:
            index = max(0, index + _perform(task, console, pause).value)
        finally:
            task.end()


def _perform(task: Task, console: Console, pause: Callable[[], None]) -> Go:
    console.tell(task.begin())
    found = task.ready
    look = _Look(task, console)
    while True:
        pause()
        line = look()
        key = console.key()
        if key is None:
            if line:
                console.show(line)
        elif key == QUIT:
            raise StoppedError("you ended it")
        elif key == BACK:
            return Go.BACK
        elif key == SKIP:
            task.skip()
            return Go.ON
        elif key == ENTER and found:
            if _attempt(partial(_keep, task), console):
                return Go.ON
        elif key == ENTER:
            found = _measure(task, console)
        else:
            found = _press(key, task, console) and found


class _Look:
    """What a task shows while nobody presses a key; an answer that is lost is asked for at the next look."""

    def __init__(self, task: Task, console: Console) -> None:
        self._task, self._console = task, console
        self._lost = 0

    def __call__(self) -> str | None:
        try:
            line = self._task.idle()
        except LOST:
            self._lost += 1
            if self._lost > LOST_LOOKS:
                raise
            return "no answer; asking again"
        except CalibrationError as error:
            self._console.tell(f"  {error}")
            line = None
        self._lost = 0
        return line


def _keep(task: Task) -> bool:
    task.keep()
    return True


def _measure(task: Task, console: Console) -> bool:
    """Measure, and return whether that brought something to keep."""

    def measured() -> str:
        console.show("measuring; keep still")
        try:
            for _ in range(MEASURE_TRIES - 1):
                with suppress(*LOST):
                    return task.measure()
            return task.measure()
        finally:
            console.forget_keys()

    text = _attempt(measured, console)
    if text is None:
        return False
    console.tell(f"  {text}\n  {_FOUND_KEYS}")
    return True


def _press(key: str, task: Task, console: Console) -> bool:
    """Do what a key of the task's own does, and return whether what was found still holds."""
    if key == REDO:
        console.tell("  again: press Enter when it is ready")
    elif key in task.keys:
        _attempt(task.keys[key], console)
    else:
        console.tell(f"  {task.help} | {_COMMON_KEYS}" if task.help else f"  {_COMMON_KEYS}")
        return True
    return task.ready


def _attempt(action: Callable[[], Result], console: Console) -> Result | None:
    """Return what an action brings; where it cannot be used, tell why, and return None.

    The person decides whether to try again, so that nothing measured before is lost.
    """
    try:
        return action()
    except (CalibrationError, *LOST) as error:
        console.tell(f"  {error}")
        return None
