"""Figures of one command of one task, from the tally of its episodes."""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot

import torch
from torch import Tensor

from hardware.contract import CONTROL_PERIOD_S
from hardware.servo import STALL_TORQUE
from microduck.evaluation.commands import Command
from microduck.evaluation.tally import Tally
from microduck.rewards import COMMAND_THRESHOLD

GRAVITY = 9.81
"""[m/s2]"""
LEAST_SPEED = 0.05
"""Mean speed below which a duck gets nowhere, and a cost of transport means nothing [m/s]."""


@dataclass(frozen=True)
class Wanted:
    """What the episodes of one command were told.

    Attributes:
        command: vx, vy, yaw rate [m/s, m/s, rad/s].
        yaw_rate: what the duck should turn at, by its command or by its row's reward [rad/s].
    """

    command: Command
    yaw_rate: float

    @property
    def speed(self) -> float:
        """Planar speed of the command [m/s]."""
        return hypot(*self.command[:2])


@dataclass(frozen=True)
class Figures:
    """Result for one task and command: means over its episodes, each for as long as its duck is upright.

    Velocities and turn rates leave the first second out, since a duck starts at rest.

    Attributes:
        command: vx, vy, yaw rate [m/s, m/s, rad/s].
        yaw_rate: yaw rate that is wanted, by the command or by the row's reward [rad/s].
        episodes: number of episodes.
        survival: part of the episodes without a fall.
        speed: velocity along the command, or mean planar speed at zero command [m/s].
        speed_std: standard deviation of the episodes' speeds [m/s].
        speed_error: mean distance of an episode's speed from the command [m/s].
        speed_error_worst: largest such distance [m/s].
        across: mean size of an episode's velocity across its command, 0 at zero command [m/s].
        turn_rate: turn rate [rad/s].
        turn_rate_std: standard deviation of the episodes' turn rates [rad/s].
        turn_rate_error: mean distance of an episode's turn rate from the wanted one [rad/s].
        heading_drift_p95: 95th percentile of the final heading's distance from where the wanted yaw rate
            leads [rad].
        planar_drift_p95: 95th percentile of the distance between start and end [m].
        airborne: part of the time with no foot down.
        double_support: part of the time with both feet down.
        flights_per_s: flights of 40 ms or more in a second [1/s].
        apex: mean height of the base above STAND at the top of such a flight [m]; None without any.
        clearance: mean greatest height of the lower sole in such a flight [m]; None without any.
        foot_height: mean of the highest point of each foot's site [m].
        foot_slip: mean planar speed of feet that stay down [m/s].
        head_pitch: mean size of the gaze's angle to the horizontal [rad].
        power: mean of the joints' summed |torque x velocity|; braking counts [W].
        cost_of_transport: that power per weight and speed; None where the duck gets nowhere.
        action_rate: root mean square change of the action per step.
        torque_p95: 95th percentile of each joint's torque, to a hundredth of the servo's limit, (14,) [N m].
        torque_max: largest torque of each joint, likewise [N m].
        hard: part of the time in which a joint is over 90 % of the servo's torque limit.
    """

    command: Command
    yaw_rate: float
    episodes: int
    survival: float
    speed: float
    speed_std: float
    speed_error: float
    speed_error_worst: float
    across: float
    turn_rate: float
    turn_rate_std: float
    turn_rate_error: float
    heading_drift_p95: float
    planar_drift_p95: float
    airborne: float
    double_support: float
    flights_per_s: float
    apex: float | None
    clearance: float | None
    foot_height: float
    foot_slip: float
    head_pitch: float
    power: float
    cost_of_transport: float | None
    action_rate: float
    torque_p95: tuple[float, ...]
    torque_max: tuple[float, ...]
    hard: float

    @property
    def commanded_speed(self) -> float:
        """Planar speed of the command [m/s]."""
        return hypot(*self.command[:2])


