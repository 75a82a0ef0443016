"""Our own terms, which walkers need; they weigh zero unless a row says otherwise.

The costs among them (from `foot_slip` to `flat_foot`) are positive quantities: give them negative weights.
"""

from __future__ import annotations

import torch
from torch import Tensor

from microduck.rewards.features import Features
from microduck.rewards.registry import Params, register_reward
from microduck.rewards.terms import aloft, swing_time


@register_reward("speed_error")
def speed_error(features: Features, params: Params) -> Tensor:
    """One at the commanded speed, falling linearly with the error relative to the command (at least 0.1 m/s).

    Unlike `progress` it costs to overshoot.
    """
    speed = features["command_speed"]
    error = (features["speed_along"] - speed).abs() / speed.clamp(min=0.1)
    return (1 - error).clamp(-1, 1) * features["walking"]


@register_reward("heading_hold", heading_hold_std=0.3)
def heading_hold(features: Features, params: Params) -> Tensor:
    """Heading kept since reset; a commanded yaw rate moves the heading to keep along with it."""
    return torch.exp(-(features["heading"] ** 2) / params["heading_hold_std"] ** 2)


@register_reward("foot_slip")
def foot_slip(features: Features, params: Params) -> Tensor:
    """Speed of the feet that stay down, squared [m^2/s^2].

    A foot must have touched a step ago as well: just after touchdown, its mean speed is still that of the
    swing.
    """
    stays = features["contacts"] & features["previous_contacts"]
    return (features["foot_speed"].square() * stays).sum(-1)


@register_reward("foot_clearance", clearance_target_height=0.02)
def foot_clearance(features: Features, params: Params) -> Tensor:
    """Height that moving feet lack, times their speed [m^2/s]: shuffling costs, standing does not."""
    lacking = (params["clearance_target_height"].unsqueeze(-1) - features["foot_heights"]).clamp(min=0)
    return (lacking * features["foot_speed"]).sum(-1)


@register_reward("torque")
def torque(features: Features, params: Params) -> Tensor:
    """Torques of the joints, squared [N^2 m^2]: what heats the servos, standing included."""
    return features["joint_torque"].square().sum(-1)


@register_reward("power")
def power(features: Features, params: Params) -> Tensor:
    """Mechanical power of the joints [W]; braking counts, since a servo recovers nothing."""
    return (features["joint_torque"] * features["joint_velocity"]).abs().sum(-1)


@register_reward("joint_limit", joint_limit_margin=0.1)
def joint_limit(features: Features, params: Params) -> Tensor:
    """How far joints are inside the margin [rad] at the ends of their ranges, or beyond, summed [rad]."""
    margin = params["joint_limit_margin"].unsqueeze(-1)
    return (margin - features["joint_limit_distance"]).clamp(min=0).sum(-1)


@register_reward("self_collision")
def self_collision(features: Features, params: Params) -> Tensor:
    """Number of contacts between parts of the duck."""
    return features["self_contacts"].to(features["upright"].dtype)


@register_reward("action_acceleration")
def action_acceleration(features: Features, params: Params) -> Tensor:
    """Change of the action's change, squared: jerky motion, while a steady sweep costs nothing."""
    change = features["action"] - features["previous_action"]
    earlier_change = features["previous_action"] - features["earlier_action"]
    return (change - earlier_change).square().sum(-1)


@register_reward("flat_foot")
def flat_foot(features: Features, params: Params) -> Tensor:
    """Tilt of the soles from their attitude in STAND, squared [rad^2]."""
    return features["foot_tilt"].square().sum(-1)


@register_reward("air_time_moving")
def air_time_moving(features: Features, params: Params) -> Tensor:
    """As `air_time`, whose parameters it reads, but in proportion to progress: nothing in place [s]."""
    return swing_time(features, params) * features["progress"].clamp(min=0) * features["steady"]


@register_reward("flight")
def flight(features: Features, params: Params) -> Tensor:
    """No foot down, trunk upright."""
    return aloft(features).to(features["upright"].dtype)


@register_reward("single_support")
def single_support(features: Features, params: Params) -> Tensor:
    """One foot down and the other not: a step, where a hop was asked for."""
    return (features["contacts"].sum(-1) == 1).to(features["upright"].dtype)


@register_reward("soar", soar_floor=0.01, soar_height=0.01)
def soar(features: Features, params: Params) -> Tensor:
    """Height above STAND beyond `soar_floor` with no foot down: one high hop earns more than two low ones."""
    gain = features["base_height"] - features["standing_height"] - params["soar_floor"]
    return (gain / params["soar_height"]).clamp(0, 1) * aloft(features)


@register_reward("mean_velocity", mean_velocity_std=0.05)
def mean_velocity(features: Features, params: Params) -> Tensor:
    """Mean planar velocity on the command, one to zero.

    Within a step sideways or a hop the velocity swings by more than the commands differ; `tracking` and
    `speed_error`, which look at a moment, then hardly tell one mean from another.
    """
    error = features["mean_velocity_error"].square().sum(-1)
    return torch.exp(-error / params["mean_velocity_std"] ** 2)
