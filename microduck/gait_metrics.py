"""Whether a duck really walked, from the record of one episode."""

from __future__ import annotations

from typing import Any

import torch
from tensordict import TensorDictBase
from torch import Tensor

from hardware import contract
from hardware.errors import TaskError

SUPPORT_STEPS = 4
"""A swing phase counts when the other foot alone carries the duck for this many control steps."""
SWING_PHASES = 4
"""A walk has this many such phases of each foot."""
WALKING_PITCH = 0.2
"""A walk keeps the trunk within this pitch [rad]."""


def gait_metrics(rollout: TensorDictBase) -> dict[str, float]:
    """Return whether one duck walked, judged by its feet: a pitching trunk moves a duck too.

    A swing phase is a stretch of the gait clock that has one foot swing. It counts when that foot was in the
    air and the other on the ground for at least 4 control steps. The duck walked (`walking`) when it
    survived, had 4 such phases of each foot, kept its pitch under 0.2 rad, and on the whole moved in the
    direction of its command. The definition is that of TorchRL's MicroDuck examples.

    Args:
        rollout: one episode of one duck in an environment with `diagnostics=True`, (time,) or (1, time).

    Returns:
        `survived`, `episode_length` [control steps], `forward_speed` [m/s, body frame], `max_abs_pitch`
        [rad] and `walking`; of the left and right foot each `<side>_swing_phases`,
        `<side>_single_support_steps` and `<side>_foot_height_max` [m].

    Raises:
        TaskError: there is more than one duck or episode, or the diagnostics are missing.
    """
    rollout = _one_episode(rollout)
    before, after = rollout["observation"], rollout["next"]
    direction = rollout["command"][0, 0].sign()
    speed = after["diagnostic_body_velocity_x"].mean()
    sine = before[:, _clock_start(before)]
    pitch = torch.cat([before[:1, 0], after["observation"][:, 0]]).clamp(-1, 1).asin()
    metrics: dict[str, Any] = {
        "survived": not bool(after["terminated"][-1].any()),
        "episode_length": len(rollout),
        "forward_speed": float(speed),
        "max_abs_pitch": float(pitch.abs().max()),
        **_swings(after, direction * sine >= 0),
    }
    feet = min(metrics["left_swing_phases"], metrics["right_swing_phases"])
    upright = metrics["survived"] and metrics["max_abs_pitch"] < WALKING_PITCH
    along = bool(direction * speed > 0)
    return {**metrics, "walking": upright and along and feet >= SWING_PHASES}


def _one_episode(rollout: TensorDictBase) -> TensorDictBase:
    if rollout.batch_dims not in (1, 2) or (rollout.batch_dims == 2 and rollout.shape[0] != 1):
        raise TaskError(
            f"the rollout has batch shape {tuple(rollout.batch_size)}; gait_metrics takes one duck, (time,), "
            "so choose one with rollout[i]"
        )
    rollout = rollout.reshape(-1)
    if ("next", "diagnostic_left_foot_contact") not in rollout.keys(True):
        raise TaskError("the rollout has no foot contacts; make the environment with diagnostics=True")
    if len(rollout) == 0 or bool(rollout["next", "done"][:-1].any()):
        raise TaskError(
            f"the rollout has {len(rollout)} steps and not exactly one episode; record it with "
            "break_when_any_done=True, or cut it after the first done"
        )
    return rollout


def _clock_start(observation: Tensor) -> int:
    width = observation.shape[-1]
    for layout in contract.LAYOUTS:
        if contract.width(layout) == width:
            return contract.offsets(layout)["gait_clock"]
    raise TaskError(
        f"an observation of {width} values is of no layout; choose one of {list(contract.LAYOUTS)}"
    )


def _swings(after: TensorDictBase, left_swings: Tensor) -> dict[str, float]:
    """Return phases, steps and foot heights of both feet; `left_swings` (time,) says whose turn it is."""
    turns = (left_swings[1:] != left_swings[:-1]).cumsum(0)
    phase = torch.nn.functional.pad(turns, (1, 0))
    contact = {side: after[f"diagnostic_{side}_foot_contact"][:, 0] > 0.5 for side in ("left", "right")}
    metrics: dict[str, float] = {}
    for side, other, its_turn in (("left", "right", left_swings), ("right", "left", ~left_swings)):
        swinging = its_turn & ~contact[side] & contact[other]
        steps = torch.bincount(phase, weights=swinging.double())
        metrics |= {
            f"{side}_swing_phases": int((steps >= SUPPORT_STEPS).sum()),
            f"{side}_single_support_steps": int(swinging.sum()),
            f"{side}_foot_height_max": float(after[f"diagnostic_{side}_foot_height"].max()),
        }
    return metrics
