"""The nine skills once more, for a policy that can do them: how they are done now counts.

For a run that starts from one of `nine_skills`: what found the motion stays, and on top of it come the mean
velocity, which is what a user asks for, the posture, since a crouch heats the servos, and smaller changes of
the action.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from microduck.learning.nine_skills import nine_skills
from microduck.tasks import MicroDuckTask

Change = tuple[Mapping[str, float], Mapping[str, float]]
"""Reward weights, and task fields or reward parameters, by name."""

STEPS: Change = ({"mean_velocity": 3.0, "pose": 2.0, "action_rate": -0.3}, {})
SIDESTEPS: Change = ({**STEPS[0], "mean_velocity": 6.0}, {"mean_velocity_std": 0.04})
# Wide, since a tight pose is not felt from a crouch.
STANDS: Change = (
    {"mean_velocity": 2.0, "pose": 6.0, "drift": -3.0},
    {"pose_std": 0.4, "weight": 1.5},
)
# The clock goes as fast as the duck bounces on its servos.
HOPS: Change = (
    {"mean_velocity": 6.0, "heading_hold": 4.0, "upright": 2.0},
    {"gait_frequency_hz": 3.5, "weight": 1.5},
)
CHANGES: dict[str, Change] = {
    "walk": STEPS,
    "stand": STANDS,
    "walk_backward": STEPS,
    "sidestep_left": SIDESTEPS,
    "sidestep_right": SIDESTEPS,
    "turn_left": STEPS,
    "turn_right": STEPS,
    "hop": HOPS,
    "hop_forward": HOPS,
}


def polish() -> list[MicroDuckTask]:
    """Return the rows of the second library."""
    return [changed(row, *CHANGES[row.name]) for row in nine_skills()]


def changed(row: MicroDuckTask, weights: Mapping[str, float], values: Mapping[str, Any]) -> MicroDuckTask:
    """Return a row with other weights, and other fields or parameters, of those that it has."""
    row = row.clone()
    terms = row.reward_terms.split(",")
    for term, weight in weights.items():
        row.reward_weights[terms.index(term)] = weight
    for name, value in values.items():
        (row.params if name in row.params else row).set(name, torch.tensor(value))
    return row
