"""The twenty terms of TorchRL's MicroDuckEnv in its order, with its defaults.

`yaw_rate` rewards the commanded yaw rate, which TorchRL has not; at a command of zero the two agree. `drift`
and the hop terms read the world frame, so that leaning earns no hop; TorchRL 0.14.1 read the body frame there
and changed it later. Costs are positive quantities: their weights are negative.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from microduck.rewards.features import Features
from microduck.rewards.registry import Params, register_reward


def gait_credit(features: Features, params: Params) -> Tensor:
    """Return how much of a gait bonus is paid: nothing when tipped over, more with progress."""
    floor = params["gait_progress_floor"]
    paid = floor + (1 - floor) * features["progress"].clamp(min=0)
    return paid * features["steady"]


def swing_time(features: Features, params: Params) -> Tensor:
    """Return what counts of the air times of the feet that have touched down, summed, (num_envs,) [s]."""
    least = params["air_time_min"].unsqueeze(-1)
    most = params["air_time_max"].unsqueeze(-1)
    return torch.minimum((features["touchdown_air_time"] - least).clamp(min=0), most - least).sum(-1)


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


@register_reward("turn", turn_rate=0.0, turn_rate_std=0.5)
def turn(features: Features, params: Params) -> Tensor:
    """Yaw rate on the one of the row, whatever the command."""
    error = features["angular_velocity"][..., 2] - params["turn_rate"]
    return torch.exp(-(error**2) / params["turn_rate_std"] ** 2)


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
    """Time a foot was in the air, paid at its touchdown [s]."""
    return swing_time(features, params) * gait_credit(features, params)


@register_reward("swing_height", weight=2.0, swing_target_height=0.02)
def swing_height(features: Features, params: Params) -> Tensor:
    """Height of the foot that the clock says is swinging."""
    left, right = features["foot_heights"].unbind(-1)
    swinging = torch.where(features["left_swings"], left, right)
    return (swinging / params["swing_target_height"]).clamp(0, 1) * gait_credit(features, params)


@register_reward("phase_contact", weight=3.0)
def phase_contact(features: Features, params: Params) -> Tensor:
    """Single support on the foot that the clock says is standing."""
    contacts, left_swings = features["contacts"], features["left_swings"]
    matches = (contacts[..., 0] != left_swings) & (contacts[..., 1] == left_swings)
    return matches * gait_credit(features, params)


@register_reward("double_support", weight=-1.0)
def double_support(features: Features, params: Params) -> Tensor:
    """Both feet on something."""
    return features["planted"] * gait_credit(features, params)


@register_reward("ang_vel_xy", weight=-0.05)
def ang_vel_xy(features: Features, params: Params) -> Tensor:
    """Roll and pitch rate, squared [rad^2/s^2]."""
    return features["angular_velocity"][..., :2].square().sum(-1)


@register_reward("lin_vel_z", weight=-2.0)
def lin_vel_z(features: Features, params: Params) -> Tensor:
    """Vertical velocity in the body frame, squared [m^2/s^2]."""
    return features["body_velocity"][..., 2].square()


@register_reward("action_rate", weight=-0.1)
def action_rate(features: Features, params: Params) -> Tensor:
    """Change of the action since the last step, squared."""
    return (features["action"] - features["previous_action"]).square().sum(-1)


@register_reward("joint_velocity", weight=-0.001)
def joint_velocity(features: Features, params: Params) -> Tensor:
    """Joint velocities, squared [rad^2/s^2]."""
    return features["joint_velocity"].square().sum(-1)


@register_reward("drift", drift_speed_scale=0.3)
def drift(features: Features, params: Params) -> Tensor:
    """Planar speed over the ground, up to one."""
    speed = features["world_velocity"][..., :2].norm(dim=-1)
    return (speed / params["drift_speed_scale"]).clamp(max=1)


@register_reward("hop_rhythm", hop_velocity_amplitude=0.1)
def hop_rhythm(features: Features, params: Params) -> Tensor:
    """Going up while the cosine of the clock is positive, down while it is negative."""
    beat = torch.cos(features["gait_phase"]).sign()
    rising = features["world_velocity"][..., 2] * beat / params["hop_velocity_amplitude"]
    return rising.clamp(-1, 1) * features["steady"]


@register_reward("launch", launch_velocity_scale=0.5)
def launch(features: Features, params: Params) -> Tensor:
    """Going up with both feet still down: the take-off of a hop."""
    rising = (features["world_velocity"][..., 2] / params["launch_velocity_scale"]).clamp(0, 1)
    return rising * (features["planted"] & features["steady"])


def aloft(features: Features) -> Tensor:
    """Return whether no foot is down and the trunk is upright, (k,) bool: tumbling is no flight."""
    return ~features["contacts"].any(-1) & features["steady"]


@register_reward("jump", jump_target_height=0.005)
def jump(features: Features, params: Params) -> Tensor:
    """Height above STAND with no foot down, so that tiptoeing earns nothing."""
    gain = (features["base_height"] - features["standing_height"]) / params["jump_target_height"]
    return gain.clamp(0, 1) * aloft(features)


@register_reward("termination", weight=-4.0, per_second=False)
def termination(features: Features, params: Params) -> Tensor:
    """The duck fell in this step."""
    return features["fallen"].to(features["upright"].dtype)
