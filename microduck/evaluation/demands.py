"""What a task asks of a duck, read from its row: its command box, its weights, never its name."""

from __future__ import annotations

from dataclasses import dataclass

from microduck.rewards import REWARD_TERMS
from microduck.tasks import MicroDuckTask, command_box
from microduck.tasks.validation import terms_of

STEP_TERMS = ("air_time", "swing_height", "phase_contact")
"""Reward terms that pay for lifting the feet in turn."""


@dataclass(frozen=True)
class Demands:
    """What one row asks for, besides following its command.

    Attributes:
        hops: whether it pays for height with no foot down.
        stands: whether it commands nothing and pays for nothing that moves.
        turn_rate: yaw rate that it pays for and its command does not show [rad/s].
    """

    hops: bool = False
    stands: bool = False
    turn_rate: float = 0.0


def demands(library: MicroDuckTask) -> list[Demands]:
    """Return the demands of every row of a library."""
    return [_of_row(row) for row in library.unbind(0)]


def _of_row(row: MicroDuckTask) -> Demands:
    weights = dict(zip(terms_of(row, REWARD_TERMS), row.reward_weights.tolist(), strict=True))
    low, high = command_box(row)
    hops = weights.get("jump", 0.0) > 0
    turns = weights.get("turn", 0.0) > 0 and not bool(row.yaw_rate_interval.any())
    turn_rate = round(float(row.params["turn_rate"]), 6) if turns else 0.0  # 0.3 is kept as 0.30000001
    steps = any(weights.get(term, 0.0) > 0 for term in STEP_TERMS)
    still = not bool(low.any()) and not bool(high.any())
    return Demands(hops, still and not (hops or steps or turn_rate), turn_rate)
