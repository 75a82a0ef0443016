"""Driving by keyboard, also over ssh.

A terminal tells when a key goes down and never when it comes up, and its key repeat starts late, so a command
cannot last "while a key is held": each key changes the command by a step, and it stays until the next key.
That leaves the terminal itself to go silent. It is asked for its status several times a second; when one that
used to answer no longer does, the connection is lost, and the command with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from math import inf
from typing import Protocol

import numpy as np

from firmware_bridge.commands import keys
from firmware_bridge.commands.boxes import Boxes
from firmware_bridge.commands.request import NO_COMMAND, NO_HEAD, Event, Events, Request
from firmware_bridge.commands.terminal import KeyTerminal
from firmware_bridge.skills.manifest import Skill

ASK_S = 0.2
"""Time between two questions to the terminal [s]; two fit in the deadman's half second."""
LOST_S = 0.5
"""Silence of a terminal that used to answer after which it counts as lost [s]."""
TELL_S = 1.0
"""Least time between two answers to keys that change nothing [s], which else could fill the screen."""
ANSWER_S = 0.1
"""Time an answer that is still to come has when the terminal is given back [s]."""
PATIENCE_S = 2.0
"""Time for the first answer [s]; a terminal that takes longer is not asked again."""


class Terminal(Protocol):
    """What keys are read from; see `KeyTerminal`."""

    def read(self) -> bytes | None: ...  # noqa: D102
    def write(self, data: bytes) -> None: ...  # noqa: D102
    def close(self) -> None: ...  # noqa: D102


class KeyboardCommands:
    """Commands from the terminal this program was started from; `keys` says which key does what.

    Args:
        skills: the bundle's skills by name.
        skill: the one that is driven at first.
        say: shows a line to the user.
        terminal: where keys come from; None takes the controlling terminal.
        now: monotonic time [s].

    Raises:
        ConfigError: there is no terminal.
    """

    interactive = True

    def __init__(
        self,
        skills: Mapping[str, Skill],
        skill: str,
        say: Callable[[str], None],
        *,
        terminal: Terminal | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.refused = 0
        self._boxes, self._skill, self._say, self._now = Boxes(skills), skill, say, now
        self._terminal = terminal or KeyTerminal()
        self._events, self._keys = Events(), keys.KeyStream()
        self._command = self._boxes.nearest(skill, NO_COMMAND)
        self._first, self._asked, self._answered, self._told = inf, -inf, -inf, -inf
        self._asking = True
        self._gone = False

    def latest(self) -> Request:
        """Take in what was typed and return the command."""
        now = self._now()
        # What was typed before the first tick may be as old as what was typed into a dead line.
        lost = self._age(now) >= LOST_S or self._first == inf
        if lost:
            self._halt()
        typed = self._terminal.read()
        self._gone = typed is None
        if typed:
            self._take(typed, lost, now)
        self._ask(now)
        return Request(self._skill, self._command, NO_HEAD, self._age(now), self._events.take())

    def close(self) -> None:
        """Restore the terminal."""
        if self._asked > self._answered:
            time.sleep(ANSWER_S)  # or the answer would turn up in the user's next line
        self._terminal.close()

    def _take(self, typed: bytes, lost: bool, now: float) -> None:
        for key in self._keys.feed(typed, now):
            if key == keys.ALIVE:
                self._answered = now
            else:
                self._press(key, lost)

    def _age(self, now: float) -> float:
        if self._gone:
            return inf
        return 0.0 if self._answered == -inf else now - self._answered

    def _halt(self) -> None:
        self._command = self._boxes.nearest(self._skill, NO_COMMAND)

    def _press(self, key: bytes, lost: bool) -> None:
        event = keys.EVENTS.get(key)
        if lost and key != keys.ZERO and event in (None, Event.START):
            self.refused += 1
        elif key == keys.ZERO:
            self._halt()
        elif event is not None:
            self._halt()
            self._events.put(event)
        elif key in keys.STEPS:
            self._step(keys.STEPS[key])
        elif key == keys.HELP:
            self._say(keys.help_line(self._boxes.names))
        else:
            self._choose(key)

    def _step(self, step: tuple[float, float, float]) -> None:
        wanted = np.round(self._command + step, 6)  # so that there and back is zero again
        before, self._command = self._command, self._boxes.nearest(self._skill, wanted)
        if (self._command == before).all():
            self._answer(f"{self._skill} goes no further that way; ? tells the other skills")

    def _choose(self, key: bytes) -> None:
        index = keys.SKILL_KEYS.find(key.decode("latin-1"))
        if not 0 <= index < len(self._boxes.names):
            self._refuse(key)
            return
        self._skill = self._boxes.names[index]
        self._command = self._boxes.nearest(self._skill, self._command)

    def _refuse(self, key: bytes) -> None:
        self.refused += 1
        self._answer(f"the key {key.decode('latin-1')!a} does nothing; ? tells what keys do")

    def _answer(self, text: str) -> None:
        """Tell why a key changed nothing."""
        now = self._now()
        if now - self._told >= TELL_S:
            self._told = now
            self._say(text)

    def _ask(self, now: float) -> None:
        if not self._asking or now - self._asked < ASK_S:
            return
        if self._answered == -inf and now - self._first > PATIENCE_S:
            self._asking = False
            self._say(
                "this terminal does not say whether it is there: a lost connection will not stop the duck"
            )
            return
        self._terminal.write(keys.ARE_YOU_ALIVE)
        self._first, self._asked = min(self._first, now), now
