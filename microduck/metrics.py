"""Figures of recorded episodes: how well ducks did their task.

`trajectory_metrics` has the keys and meaning of TorchRL's `MicroDuckEnv.trajectory_metrics`, and some more.
"""

from __future__ import annotations

import torch
from tensordict import TensorDictBase
from torch import Tensor

from hardware import contract
from hardware.errors import TaskError

LEAST_SPEED = 0.1
"""Velocity errors are judged against the commanded speed, but at least against this [m/s]."""
HOPS = 2
"""An episode hops when it has this many take-offs and landings."""
SHORTEST_TIME = 1e-6
"""Put in place of a time of zero, to divide by [s]."""


def planar_score(velocity: Tensor, command: Tensor) -> Tensor:
    """Return how well planar velocities meet their commands, (...), in [0, 1].

    It is 1 - |v - c| / max(|c|, 0.1 m/s), and 0 at least.

    Args:
        velocity: of the base, body frame, (..., 2) [m/s].
        command: wanted, (..., 2) [m/s].
    """
    error = (velocity - command).norm(dim=-1)
    return 1 - (error / command.norm(dim=-1).clamp(min=LEAST_SPEED)).clamp(max=1)


def trajectory_metrics(trajectories: TensorDictBase, *, jumping: bool = False) -> dict[str, float]:
    """Return figures over a padded batch of whole episodes, such as TorchRL's Evaluator collects.

    Means are over valid steps; survival, extremes, displacement and heading rates are per episode. Speeds are
    in m/s, angles in rad. With `diagnostics=True` the environment adds the figures of head, hops, travel and
    actions. `task_score` is `planar_score`, or the time in the air for `jumping`.

    Args:
        trajectories: (..., time), with the mask of valid steps, (..., time) bool, under
            `("collector", "mask")`; the valid steps of an episode come first.
        jumping: score the time in the air instead of the velocity.

    Raises:
        TaskError: there is no mask, it does not fit, or an episode has no valid step; or the velocity is not
            in the recording.
    """
    steps = _Steps(trajectories)
    airborne = steps.airborne()
    metrics = _tracking(steps, airborne, jumping)
    if steps.has("head_pitch"):
        metrics |= _head(steps) | _hops(steps, airborne)
    if steps.has("position_x"):
        metrics |= _travel(steps)
    if steps.has("action_rate_rms"):
        metrics |= _actions(steps)
    return metrics


class _Steps:
    """A padded recording: what its steps hold, and means over the valid ones."""

    def __init__(self, trajectories: TensorDictBase) -> None:
        self._all, self._keys = trajectories, set(trajectories.keys(True))
        self.mask = self._valid()
        self.lengths = self.mask.sum(-1)
        self.pairs = self.mask[..., 1:] & self.mask[..., :-1]
        self.command = trajectories["command"]
        self.velocity = self._planar_velocity()

    def _valid(self) -> Tensor:
        if ("collector", "mask") not in self._keys:
            raise TaskError(
                "the trajectories have no mask ('collector', 'mask') of valid steps; record them with "
                "TorchRL's Evaluator, or with a Collector that has split_trajs=True"
            )
        mask, shape = self._all["collector", "mask"], tuple(self._all.batch_size)
        if tuple(mask.shape) != shape or mask.dtype != torch.bool:
            raise TaskError(
                f"the mask is {mask.dtype} of shape {tuple(mask.shape)}; "
                f"one torch.bool per step, {shape}, is needed"
            )
        if mask.numel() == 0 or not bool(mask[..., 0].all()):
            raise TaskError(
                f"trajectories of shape {shape} hold an empty episode; every one needs a valid first step"
            )
        if bool((mask[..., 1:] & ~mask[..., :-1]).any()):
            raise TaskError(
                "the mask has gaps; the valid steps of an episode must come first, without a break"
            )
        return mask

    def _planar_velocity(self) -> Tensor:
        """Return the velocity after each step, (..., time, 2) [m/s, body frame]."""
        if self.has("body_velocity_x"):
            return torch.stack([self.diagnostic(f"body_velocity_{axis}") for axis in "xy"], dim=-1)
        observation = self._all["next", "observation"]
        width = observation.shape[-1]
        if width != contract.width("state"):
            raise TaskError(
                f"an observation of {width} values does not hold the velocity; record with diagnostics=True, "
                "or with layout='state'"
            )
        start = contract.offsets("state")["linear_velocity"]
        return observation[..., start : start + 2]

    def has(self, name: str) -> bool:
        """Return whether a diagnostic was recorded."""
        return ("next", f"diagnostic_{name}") in self._keys

    def diagnostic(self, name: str) -> Tensor:
        """Return a diagnostic, (..., time)."""
        return self._all["next", f"diagnostic_{name}"][..., 0]

    def airborne(self) -> Tensor:
        """Return at which steps no foot touches anything; never, where contacts were not recorded."""
        if not self.has("left_foot_contact"):
            return torch.zeros_like(self.mask)
        return (self.diagnostic("left_foot_contact") < 0.5) & (self.diagnostic("right_foot_contact") < 0.5)

    def yaw_rate_error(self) -> dict[str, float]:
        """Return the mean error of the yaw rate, where both it and its command were recorded."""
        if not self.has("yaw_rate") or "yaw_rate_command" not in self._keys:
            return {}
        error = self.diagnostic("yaw_rate") - self._all["yaw_rate_command"][..., 0]
        return {"yaw_rate_error": self.mean(error.abs())}

    def mean(self, values: Tensor) -> float:
        """Return the mean of values (..., time) over all valid steps."""
        return float(values[self.mask].float().mean())

    def mean_of_pairs(self, values: Tensor) -> float:
        """Return the mean of values (..., time - 1) between two valid steps; zero where there are none."""
        return float(values[self.pairs].sum() / self.pairs.sum().clamp(min=1))

    def at_end(self, values: Tensor) -> Tensor:
        """Return the values (..., time) at the last valid step of each episode, (...)."""
        return values.gather(-1, (self.lengths - 1).unsqueeze(-1)).squeeze(-1)

    def survived(self) -> Tensor:
        """Return which episodes did not end in a fall, (...)."""
        return ~self.at_end(self._all["next", "terminated"][..., 0])


