"""Driving by another program over the control socket; see `firmware_bridge.control.server`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from math import inf
from typing import NamedTuple

import numpy as np

from firmware_bridge.commands.boxes import Boxes
from firmware_bridge.commands.request import NO_COMMAND, NO_HEAD, Event, Events, Request
from firmware_bridge.skills.manifest import Skill

START_S = 0.5
"""Age at which a start counts no longer [s]: given before the loop ran, it must not move a duck later."""


class _Held(NamedTuple):
    skill: str
    command: np.ndarray
    head: np.ndarray
    given: float


class RemoteCommands:
    """Holds the newest command of whoever is connected; the loop reads it, the server's thread writes it.

    All that changes hands is replaced as a whole, so neither ever waits for the other.

    Args:
        skills: the bundle's skills by name.
        skill: the one that is driven at first.
        now: monotonic time [s].
    """

    interactive = True

    def __init__(
        self, skills: Mapping[str, Skill], skill: str, now: Callable[[], float] = time.monotonic
    ) -> None:
        self.refused = 0
        self._boxes, self._now = Boxes(skills), now
        self._held = _Held(skill, NO_COMMAND, NO_HEAD, -inf)
        self._started = -inf
        self._events = Events()

    def latest(self) -> Request:
        """Return the newest command."""
        now, held, event = self._now(), self._held, self._events.take()
        if event is Event.START and now - self._started > START_S:
            self.refused += 1
            event = None
        return Request(held.skill, held.command, held.head, now - held.given, event)

    def close(self) -> None:
        """See `CommandSource.close`; there is nothing to let go of."""

    def give(self, command: np.ndarray, head: np.ndarray, skill: str | None) -> None:
        """Take a new command.

        Args:
            command: vx, vy, yaw rate, (3,) [m/s, m/s, rad/s].
            head: offsets of the head's joints, (4,) [rad].
            skill: name of the skill, None to stay with the present one.

        Raises:
            CommandError: no skill has that name, or a value is outside its box; nothing has changed.
        """
        name = self._held.skill if skill is None else skill
        self._boxes.check(name, command, head)
        self._held = _Held(name, command, head, self._now())

    def choose(self, skill: str) -> None:
        """Change to another skill, with the nearest command of its box, as old as it is.

        Raises:
            CommandError: no skill has that name.
        """
        self._boxes.check_skill(skill)
        held = self._held
        self._held = held._replace(skill=skill, command=self._boxes.nearest(skill, held.command))

    def start(self) -> None:
        """Ask for the rise; what was commanded before it is lost."""
        self.lose()
        self._started = self._now()
        self._events.put(Event.START)

    def lose(self) -> None:
        """Forget the command: who gave it is gone."""
        self._held = self._held._replace(command=NO_COMMAND, head=NO_HEAD, given=-inf)
