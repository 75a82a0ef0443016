"""What changes while a run goes on: how much a policy may still explore, and how much its ducks differ.

A robot gets the mean action. Trained with much noise about it, the noise is part of the walk: without it
the duck walks faster than it was told. So the deviation is bounded, and the bound falls before the end.
Ducks that all differ come once the nominal one can be driven: from the start, they keep a policy from
learning at all.
"""

from __future__ import annotations

FREE = 0.3
"""Part of a run in which nothing is bounded below the initial deviation: the motion has to be found first."""
DONE = 0.9
"""Part of a run after which the bound stays."""


def most_std(initial: float, final: float, progress: float) -> float:
    """Return the most standard deviation at a part `progress` of a run, in action units.

    Args:
        initial: at the start, and until `FREE`.
        final: from `DONE` on; between the two the bound falls by equal factors in equal times.
        progress: part of the run that is done, from 0.
    """
    fallen = min(max((progress - FREE) / (DONE - FREE), 0.0), 1.0)
    return initial * (final / initial) ** fallen


DIFFER_FROM, DIFFER_FULLY = 0.15, 0.45
"""Parts of a run at which ducks begin to differ, and from which on they differ as much as they ever will."""


def randomization(progress: float) -> float:
    """Return how much of the randomisation is on at a part `progress` of a run, in [0, 1]."""
    return min(max((progress - DIFFER_FROM) / (DIFFER_FULLY - DIFFER_FROM), 0.0), 1.0)
