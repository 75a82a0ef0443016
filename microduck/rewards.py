"""Reward terms: small pure functions of features, and the registry that names them.

Weights live in task rows only. A term gets the features of one control step and the parameters of each
environment's row, and returns one value per environment, (num_envs,). Formulas and defaults are those of
TorchRL's MicroDuckEnv; `speed_error` and `heading` are ours and weigh zero unless a row says otherwise.

Features (num_envs first): body_velocity (3) and world_velocity (3) [m/s], angular_velocity (3) [rad/s, body],
upright () [cosine of the tilt], base_height () and standing_height () [m], heading () [rad, from the one to
keep], head_pitch () and head_yaw () [rad], joint_error (14) [rad], joint_velocity (14) [rad/s], action (14),
previous_action (14), contacts (2) [bool, left and right], foot_heights (2) [m], touchdown_air_time (2) [s,
zero except on touchdown], gait_phase () [rad], command (2) [m/s], yaw_rate_command () [rad/s], fallen ()
[bool]. Derived from them: command_speed () [m/s], walking () [bool, commanded to move], speed_along () [m/s,
along the command], progress () [speed_along as a part of the command, in -1 to 1; zero when standing],
left_swings () [bool, which foot the clock lifts; in the direction of travel].
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from hardware.errors import TaskError

Features = Mapping[str, Tensor]
Params = Mapping[str, Tensor]
TermFunction = Callable[[Features, Params], Tensor]

COMMAND_THRESHOLD = 0.01
"""Planar speeds up to this count as standing [m/s]."""
MIN_UPRIGHT = 0.35
"""Cosine of the tilt below which a duck has fallen, about 69.5 degrees."""


@dataclass(frozen=True)
class RewardTerm:
    """A registered term.

    Attributes:
        function: features and parameters to a value, (num_envs,).
        weight: default weight of a new row.
        per_second: whether the value is multiplied by the control period.
        params: its parameters and their defaults.
    """

    function: TermFunction
    weight: float
    per_second: bool
    params: dict[str, float]


REWARD_TERMS: dict[str, RewardTerm] = {}
"""Every term by name; a row's weights follow this order."""


def reward_params() -> dict[str, float]:
    """Return every parameter of the registered terms with its default."""
    return {name: value for term in REWARD_TERMS.values() for name, value in term.params.items()}


def register_reward(
    name: str, *, weight: float = 0.0, per_second: bool = True, **params: float
) -> Callable[[TermFunction], TermFunction]:
    """Return a decorator that registers a reward term.

    Args:
        name: name of the term, new.
        weight: default weight of rows made from now on.
        per_second: whether the value is multiplied by the control period.
        params: parameters a row may override, with their defaults; names new, values finite.

    Raises:
        TaskError: the name or a parameter is taken, or a number is not finite.
    """
    if name in REWARD_TERMS:
        raise TaskError(f"reward term {name!r} is registered already; choose another name")
    for key in params.keys() & reward_params().keys():
        raise TaskError(f"parameter {key!r} of term {name!r} belongs to another term; choose another name")
    for key, value in {"weight": weight, **params}.items():
        if not math.isfinite(value):
            raise TaskError(f"{key} of term {name!r} is {value}; it must be finite")

    def register(function: TermFunction) -> TermFunction:
        REWARD_TERMS[name] = RewardTerm(function, weight, per_second, dict(params))
        return function

    return register


def derive(measured: Features) -> dict[str, Tensor]:
    """Return the features with those that several terms share, so that these are computed once a step."""
    command = measured["command"]
    speed = command.norm(dim=-1)
    walking = speed > COMMAND_THRESHOLD
    along = (measured["body_velocity"][..., :2] * command).sum(-1) / speed.clamp(min=COMMAND_THRESHOLD)
    part = (along / speed.clamp(min=COMMAND_THRESHOLD)).clamp(-1, 1)
    sine = torch.sin(measured["gait_phase"])
    return {
        **measured,
        "command_speed": speed,
        "walking": walking,
        "speed_along": along,
        "progress": part * walking,
        "left_swings": torch.where(command[..., 0] < 0, -sine, sine) > 0,
    }


def _gait_gate(features: Features, params: Params) -> Tensor:
    """Return how much of a gait bonus is paid: nothing when tipped over, more with progress."""
    floor = params["gait_progress_floor"]
    paid = floor + (1 - floor) * features["progress"].clamp(min=0)
    return paid * (features["upright"] >= MIN_UPRIGHT)


@register_reward("tracking", weight=2.0, tracking_std=0.1, tracking_off_axis_std=0.05)
def tracking(features: Features, params: Params) -> Tensor:
    """Planar velocity on the command; tighter across it than along it."""
    total = (features["body_velocity"][..., :2] - features["command"]).square().sum(-1)
    along = (features["speed_along"] - features["command_speed"]).square()
    across = (total - along).clamp(min=0)
    walking = along / params["tracking_std"] ** 2 + across / params["tracking_off_axis_std"] ** 2
    standing = total / params["tracking_std"] ** 2
    return torch.exp(-torch.where(features["walking"], walking, standing))


