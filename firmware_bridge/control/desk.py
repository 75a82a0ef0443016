"""What the control socket's requests mean: one JSON object in, one out. No sockets in here.

| request | does |
|---|---|
| `{"op": "command", "vx": 0.2, "vy": 0, "yaw": 0.1, "head": [0, 0, 0, 0], "skill": "walk"}` | drives |
| `{"op": "skill", "name": "walk"}` | changes the skill |
| `{"op": "start"}` | lets the duck rise |
| `{"op": "sit"}`, `{"op": "limp"}`, `{"op": "stop"}` | sits down; torque off now; ends the drive |
| `{"op": "status"}` | answers with the drive and its newest tick |
| `{"op": "watch", "hz": 10}` | answers, then sends ticks |

The first three move a duck, so they are for whoever drives: they are refused unless the drive takes its
commands from the socket. Whoever may connect may stop.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from firmware_bridge.commands.remote import RemoteCommands
from firmware_bridge.commands.request import NO_HEAD, CommandSource, Event, Events, Request
from firmware_bridge.skills.manifest import Skill
from hardware.contract import HEAD_NAMES
from hardware.errors import CommandError

MAX_HZ, MIN_HZ = 50.0, 0.1
"""Bounds of the rate at which ticks are sent [Hz]; the loop has no more than 50 a second."""
_STOPS = {"sit": Event.SIT, "limp": Event.LIMP, "stop": Event.QUIT}
_KEYS: Mapping[str, tuple[str, ...]] = {
    "command": ("vx", "vy", "yaw", "head", "skill"),
    "skill": ("name",),
    "start": (),
    **dict.fromkeys(_STOPS, ()),
    "status": (),
    "watch": ("hz",),
}
_SHOWN = 60


@dataclass
class Party:
    """One connection, as the desk sees it.

    Attributes:
        period_s: time between the ticks it wants to see [s], None for none.
    """

    period_s: float | None = None


class Desk:
    """Answers requests, and passes on what they ask of the drive.

    Args:
        source: where the drive's commands come from.
        name: what to call it, for example "keyboard".
        skills: the bundle's skills by name.
        tick: returns the newest tick as data, None before the first.

    Attributes:
        refused: requests that were refused.
        parties: those who are connected.
    """

    def __init__(
        self,
        source: CommandSource,
        name: str,
        skills: Mapping[str, Skill],
        tick: Callable[[], dict[str, Any] | None],
    ) -> None:
        self.refused = 0
        self.parties: list[Party] = []
        self._source, self._name, self._tick = source, name, tick
        self._remote = source if isinstance(source, RemoteCommands) else None
        self._giver: Party | None = None
        self._events = Events()
        self._skills = {
            skill.name: {"low": list(skill.command_low), "high": list(skill.command_high)}
            for skill in skills.values()
        }

    def request(self) -> Request:
        """Return the source's newest request, with the stops that were asked for here."""
        request = self._source.latest()
        if request.event is not None:
            self._events.put(request.event)
        return request._replace(event=self._events.take())

    def answer(self, line: bytes, party: Party) -> dict[str, Any]:
        """Carry out the request of a line, and return what to answer."""
        try:
            return {"ok": True, **self._carry_out(_parse(line), party)}
        except CommandError as error:
            self.refused += 1
            return {"ok": False, "error": str(error)}

    def leave(self, party: Party) -> None:
        """Forget a connection, and with it the command it gave."""
        self.parties.remove(party)
        if self._remote is not None and self._giver is party:
            self._remote.lose()

    def _carry_out(self, request: dict[str, Any], party: Party) -> dict[str, Any]:
        op = request["op"]
        if op == "status":
            return {"drive": self._drive(), "tick": self._tick()}
        if op == "watch":
            party.period_s = 1.0 / _watch_rate(request)
        elif op in _STOPS:
            if self._remote is not None:
                self._remote.lose()
            self._events.put(_STOPS[op])
        else:
            self._drive_by(op, request, party)
        return {}

    def _drive_by(self, op: str, request: dict[str, Any], party: Party) -> None:
        if self._remote is None:
            raise CommandError(
                f"this drive takes its commands from: {self._name}; from here it takes only "
                "status, watch, sit, limp and stop"
            )
        if op == "start":
            self._remote.start()
        elif op == "skill":
            self._remote.choose(_text(request, "name"))
        else:
            skill = _text(request, "skill") if "skill" in request else None
            command = np.array([_number(key, request.get(key, 0.0)) for key in ("vx", "vy", "yaw")])
            self._remote.give(command, _head(request), skill)
            self._giver = party

    def _drive(self) -> dict[str, Any]:
        return {
            "pid": os.getpid(),
            "source": self._name,
            "skills": self._skills,
            "clients": len(self.parties),
            "refused": self._source.refused + self.refused,
        }


class Supervised:
    """A command source to which whoever is connected to the control socket can add a stop.

    Args:
        source: the drive's own source.
        desk: where the stops arrive.
    """

    def __init__(self, source: CommandSource, desk: Desk) -> None:
        self._source, self._desk = source, desk
        self.interactive = source.interactive

    @property
    def refused(self) -> int:
        """Inputs that were no command, there and here."""
        return self._source.refused + self._desk.refused

    def latest(self) -> Request:
        """See `CommandSource.latest`."""
        return self._desk.request()

    def close(self) -> None:
        """Close the drive's own source."""
        self._source.close()


def _parse(line: bytes) -> dict[str, Any]:
    try:
        request = json.loads(line, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise CommandError(f"this is no JSON: {str(error)[:_SHOWN]}; send one object a line") from error
    op = request.get("op") if isinstance(request, dict) else None
    if not isinstance(op, str) or op not in _KEYS:
        raise CommandError(f"'op' is {repr(op)[:_SHOWN]}; send an object whose 'op' is one of {list(_KEYS)}")
    for key in request:
        if key != "op" and key not in _KEYS[op]:
            valid = list(_KEYS[op]) or "none"
            raise CommandError(f"unknown key {key[:_SHOWN]!r} of {op!r}; valid keys: {valid}")
    return request


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is no JSON number")


def _number(key: str, value: object) -> float:
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
    except OverflowError:  # a whole number beyond any float
        pass
    raise CommandError(f"{key!r} is {repr(value)[:_SHOWN]}; it must be a number")


def _text(request: dict[str, Any], key: str) -> str:
    value = request.get(key)
    if not isinstance(value, str):
        raise CommandError(f"{key!r} is {repr(value)[:_SHOWN]}; it must be a text")
    return value


def _head(request: dict[str, Any]) -> np.ndarray:
    if "head" not in request:
        return NO_HEAD
    values = request["head"]
    if not isinstance(values, list) or len(values) != len(HEAD_NAMES):
        raise CommandError(f"'head' is {repr(values)[:_SHOWN]}; it must be a list: {', '.join(HEAD_NAMES)}")
    return np.array([_number("head", value) for value in values])


def _watch_rate(request: dict[str, Any]) -> float:
    rate = _number("hz", request.get("hz", 10.0))
    if not MIN_HZ <= rate <= MAX_HZ:
        raise CommandError(f"'hz' is {rate:g}; it must be in [{MIN_HZ:g}, {MAX_HZ:g}]")
    return rate