def figures(tally: Tally, rows: slice, wanted: Wanted, mass: float) -> Figures:
    """Return the figures of the episodes `rows` of a tally.

    Args:
        tally: of a batch of episodes.
        rows: those of one command.
        wanted: that command.
        mass: of a duck [kg].
    """
    sums = {name: values[rows] for name, values in tally.sums.items()}
    steps = tally.steps[rows].sum().clamp(min=1)
    mean = {name: float(values.sum() / steps) for name, values in sums.items()}
    speed, across = _speeds(sums, tally.settled[rows].clamp(min=1), wanted)
    turn = sums["turned"] / (tally.settled[rows].clamp(min=1) * CONTROL_PERIOD_S)
    flights = tally.flights[rows].sum()
    reached, speed_std, speed_error = _spread(speed, wanted.speed)
    turn_rate, turn_rate_std, turn_rate_error = _spread(turn, wanted.yaw_rate)
    torque_p95, torque_max = _torques(tally.torques[rows].sum(0))
    drift = (tally.place[rows] - tally.start[rows]).norm(dim=-1)
    gets_somewhere = wanted.speed > COMMAND_THRESHOLD and reached >= LEAST_SPEED
    return Figures(
        command=wanted.command,
        yaw_rate=wanted.yaw_rate,
        episodes=len(speed),
        survival=float(tally.alive[rows].float().mean()),
        speed=reached,
        speed_std=speed_std,
        speed_error=speed_error,
        speed_error_worst=float((speed - wanted.speed).abs().max()),
        across=float(across.mean()),
        turn_rate=turn_rate,
        turn_rate_std=turn_rate_std,
        turn_rate_error=turn_rate_error,
        heading_drift_p95=float(tally.heading[rows].abs().quantile(0.95)),
        planar_drift_p95=float(drift.quantile(0.95)),
        airborne=mean["airborne"],
        double_support=mean["double_support"],
        flights_per_s=float(flights / (steps * CONTROL_PERIOD_S)),
        apex=float(tally.apex[rows].sum() / flights) if flights else None,
        clearance=float(tally.clearance[rows].sum() / flights) if flights else None,
        foot_height=float(tally.foot_height[rows].mean()),
        foot_slip=float(sums["slip"].sum() / sums["feet_down"].sum().clamp(min=1)),
        head_pitch=mean["head_pitch"],
        power=mean["power"],
        cost_of_transport=mean["power"] / (mass * GRAVITY * reached) if gets_somewhere else None,
        action_rate=mean["action_change"] ** 0.5,
        torque_p95=torque_p95,
        torque_max=torque_max,
        hard=mean["hard"],
    )


def _speeds(sums: dict[str, Tensor], steps: Tensor, wanted: Wanted) -> tuple[Tensor, Tensor]:
    """Return each episode's speed along the command and the size of that across it, (k,) [m/s]."""
    if wanted.speed <= COMMAND_THRESHOLD:
        return sums["pace"] / steps, torch.zeros_like(steps)
    vx, vy = (component / wanted.speed for component in wanted.command[:2])
    forward, left = sums["forward"] / steps, sums["left"] / steps
    return forward * vx + left * vy, (left * vx - forward * vy).abs()


def _spread(values: Tensor, wanted: float) -> tuple[float, float, float]:
    """Return mean, standard deviation, and mean distance from what is wanted."""
    error = (values - wanted).abs().mean()
    return float(values.mean()), float(values.std(correction=0)), float(error)


def _torques(counts: Tensor) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the 95th percentile and the largest of each joint's torques, up to a hundredth of the limit.

    Args:
        counts: steps by torque, (14, bins).
    """
    shares = counts.cumsum(-1) / counts.sum(-1, keepdim=True).clamp(min=1)
    p95 = (shares < 0.95).sum(-1)
    most = torch.where(counts > 0, torch.arange(counts.shape[-1]), 0).amax(-1)
    first, second = (
        tuple((place + 1) * STALL_TORQUE / 100 for place in places.tolist()) for places in (p95, most)
    )
    return first, second
