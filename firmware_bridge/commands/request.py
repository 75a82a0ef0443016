"""What a command source asks of the drive, at every tick and without waiting."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple, Protocol

import numpy as np

from hardware.contract import COMMAND_NAMES, HEAD_NAMES


class Event(Enum):
    """A change of mode that is asked for once."""

    START = "start"
    """From limp or fallen, rise."""
    SIT = "sit"
    """Sit down, then limp; the process lives on."""
    LIMP = "limp"
    """Torque off now."""
    QUIT = "quit"
    """End the process the safe way."""


class Request(NamedTuple):
    """What is asked for now.

    Attributes:
        skill: name of the skill, None to stay with the present one.
        command: vx, vy, yaw rate, (3,) [m/s, m/s, rad/s].
        head: offsets of the head's joints in the order of `contract.HEAD_NAMES`, (4,) [rad].
        age_s: time since this was given [s]; the deadman acts on it. Infinite: never, or the giver is lost.
        event: a change of mode, handed out once.
    """

    skill: str | None
    command: np.ndarray
    head: np.ndarray
    age_s: float
    event: Event | None


class CommandSource(Protocol):
    """Gives the newest request at every tick."""

    @property
    def refused(self) -> int:
        """Inputs that were no command."""
        ...

    @property
    def interactive(self) -> bool:
        """Whether the duck starts limp and waits for START; else it rises at once, and a fall ends all."""
        ...

    def latest(self) -> Request:
        """Return the newest request without waiting."""
        ...

    def close(self) -> None:
        """Let go of whatever is read; calling it again does nothing."""
        ...


def _zeros(count: int) -> np.ndarray:
    array = np.zeros(count)
    array.flags.writeable = False
    return array


NO_COMMAND = _zeros(len(COMMAND_NAMES))
"""The command zero, (3,), read-only."""
NO_HEAD = _zeros(len(HEAD_NAMES))
"""No head offset, (4,), read-only."""

_URGENCY = (Event.LIMP, Event.QUIT, Event.SIT, Event.START)


class Events:
    """Events that wait for the next tick; may be filled by another thread than the one that takes them.

    Each kind waits at most once, so a flood cannot queue, and none is lost. The most urgent comes first:
    LIMP, QUIT, SIT. Whatever ends motion also revokes a START that still waits.
    """

    def __init__(self) -> None:
        self._waiting: set[Event] = set()  # add, discard and `in` are atomic

    def put(self, event: Event) -> None:
        """Let an event wait."""
        self._waiting.add(event)

    def take(self) -> Event | None:
        """Return the most urgent event, or None."""
        for event in _URGENCY:
            if event in self._waiting:
                self._waiting.discard(event)
                self._waiting.discard(Event.START)
                return event
        return None
