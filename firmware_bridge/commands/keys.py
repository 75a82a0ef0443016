"""From the bytes of a terminal to keys, and what each key asks for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import inf

from firmware_bridge.commands.request import Event

ALIVE = b"\x1b[0n"
"""A terminal's answer to `ARE_YOU_ALIVE`."""
ARE_YOU_ALIVE = b"\x1b[5n"
"""Asks for the status of a terminal (ECMA-48, DSR 5); practically every terminal answers."""

_FORWARD, _LEFT, _TURN = (0.05, 0.0, 0.0), (0.0, 0.05, 0.0), (0.0, 0.0, 0.2)
_BACK, _RIGHT, _TURN_BACK = (-0.05, 0.0, 0.0), (0.0, -0.05, 0.0), (0.0, 0.0, -0.2)
STEPS: Mapping[bytes, tuple[float, float, float]] = {
    **{b"w": _FORWARD, b"s": _BACK, b"a": _LEFT, b"d": _RIGHT},
    **{b"\x1b[A": _FORWARD, b"\x1b[B": _BACK, b"\x1b[D": _TURN, b"\x1b[C": _TURN_BACK},
    **{b"\x1bOA": _FORWARD, b"\x1bOB": _BACK, b"\x1bOD": _TURN, b"\x1bOC": _TURN_BACK},
}
"""Change of the command [m/s, m/s, rad/s] by letter or arrow; arrows have two spellings."""
EVENTS: Mapping[bytes, Event] = {
    **{b"\r": Event.START, b"\n": Event.START},
    **{b"c": Event.SIT, b"x": Event.LIMP, b"q": Event.QUIT},
}
ZERO, HELP = b" ", b"?"
SKILL_KEYS = "123456789befghijklmnoprtuvyz"
"""Keys of the first skills of a bundle: digits, then the letters that mean nothing else."""

SEQUENCE_S = 0.1
"""Time after which the rest of a key's sequence comes no more [s]."""
_SEQUENCE = rb"\x1b\[[0-?]{0,12}[@-pr-wy-~]?|\x1bO[@-~]"
"""What a key or an answer sends; one after `ESC [` that breaks off is a key without a meaning. `q` and `x`
end none of those, for no terminal in use sends such a one, so that quitting and limp are not swallowed."""
_KEY = re.compile(_SEQUENCE + rb"|.", re.DOTALL)
_UNFINISHED = re.compile(rb"\x1b(?:\[[0-?]{0,12}|O)?\Z")


def split_keys(data: bytes) -> tuple[list[bytes], bytes]:
    """Split what a terminal sent into keys, letters in lower case, and the beginning of one yet to come.

    An escape that begins no known sequence is a key by itself, and so is a sequence that breaks off; neither
    swallows what is behind it.
    """
    unfinished = _UNFINISHED.search(data)
    end = unfinished.start() if unfinished else len(data)
    keys = [key.lower() if len(key) == 1 else key for key in _KEY.findall(data[:end])]
    return keys, data[end:]


class KeyStream:
    """Cuts what a terminal sends bit by bit into keys.

    The beginning of a sequence that is not gone on with is forgotten, so that it swallows no later key.
    """

    def __init__(self) -> None:
        self._rest, self._fed_s = b"", -inf

    def feed(self, data: bytes, now: float) -> list[bytes]:
        """Return the keys that bytes complete, which came at a monotonic time [s]."""
        if now - self._fed_s > SEQUENCE_S:
            self._rest = b""
        pressed, self._rest = split_keys(self._rest + data)
        self._fed_s = now
        return pressed


def help_line(names: Sequence[str]) -> str:
    """Return what the keys do, in one line; `names` are the skills in the bundle's order."""
    skills = ", ".join(f"{key} {name}" for key, name in zip(SKILL_KEYS, names, strict=False))
    return (
        "Enter rise | w/s or up/down faster, slower | a/d step left, right | left/right turn | space halt | "
        f"{skills} | c sit | x limp now | q quit | ? this help"
    )
