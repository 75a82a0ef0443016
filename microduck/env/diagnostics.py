"""The `diagnostic_*` keys: what a step earned by each term, and how the duck moved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from hardware import rotations
from hardware.contract import ActionMap
from microduck.env.measure import MIN_HEIGHT_RATIO
from microduck.randomization.ducks import Ducks, NominalDucks
from microduck.randomization.parameters import PARAMETERS
from microduck.rewards import MIN_UPRIGHT

SATURATED = 0.99
"""Actions of at least this size count as saturated."""
NUMBERS = (
    "height",
    "upright",
    "pitch",
    "roll",
    "body_velocity_x",
    "body_velocity_y",
    "body_velocity_z",
    "action_saturation_fraction",
    "target_clamp_fraction",
    "action_rate_rms",
    "left_foot_contact",
    "right_foot_contact",
    "left_foot_height",
    "right_foot_height",
    "head_pitch",
    "head_yaw",
    "yaw_rate",
    "height_gain",
    "position_x",
    "position_y",
    "time",
    "heading",
)
"""Of each step, (num_envs, 1) float32, in SI units and radians."""
WHEREABOUTS = ("diagnostic_position_x", "diagnostic_position_y", "diagnostic_heading", "diagnostic_time")
"""Of `NUMBERS`, those that tell where and when the duck is."""
FAILURES = ("height", "upright", "nonfinite")
"""Why an episode was terminated, (num_envs, 1) bool, as `diagnostic_<name>_failure`."""


def keys(terms: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the names of the float and of the bool keys, for a registry's terms."""
    numbers = [f"diagnostic_reward_{name}" for name in terms] + [f"diagnostic_{name}" for name in NUMBERS]
    return numbers, [f"diagnostic_{name}_failure" for name in FAILURES]


def property_widths() -> dict[str, int]:
    """Return the keys that an environment with randomisation adds, and how wide they are."""
    widths = {f"diagnostic_randomized_{parameter.name}": parameter.width for parameter in PARAMETERS}
    return {**widths, "diagnostic_push": 2}


def properties(ducks: NominalDucks, ids: Tensor) -> dict[str, Tensor]:
    """Return what ducks `ids` (k,) are and how this step pushed them [m/s], by key, (k, width) each."""
    if not isinstance(ducks, Ducks):
        return {}
    told = {f"randomized_{name}": value for name, value in ducks.properties().items()}
    told["push"] = ducks.pushes.last
    return {f"diagnostic_{name}": value[ids].float().reshape(len(ids), -1) for name, value in told.items()}


def motion(features: Mapping[str, Tensor], action_map: ActionMap, time: Tensor) -> dict[str, Tensor]:
    """Return `NUMBERS` and the height and upright failures by key, (k, 1) each.

    Args:
        features: of the step.
        action_map: tells which targets the joint ranges cut.
        time: simulated since the reset, (k,) [s].
    """
    pitch, roll = rotations.pitch_roll(features["quaternion"])
    action, height = features["action"], features["base_height"]
    change = action - features["previous_action"]
    values = {
        "height": height,
        "upright": features["upright"],
        "pitch": pitch,
        "roll": roll,
        **_columns("body_velocity", features["body_velocity"], "xyz"),
        "action_saturation_fraction": (action.abs() >= SATURATED).float().mean(-1),
        "target_clamp_fraction": action_map.cut(action).float().mean(-1),
        "action_rate_rms": change.square().mean(-1).sqrt(),
        "left_foot_contact": features["contacts"][:, 0].float(),
        "right_foot_contact": features["contacts"][:, 1].float(),
        "left_foot_height": features["foot_heights"][:, 0],
        "right_foot_height": features["foot_heights"][:, 1],
        "head_pitch": features["head_pitch"],
        "head_yaw": features["head_yaw"],
        "yaw_rate": features["angular_velocity"][:, 2],
        "height_gain": height - features["standing_height"],
        **_columns("position", features["position"], "xy"),
        "time": time.float(),
        "heading": rotations.heading(features["quaternion"]),
        "height_failure": height < MIN_HEIGHT_RATIO * features["standing_height"],
        "upright_failure": features["upright"] < MIN_UPRIGHT,
    }
    # Columns of a table copied out: TorchRL handles each key by itself, which strides make many times slower.
    return {f"diagnostic_{name}": value.contiguous().unsqueeze(-1) for name, value in values.items()}


def _columns(name: str, value: Tensor, axes: str) -> dict[str, Tensor]:
    return {f"{name}_{axis}": value[:, column] for column, axis in enumerate(axes)}


def earnings(weighted: Tensor, columns: list[int], terms: Iterable[str]) -> dict[str, Tensor]:
    """Return what every registered term added to the reward, by key, (k, 1) each.

    Args:
        weighted: values times weights of the terms in use, (k, len(columns)).
        columns: their places among `terms`.
        terms: names of all registered terms; the ones not in use added nothing.
    """
    names = list(terms)
    table = torch.zeros(len(names), len(weighted), device=weighted.device)
    table[columns] = weighted.T
    return {f"diagnostic_reward_{name}": row.unsqueeze(-1) for name, row in zip(names, table, strict=True)}