def _tracking(steps: _Steps, airborne: Tensor, jumping: bool) -> dict[str, float]:
    score = airborne.float() if jumping else planar_score(steps.velocity, steps.command)
    per_episode = torch.where(steps.mask, score, 0).sum(-1) / steps.lengths
    return {
        "tracking_error": steps.mean((steps.velocity - steps.command).norm(dim=-1)),
        "forward_speed": steps.mean(steps.velocity[..., 0]),
        "lateral_speed": steps.mean(steps.velocity[..., 1]),
        "airborne_fraction": steps.mean(airborne),
        "survival_rate": float(steps.survived().float().mean()),
        "episode_length_min": float(steps.lengths.min()),
        "task_score": steps.mean(score),
        "task_score_min": float(per_episode.min()),
    }


def _head(steps: _Steps) -> dict[str, float]:
    metrics: dict[str, float] = {}
    for name in ("head_pitch", "head_yaw", "yaw_rate"):
        value = steps.diagnostic(name)
        metrics |= {name: steps.mean(value), f"{name}_abs": steps.mean(value.abs())}
        if name != "yaw_rate":
            metrics[f"{name}_abs_p95"] = float(value[steps.mask].abs().quantile(0.95))
    return metrics


def _hops(steps: _Steps, airborne: Tensor) -> dict[str, float]:
    before, after = airborne[..., :-1], airborne[..., 1:]
    takeoffs = (after & ~before & steps.pairs).sum(-1)
    landings = (before & ~after & steps.pairs).sum(-1)
    height = steps.diagnostic("height_gain").masked_fill(~steps.mask, -torch.inf)
    return {
        "hop_height_max": float(height.amax(-1).mean()),
        "planar_speed": steps.mean(steps.velocity.norm(dim=-1)),
        "takeoffs_per_episode": float(takeoffs.float().mean()),
        "landings_per_episode": float(landings.float().mean()),
        "hopping_episode_fraction": float(((takeoffs >= HOPS) & (landings >= HOPS)).float().mean()),
    }


def _travel(steps: _Steps) -> dict[str, float]:
    position = torch.stack([steps.diagnostic("position_x"), steps.diagnostic("position_y")], dim=-1)
    distance = (position - position[..., :1, :]).norm(dim=-1)
    time, heading = steps.diagnostic("time"), steps.diagnostic("heading")
    elapsed = steps.at_end(time - time[..., :1]).clamp(min=SHORTEST_TIME)
    drift = steps.at_end(distance) / elapsed
    turn = heading.diff(dim=-1)
    turn = torch.where(steps.pairs, torch.atan2(turn.sin(), turn.cos()), 0)
    turn_rate = turn.sum(-1) / elapsed
    velocity = position.diff(dim=-2) / time.diff(dim=-1).clamp(min=SHORTEST_TIME).unsqueeze(-1)
    forward, left = _turned_back(velocity, heading[..., :-1] + turn / 2)
    return {
        "drift_speed": float(drift.mean()),
        "drift_speed_max": float(drift.max()),
        "displacement_max": float(distance[steps.mask].max()),
        "heading_rate": float(turn_rate.mean()),
        "heading_rate_min": float(turn_rate.min()),
        "heading_rate_max": float(turn_rate.max()),
        "ground_forward_speed": steps.mean_of_pairs(forward),
        "ground_lateral_speed": steps.mean_of_pairs(left),
    }


def _turned_back(velocity: Tensor, heading: Tensor) -> tuple[Tensor, Tensor]:
    """Return the forward and the left part of world velocities (..., 2) for headings (...)."""
    x, y = velocity.unbind(-1)
    cos, sin = heading.cos(), heading.sin()
    return x * cos + y * sin, y * cos - x * sin


def _actions(steps: _Steps) -> dict[str, float]:
    """Return figures that TorchRL lacks: how rough and large the actions are, and how well turns are met."""
    return {
        "action_rate_rms": steps.mean(steps.diagnostic("action_rate_rms").square()) ** 0.5,
        "action_saturation": steps.mean(steps.diagnostic("action_saturation_fraction")),
        **steps.yaw_rate_error(),
    }
