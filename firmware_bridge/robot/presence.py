"""How many devices answer at one id."""

from __future__ import annotations

from enum import Enum

from firmware_bridge.wire import registers
from firmware_bridge.wire.bus import Bus

_CENSUS = (registers.REALTIME_TICK.address, 27)
"""Clock to temperature: bytes in which two servos with one id cannot agree for long."""
_MOST_LOOKS = 5


class Presence(Enum):
    """How many devices answer at an id; of more than one, the answers may just be damaged."""

    NONE, ONE, MORE = range(3)


_PRESENCE = {(0, 0): Presence.NONE, (1, 0): Presence.ONE}
"""What a census that brings so many whole and damaged answers says; all else is more than one."""


def presence(bus: Bus, device: int) -> Presence:
    """Return how many devices answer at an id: one is believed at once, none or more only when seen twice.

    So neither noise nor an answer that comes late, and is then counted with the next, makes two of one.
    """
    before = None
    for _ in range(_MOST_LOOKS):
        found = _PRESENCE.get(bus.census(device, *_CENSUS), Presence.MORE)
        if found in (Presence.ONE, before):
            break
        before = found
    return found
