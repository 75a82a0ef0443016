"""What reward terms read: the measurements of one control step, and what follows from them.

Every feature has a row per duck; the shape is what follows num_envs. Measured in every step:

| feature | shape | unit, frame, meaning |
|---|---|---|
| body_velocity | 3 | m/s, of the base, body frame |
| world_velocity | 3 | m/s, of the base, world frame |
| angular_velocity | 3 | rad/s, of the base, body frame |
| quaternion | 4 | of the base, w x y z |
| projected_gravity | 3 | unit vector down, body frame |
| upright | | cosine of the tilt |
| position | 2 | m, of the base, planar, world frame |
| base_height, standing_height | | m, now and in STAND |
| heading | | rad, in -pi to pi, from the heading to keep |
| head_pitch, head_yaw | | rad, of the gaze: above the horizontal, to the left of the trunk |
| joint_error | 14 | rad, from STAND |
| joint_velocity | 14 | rad/s |
| action, previous_action, earlier_action | 14 | of this step, the one before, and the one before that; raw |
| contacts, previous_contacts | 2 | bool, whether the left and right foot touch anything now and a step ago |
| foot_positions | 2, 2 | m, left and right, planar, world frame |
| foot_heights | 2 | m, left and right, world frame |
| touchdown_air_time | 2 | s, how long the foot was in the air; zero except on touchdown |
| mean_velocity_error | 2 | m/s, body_velocity less command, planar, mean of the last half-second or so |
| gait_phase | | rad |
| command | 2 | m/s, planar, body frame |
| yaw_rate_command | | rad/s |
| fallen | | bool |

Measured only when a term reads them, since the simulator must be asked:

| feature | shape | unit, frame, meaning |
|---|---|---|
| foot_velocity | 2, 2 | m/s, planar, world frame, mean over the step; zero in the first after a reset |
| foot_tilt | 2 | rad, of the normal of the sole to the vertical, beyond that in STAND |
| joint_torque | 14 | N m |
| self_contacts | | number of contacts between parts of the duck |

Derived when a term reads them:

| feature | shape | unit, frame, meaning |
|---|---|---|
| command_speed | | m/s, length of the command |
| walking | | bool, whether the command is to move |
| speed_along | | m/s, of the base along the command |
| progress | | speed_along as a part of the command, in -1 to 1; zero when commanded to stand |
| steady | | bool, whether the duck is tilted less than a fallen one |
| planted | | bool, whether both feet touch something |
| left_swings | | bool, whether the clock lifts the left foot, else the right; backward it runs mirrored |
| foot_speed | 2 | m/s, planar, world frame |
| joint_limit_distance | 14 | rad, to the nearer end of the range; negative beyond it |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

import torch
from torch import Tensor

from hardware.errors import FeatureError
from hardware.joints import HIGH, LOW, STAND

COMMAND_THRESHOLD = 0.01
"""Planar speeds up to this count as standing [m/s]."""
MIN_UPRIGHT = 0.35
"""Cosine of the tilt below which a duck has fallen, about 69.5 degrees."""


class Features(dict[str, Tensor]):
    """Features of one control step by name; those not measured are computed when first read, and kept.

    Args:
        measured: the features of this step by name.
        sources: functions that ask the simulator for the costly ones, by name.
    """

    def __init__(
        self, measured: Mapping[str, Tensor], sources: Mapping[str, Callable[[], Tensor]] | None = None
    ) -> None:
        super().__init__(measured)
        self._sources = dict(sources or {})
        self._sealed = False

    def __missing__(self, name: str) -> Tensor:
        if name in self._sources:
            if self._sealed:
                raise FeatureError(
                    f"feature {name!r} was not computed in this step; weigh a term that reads it"
                )
            value = self._sources[name]()
        elif name in _DERIVED:
            value = _DERIVED[name](self)
        else:
            raise KeyError(name)
        self[name] = value
        return value

    @property
    def batch_size(self) -> torch.Size:
        """The number of ducks, as a TensorDict tells it: (k,)."""
        return self["upright"].shape

    @property
    def device(self) -> torch.device:
        """Where the features are."""
        return self["upright"].device

    def seal(self) -> None:
        """Refuse the simulator's features from now on, except those read already: its state moves on."""
        self._sealed = True

    def known(self) -> list[str]:
        """Return the name of every feature, computed or not."""
        return sorted({*self, *self._sources, *_DERIVED})


def _command_speed(features: Features) -> Tensor:
    return features["command"].norm(dim=-1)


def _walking(features: Features) -> Tensor:
    return features["command_speed"] > COMMAND_THRESHOLD


def _speed_along(features: Features) -> Tensor:
    along = (features["body_velocity"][..., :2] * features["command"]).sum(-1)
    return along / features["command_speed"].clamp(min=COMMAND_THRESHOLD)


def _progress(features: Features) -> Tensor:
    part = features["speed_along"] / features["command_speed"].clamp(min=COMMAND_THRESHOLD)
    return part.clamp(-1, 1) * features["walking"]


def _steady(features: Features) -> Tensor:
    return features["upright"] >= MIN_UPRIGHT


def _planted(features: Features) -> Tensor:
    return features["contacts"].all(-1)


def _left_swings(features: Features) -> Tensor:
    sine = torch.sin(features["gait_phase"])
    return torch.where(features["command"][..., 0] < 0, -sine, sine) > 0


def _foot_speed(features: Features) -> Tensor:
    return features["foot_velocity"].norm(dim=-1)


def _joint_limit_distance(features: Features) -> Tensor:
    error = features["joint_error"]
    low, high = _ranges(error.dtype, error.device)
    return torch.minimum(error - low, high - error)


@cache
def _ranges(dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return the ends of the joint ranges from STAND, (14,) each [rad]; kept, since copies to a GPU wait."""
    low, high = (torch.as_tensor(end - STAND, dtype=dtype, device=device) for end in (LOW, HIGH))
    return low, high


_DERIVED: dict[str, Callable[[Features], Tensor]] = {
    "command_speed": _command_speed,
    "walking": _walking,
    "speed_along": _speed_along,
    "progress": _progress,
    "steady": _steady,
    "planted": _planted,
    "left_swings": _left_swings,
    "foot_speed": _foot_speed,
    "joint_limit_distance": _joint_limit_distance,
}
