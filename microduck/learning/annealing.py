"""How much a policy may still explore, the further a run has come.

A robot gets the mean action. Trained with much noise about it, the noise is part of the walk: without it the
duck walks faster than it was told. So the deviation is bounded, and the bound falls before the end.
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
