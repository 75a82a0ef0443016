"""Makers of task rows: `make_task`, and the seven presets with TorchRL's names and numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from tensordict import TensorDict
from torch import Tensor

from hardware.errors import TaskError
from microduck.rewards import COMMAND_THRESHOLD, REWARD_TERMS, RewardRegistry
from microduck.tasks.task import FIELD_DEFAULTS, MicroDuckTask
from microduck.tasks.validation import check_registry, check_structure, check_values

POSE_STD_STANDING, POSE_STD_MOVING = 0.1, 0.5
"""Width of the pose term around STAND [rad]: tight when standing, loose when moving."""
GAIT_TERMS = ("air_time", "swing_height", "phase_contact", "double_support")
"""Reward terms that shape steps; they have no say when standing or hopping."""
# As in TorchRL's presets:
TURN_WEIGHT = 2.0
"""Weight of the yaw rate of a row that turns in place."""
HOP_WEIGHTS = {"jump": 10.0, "launch": 30.0, "hop_rhythm": 1.0}
"""Weights of the terms that make a hop."""
DRIFT_WEIGHT = -5.0
"""Weight of planar speed in a row that hops in place."""
HOP_FREQUENCY_HZ = 2.0
"""Frequency of the clock of a hop [Hz]."""


def make_task(
    command_low: Sequence[float],
    command_high: Sequence[float],
    *,
    name: str,
    weight: float = 1.0,
    reward_weights: Mapping[str, float] | None = None,
    registry: RewardRegistry = REWARD_TERMS,
    **overrides: Any,
) -> MicroDuckTask:
    """Return one row.

    Args:
        command_low: lower corner of the command box (vx, vy) [m/s].
        command_high: upper corner [m/s].
        name: label, 1 to 64 printable characters.
        weight: relative share when tasks are drawn.
        reward_weights: weights that differ from the registered defaults, by term.
        registry: the reward terms that the row weighs.
        overrides: reset, clock and command fields or reward parameters that differ from their defaults, by
            name.

    Raises:
        TaskError: an unknown name, or a value that is not valid.
    """
    check_registry(registry)
    params, fields = registry.params, dict(FIELD_DEFAULTS)
    for key, value in overrides.items():
        if key not in params and key not in fields:
            raise TaskError(
                f"{key!r} is no task field or reward parameter; choose one of {sorted([*fields, *params])}"
            )
        (params if key in params else fields)[key] = value
    weights = registry.weights
    for term, value in (reward_weights or {}).items():
        if term not in weights:
            raise TaskError(f"{term!r} is no reward term; choose one of {sorted(weights)}")
        weights[term] = value
    numbers = {"command_low": command_low, "command_high": command_high, **fields, "weight": weight}
    task = MicroDuckTask(
        **{key: _tensor(key, value) for key, value in numbers.items()},
        reward_weights=torch.stack([_tensor(term, value) for term, value in weights.items()]),
        params=TensorDict({key: _tensor(key, value) for key, value in params.items()}),
        name=name,
        reward_terms=",".join(registry),
        batch_size=[],
    )
    check_structure(task, registry)
    check_values(task.unsqueeze(0), registry)
    return task


def _tensor(name: str, value: Any) -> Tensor:
    try:
        return torch.as_tensor(value, dtype=torch.float32).detach().clone()
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise TaskError(f"{name} is {value!r:.80}; it must be a number or a pair of numbers") from error


def _number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise TaskError(f"{name} is {value!r:.80}; it must be a number") from error


def _preset(
    low: Sequence[float],
    high: Sequence[float],
    overrides: dict[str, Any],
    weights: Mapping[str, float] = {},
    **choices: Any,
) -> MicroDuckTask:
    """Return a row of a preset's choices, over which the caller's win."""
    registry: RewardRegistry = choices["registry"]
    # A registry without a term has nothing to turn off, and no pose to hold.
    chosen = {term: value for term, value in weights.items() if value or term in registry}
    if "pose_std" not in registry.params:
        del choices["pose_std"]
    chosen |= overrides.pop("reward_weights", None) or {}
    return make_task(low, high, reward_weights=chosen, **{**choices, **overrides})


def tracking_task(
    speed: float = 0.03, *, weight: float = 1.0, registry: RewardRegistry = REWARD_TERMS, **overrides: Any
) -> MicroDuckTask:
    """Return a row that walks at one speed; up to 0.01 m/s either way it is the standing row.

    Args:
        speed: forward speed, backward if negative [m/s].
        weight: relative share when tasks are drawn.
        registry: the reward terms.
        overrides: all else that `make_task` takes by name; it wins over the preset's choice.

    Raises:
        TaskError: an unknown name, or a value that is not valid.
    """
    speed = _number("speed", speed)
    if abs(speed) <= COMMAND_THRESHOLD:
        return standing_task(weight=weight, registry=registry, **overrides)
    return _preset(
        (speed, 0.0),
        (speed, 0.0),
        overrides,
        name=f"tracking{speed:+.2f}",
        pose_std=POSE_STD_MOVING,
        weight=weight,
        registry=registry,
    )


def standing_task(
    *, weight: float = 1.0, registry: RewardRegistry = REWARD_TERMS, **overrides: Any
) -> MicroDuckTask:
    """Return a row that stands still in a tight pose, without the gait terms; see `tracking_task`."""
    return _preset(
        (0.0, 0.0),
        (0.0, 0.0),
        overrides,
        dict.fromkeys(GAIT_TERMS, 0.0),
        name="standing",
        pose_std=POSE_STD_STANDING,
        weight=weight,
        registry=registry,
    )


def speed_range_task(
    low: float = 0.1,
    high: float = 0.3,
    *,
    weight: float = 1.0,
    registry: RewardRegistry = REWARD_TERMS,
    **overrides: Any,
) -> MicroDuckTask:
    """Return a row that walks forward at any speed of [low, high] [m/s]; its clock quickens with the speed.

    The gait terms stay on where the interval spans zero. The rest is as in `tracking_task`.
    """
    low, high = _number("low", low), _number("high", high)
    return _preset(
        (low, 0.0),
        (high, 0.0),
        overrides,
        name=f"speed_range{low:+.2f}..{high:+.2f}",
        gait_frequency_hz=1.0,
        gait_frequency_per_mps=5.0,
        pose_std=POSE_STD_MOVING,
        weight=weight,
        registry=registry,
    )


def sidestep_task(
    speed: float = 0.15, *, weight: float = 1.0, registry: RewardRegistry = REWARD_TERMS, **overrides: Any
) -> MicroDuckTask:
    """Return a row that walks sideways at one speed, to the left if positive [m/s]; see `tracking_task`."""
    speed = _number("speed", speed)
    return _preset(
        (0.0, speed),
        (0.0, speed),
        overrides,
        name=f"sidestep{speed:+.2f}",
        pose_std=POSE_STD_MOVING,
        weight=weight,
        registry=registry,
    )


def turning_task(
    rate: float = 1.0, *, weight: float = 1.0, registry: RewardRegistry = REWARD_TERMS, **overrides: Any
) -> MicroDuckTask:
    """Return a row that turns in place at one rate, to the left if positive [rad/s]; see `tracking_task`.

    As in TorchRL, the rate is a reward parameter (`turn_rate`) that the command does not show. To command
    the rate, alone or while walking, give any row a `yaw_rate_interval=(low, high)` instead: it is drawn like
    the planar command, and `yaw_rate` rewards following it.
    """
    rate = _number("rate", rate)
    return _preset(
        (0.0, 0.0),
        (0.0, 0.0),
        overrides,
        {"turn": TURN_WEIGHT, "yaw_rate": 0.0},
        name=f"turn{rate:+.2f}",
        turn_rate=rate,
        pose_std=POSE_STD_MOVING,
        weight=weight,
        registry=registry,
    )


def jump_task(
    speed: float = 0.0, *, weight: float = 1.0, registry: RewardRegistry = REWARD_TERMS, **overrides: Any
) -> MicroDuckTask:
    """Return a row that hops in place, or forward at one speed [m/s]; see `tracking_task`.

    In place, drifting costs; at any other speed, tracking the command takes its place.
    """
    speed = _number("speed", speed)
    drift = DRIFT_WEIGHT if speed == 0 else 0.0
    return _preset(
        (speed, 0.0),
        (speed, 0.0),
        overrides,
        {**dict.fromkeys((*GAIT_TERMS, "lin_vel_z"), 0.0), **HOP_WEIGHTS, "drift": drift},
        name=f"jump{speed:+.2f}" if speed else "jump",
        gait_frequency_hz=HOP_FREQUENCY_HZ,
        pose_std=POSE_STD_MOVING,
        weight=weight,
        registry=registry,
    )
