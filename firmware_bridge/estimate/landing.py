"""The vertical motion of the lowest sole: it falls freely, or a soft floor holds it."""

from __future__ import annotations

from math import exp
from typing import NamedTuple

FREE_FALL = 9.81
"""[m/s2]"""
GIVE_S = 0.0156
"""Time in which floor and soles spring back [s]; fitted, see `velocity.py`."""


class Sole(NamedTuple):
    """The lowest point of both soles.

    Attributes:
        height: above the floor; below zero it presses itself into it [m].
        speed: upwards [m/s].
    """

    height: float = 0.0
    speed: float = 0.0

    def mixed(self, other: Sole, share: float) -> Sole:
        """Return a mean of it and another one, of which it is a share of 0 to 1."""
        return Sole(
            share * self.height + (1.0 - share) * other.height,
            share * self.speed + (1.0 - share) * other.speed,
        )


RESTING = Sole(-FREE_FALL * GIVE_S**2, 0.0)
"""A sole that stands: as deep as the weight presses the floor."""


def held(last: Sole, falling: Sole, seconds: float) -> Sole:
    """Return where the floor holds a sole that would fall freely: below where it would be, it is in the air.

    The floor is a critically damped spring, under the force that the sole would fall with.

    Args:
        last: the sole at the begin.
        falling: where it would be in the end without a floor.
        seconds: the time between [s].
    """
    gained = falling.speed - last.speed
    start = last
    if last.height > 0.0:
        if falling.height >= 0.0:
            return Sole()
        in_air = last.height / (last.height - falling.height)
        start = Sole(0.0, min(last.speed + gained * in_air, 0.0))
        force, seconds = gained / seconds, seconds * (1.0 - in_air)
    else:
        force = min(gained / seconds, 0.0)  # it only pushes
    rest = force * GIVE_S**2
    off = start.height - rest
    slope = start.speed + off / GIVE_S
    fades = exp(-seconds / GIVE_S)
    return Sole(rest + (off + slope * seconds) * fades, (slope - (off + slope * seconds) / GIVE_S) * fades)
