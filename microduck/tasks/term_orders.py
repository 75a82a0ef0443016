"""What the weights of archives without term names belong to: the orders that were ever written so.

An order is told by the number of weights and the names of the parameters. Both are history and never change.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from hardware.errors import ArchiveError


@dataclass(frozen=True)
class TermOrder:
    """What an archive's weights and parameters are.

    Attributes:
        source: who says so.
        terms: names of the reward terms in the order of the weights, as they are called today.
        params: names of the parameters.
        renamed: what some of these parameters are called today.
    """

    source: str
    terms: tuple[str, ...]
    params: frozenset[str]
    renamed: Mapping[str, str] = field(default_factory=dict)


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_GAIT = _words(
    "upright pose progress air_time swing_height phase_contact double_support ang_vel_xy lin_vel_z "
    "action_rate joint_velocity"
)
_HOP = _words("drift hop_rhythm launch jump")
_GAIT_PARAMS = _words(
    "tracking_std tracking_off_axis_std yaw_rate_std upright_std pose_std air_time_min air_time_max "
    "gait_progress_floor swing_target_height"
)
_HOP_PARAMS = _words("drift_speed_scale hop_velocity_amplitude launch_velocity_scale jump_target_height")
_HEAD_PARAMS = _words("head_pitch_target head_level_std")

KNOWN_ORDERS = (
    TermOrder(
        "this toolkit, before libraries named their terms",
        ("tracking", "yaw_rate", "head_level", *_GAIT, "termination", "speed_error", "heading_hold"),
        frozenset({*_GAIT_PARAMS, *_HEAD_PARAMS, "heading_std"}),
        {"heading_std": "heading_hold_std"},
    ),
    TermOrder(
        "TorchRL 0.14.1",
        ("tracking", "yaw_rate", *_GAIT, *_HOP, "termination"),
        frozenset({*_GAIT_PARAMS, *_HOP_PARAMS}),
    ),
    TermOrder(
        "TorchRL after 0.14.1",
        ("tracking", "yaw_rate", "turn", "head_level", *_GAIT, *_HOP, "termination"),
        frozenset({*_GAIT_PARAMS, *_HOP_PARAMS, *_HEAD_PARAMS, "turn_rate", "turn_rate_std"}),
    ),
)


def find_order(count: int, params: Collection[str]) -> TermOrder:
    """Return the order in which an archive's unnamed weights stand.

    Args:
        count: number of weights in a row.
        params: names of the archive's parameters.

    Raises:
        ArchiveError: no release wrote such rows.
    """
    for order in KNOWN_ORDERS:
        if len(order.terms) == count and order.params == set(params):
            return order
    known = [
        f"{len(order.terms)} weights and {len(order.params)} params ({order.source})"
        for order in KNOWN_ORDERS
    ]
    raise ArchiveError(
        f"reward_weights has {count} values and params has {sorted(params)}, but no term is named; such "
        f"archives are known with {', '.join(known)}; save this one again with save_library where its terms "
        "are registered"
    )