@register_reward("yaw_rate", weight=1.0, yaw_rate_std=math.sqrt(0.5))
def yaw_rate(features: Features, params: Params) -> Tensor:
    """Yaw rate on the command."""
    error = features["angular_velocity"][..., 2] - features["yaw_rate_command"]
    return torch.exp(-(error**2) / params["yaw_rate_std"] ** 2)


@register_reward("head_level", weight=1.0, head_pitch_target=0.0, head_level_std=0.3)
def head_level(features: Features, params: Params) -> Tensor:
    """Gaze at the wanted pitch, straight ahead of the trunk."""
    pitch = features["head_pitch"] - params["head_pitch_target"]
    return torch.exp(-(pitch**2 + features["head_yaw"] ** 2) / params["head_level_std"] ** 2)


@register_reward("upright", weight=2.0, upright_std=math.sqrt(0.05))
def upright(features: Features, params: Params) -> Tensor:
    """Trunk upright."""
    tilt = torch.acos(features["upright"].clamp(-1, 1))
    return torch.exp(-(tilt**2) / params["upright_std"] ** 2)


@register_reward("pose", weight=1.0, pose_std=0.5)
def pose(features: Features, params: Params) -> Tensor:
    """Joints near STAND."""
    return torch.exp(-features["joint_error"].square().mean(-1) / params["pose_std"] ** 2)


@register_reward("progress", weight=2.0)
def progress(features: Features, params: Params) -> Tensor:
    """Speed along the command, paid up to the command."""
    return features["progress"]


@register_reward("air_time", weight=3.0, air_time_min=0.125, air_time_max=0.3, gait_progress_floor=0.5)
def air_time(features: Features, params: Params) -> Tensor:
    """Time a foot was in the air, paid at its touchdown."""
    least = params["air_time_min"].unsqueeze(-1)
    most = params["air_time_max"].unsqueeze(-1)
    paid = torch.minimum((features["touchdown_air_time"] - least).clamp(min=0), most - least)
    return paid.sum(-1) * _gait_gate(features, params)


@register_reward("swing_height", weight=2.0, swing_target_height=0.02)
def swing_height(features: Features, params: Params) -> Tensor:
    """Height of the foot that the clock says is swinging."""
    heights = features["foot_heights"]
    swinging = torch.where(features["left_swings"], heights[..., 0], heights[..., 1])
    return (swinging / params["swing_target_height"]).clamp(0, 1) * _gait_gate(features, params)


@register_reward("phase_contact", weight=3.0)
def phase_contact(features: Features, params: Params) -> Tensor:
    """Single support on the foot that the clock says is standing."""
    contacts, left_swings = features["contacts"], features["left_swings"]
    matches = (contacts[..., 0] != left_swings) & (contacts[..., 1] == left_swings)
    return matches * _gait_gate(features, params)


@register_reward("double_support", weight=-1.0)
def double_support(features: Features, params: Params) -> Tensor:
    """Both feet on something."""
    return features["contacts"].all(-1) * _gait_gate(features, params)


@register_reward("ang_vel_xy", weight=-0.05)
def ang_vel_xy(features: Features, params: Params) -> Tensor:
    """Roll and pitch rate."""
    return features["angular_velocity"][..., :2].square().sum(-1)


@register_reward("lin_vel_z", weight=-2.0)
def lin_vel_z(features: Features, params: Params) -> Tensor:
    """Vertical velocity in the body frame."""
    return features["body_velocity"][..., 2].square()


@register_reward("action_rate", weight=-0.1)
def action_rate(features: Features, params: Params) -> Tensor:
    """Change of the action since the last step."""
    return (features["action"] - features["previous_action"]).square().sum(-1)


@register_reward("joint_velocity", weight=-0.001)
def joint_velocity(features: Features, params: Params) -> Tensor:
    """Joint velocities."""
    return features["joint_velocity"].square().sum(-1)


@register_reward("termination", weight=-4.0, per_second=False)
def termination(features: Features, params: Params) -> Tensor:
    """The duck fell in this step."""
    return features["fallen"].to(features["upright"].dtype)


@register_reward("speed_error")
def speed_error(features: Features, params: Params) -> Tensor:
    """One at the commanded speed, falling linearly with the error relative to the command (at least 0.1 m/s).

    Unlike `progress` it costs to overshoot.
    """
    speed = features["command_speed"]
    error = (features["speed_along"] - speed).abs() / speed.clamp(min=0.1)
    return (1 - error).clamp(-1, 1) * features["walking"]


@register_reward("heading", heading_std=0.3)
def heading(features: Features, params: Params) -> Tensor:
    """Heading kept since reset; a commanded yaw rate moves the heading to keep along with it."""
    return torch.exp(-(features["heading"] ** 2) / params["heading_std"] ** 2)
