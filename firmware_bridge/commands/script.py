"""A file of timed commands, checked whole before anything moves.

One line for each change, words parted by spaces, `#` begins a comment:

    # time [s]  skill  vx [m/s]  vy [m/s]  yaw rate [rad/s]
    0.0   walk   0    0  0
    2.0   -      0.2  0  0
    6.0   -      0.2  0  0.4
    10.0  end

Each command stays until the next. `-` stays with the skill before, a name with spaces stands in quotes. Four
more numbers are the head's offsets [rad]. The last line says when the drive ends, the safe way.
"""

from __future__ import annotations

import shlex
import time
from bisect import bisect_right
from collections.abc import Callable, Mapping
from math import inf, isfinite
from pathlib import Path
from typing import NamedTuple

import numpy as np

from firmware_bridge.commands.boxes import Boxes
from firmware_bridge.commands.request import NO_COMMAND, NO_HEAD, Event, Request
from firmware_bridge.skills.manifest import Skill
from hardware.errors import CommandError, ConfigError
from hardware.files import read_bounded

MAX_FILE_BYTES = 1024 * 1024
MAX_STEPS = 10_000
MAX_TIME_S = 86_400.0
"""Latest time of a line [s], a day."""
END, SAME = "end", "-"
_COLUMNS = "TIME SKILL VX VY YAW [NECK_PITCH HEAD_PITCH HEAD_YAW HEAD_ROLL]"


class Step(NamedTuple):
    """One line of a script.

    Attributes:
        time_s: when it begins [s].
        skill: name of the skill.
        command: vx, vy, yaw rate, (3,) [m/s, m/s, rad/s].
        head: offsets of the head's joints, (4,) [rad].
    """

    time_s: float
    skill: str
    command: np.ndarray
    head: np.ndarray


class Script(NamedTuple):
    """A whole script.

    Attributes:
        steps: its commands in the order of time, one or more.
        end_s: when it ends [s].
    """

    steps: tuple[Step, ...]
    end_s: float


class ScriptCommands:
    """Plays a script; its time runs from `begin` on, which whoever drives calls once the duck stands.

    Args:
        script: what to play.
        now: monotonic time [s].
    """

    interactive = False

    def __init__(self, script: Script, now: Callable[[], float] = time.monotonic) -> None:
        self.refused = 0
        self._steps, self._end = script.steps, script.end_s
        self._times = [step.time_s for step in script.steps]
        self._now, self._began = now, inf
        self._ended = False

    def begin(self) -> None:
        """Let the script's time run; calling it again changes nothing."""
        if self._began == inf:
            self._began = self._now()

    def latest(self) -> Request:
        """Return the command of this moment: zero, in the first line's skill, before the first time."""
        elapsed = self._now() - self._began
        index = bisect_right(self._times, elapsed) - 1
        ends = elapsed >= self._end and not self._ended
        self._ended = self._ended or ends
        event = Event.QUIT if ends else None
        if index < 0:
            return Request(self._steps[0].skill, NO_COMMAND, NO_HEAD, 0.0, event)
        step = self._steps[index]
        return Request(step.skill, step.command, step.head, 0.0, event)

    def close(self) -> None:
        """See `CommandSource.close`; there is nothing to let go of."""


def load_script(path: Path, skills: Mapping[str, Skill], skill: str) -> Script:
    """Read a script and check every line of it.

    Args:
        path: the file.
        skills: the bundle's skills by name.
        skill: the one that is driven at first.

    Raises:
        ConfigError: the file is absent or too large, or a line is not valid; the message names it.
    """
    content = read_bounded(path, MAX_FILE_BYTES, ConfigError)
    try:
        lines = content.decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is no text in UTF-8 ({error}); save it as such") from error
    boxes, steps, end = Boxes(skills), list[Step](), None
    for number, line in enumerate(lines, 1):
        try:
            words = shlex.split(line, comments=True)
            if not words:
                continue
            time_s = _time(words[0], steps, end)
            if words[1:] == [END]:
                end = time_s
            else:
                steps.append(_step(time_s, words, boxes, steps, skill))
        except ValueError as error:  # CommandError is one
            raise ConfigError(f"{path}, line {number}: {error}") from error
    if end is None or not steps:
        raise ConfigError(f"{path} needs a command and a last line `TIME {END}`; add them")
    return Script(tuple(steps), end)


def _time(word: str, steps: list[Step], end: float | None) -> float:
    if end is not None:
        raise CommandError(f"nothing may follow the line with {END!r}; move that line to the end")
    value = _number("TIME", word)
    before = steps[-1].time_s if steps else -inf
    if not (max(before, 0.0) <= value <= MAX_TIME_S and value != before):
        least = f"more than {before:g}" if steps else "at least 0"
        raise CommandError(f"TIME is {word} s; it must be {least} s and at most {MAX_TIME_S:g} s")
    return value


def _step(time_s: float, words: list[str], boxes: Boxes, steps: list[Step], first: str) -> Step:
    if len(steps) >= MAX_STEPS:
        raise CommandError(f"a script holds at most {MAX_STEPS} commands; split it")
    if len(words) not in (5, 9):
        raise CommandError(f"{len(words)} words where {_COLUMNS} or TIME {END} are wanted")
    present = steps[-1].skill if steps else first
    skill = present if words[1] == SAME else words[1]
    values = [_number(name, word) for name, word in zip(_COLUMNS.split()[2:], words[2:], strict=False)]
    command = np.array(values[:3])
    head = np.array(values[3:]) if len(values) > 3 else NO_HEAD
    boxes.check(skill, command, head)
    return Step(time_s, skill, command, head)


def _number(name: str, word: str) -> float:
    try:
        value = float(word)
    except ValueError:
        value = inf
    if not isfinite(value):
        raise CommandError(f"{name.strip('[]')} is {word[:40]!r}; it must be a finite number")
    return value
