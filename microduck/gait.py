"""A walk in closed form: the gait clock swings the legs, feedback on the pitch keeps the trunk upright.

The baseline for a learned policy, with nothing to train. The formula is that of TorchRL's MicroDuck examples,
made for `action_scale` 0.35 and the default gait clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, sin

from tensordict import TensorDictBase
from tensordict.nn import TensorDictModuleBase
from torch import Tensor

from hardware import contract
from hardware.errors import ContractError
from hardware.joints import JOINT_NAMES, NUM_JOINTS

LAYOUT = "state"
"""The observation layout that the gait reads."""
HIP_FEEDBACK_LIMIT, ANKLE_FEEDBACK_LIMIT = 0.95, 1.0
"""Most that the balance adds to a hip or ankle [action]."""

_WIDTH, _AT = contract.width(LAYOUT), contract.offsets(LAYOUT)
_GRAVITY_X, _PITCH_RATE = _AT["projected_gravity"], _AT["angular_velocity"] + 1
_VX, _CLOCK = _AT["planar_command"], _AT["gait_clock"]


@dataclass(frozen=True)
class GaitGains:
    """The numbers of the gait.

    Attributes:
        hip_swing: how far both hips pitch to and fro [action].
        knee_lift: how far the knee of the swinging leg bends [action].
        ankle_lift: how far its ankle bends [action].
        sway: how far both hips roll, to shift the weight [action].
        sway_phase: phase of the sway ahead of the swing [rad].
        hip_pitch: balance of the hips [action per rad of pitch].
        hip_pitch_rate: its damping [action s per rad].
        ankle_pitch: balance of the ankles [action per rad of pitch].
        ankle_pitch_rate: its damping [action s per rad].
    """

    hip_swing: float
    knee_lift: float
    ankle_lift: float
    sway: float
    sway_phase: float
    hip_pitch: float
    hip_pitch_rate: float
    ankle_pitch: float
    ankle_pitch_rate: float


TORCHRL_GAINS = GaitGains(0.999, 0.9097, 0.0317, 0.9584, -0.1624, -9.9495, -0.6119, 10.9934, 0.6033)
"""Those of TorchRL's examples. They walk, at about 0.025 m/s, on soles that are boxes parallel to the frames
of the feet; on the built-in duck, with the robot's inclined soles, they fall after about 2 s."""
BUILT_IN_GAINS = GaitGains(0.70, 1.45, -0.40, 1.30, 0.55, -15.85, -0.90, 8.65, 1.00)
"""For the built-in duck, by a cross-entropy search from TorchRL's. All of 64 ducks walked for 10 s with them,
at 0.075 m/s and with a pitch below 0.07 rad."""


class MicroDuckGait(TensorDictModuleBase):
    """A policy that walks forward at a speed of its own while the commanded vx is not zero; else it balances.

    The sign of vx only decides which leg swings first. Reads `observation` (..., 56), writes `action`
    (..., 14): `env.rollout(500, MicroDuckGait())`.

    Args:
        gains: its numbers; `TORCHRL_GAINS` for TorchRL's gait.
    """

    in_keys = ["observation"]  # noqa: RUF012  (TorchRL reads lists here)
    out_keys = ["action"]  # noqa: RUF012

    def __init__(self, gains: GaitGains = BUILT_IN_GAINS) -> None:
        super().__init__()
        self.gains = gains

    def forward(self, tensordict: TensorDictBase) -> TensorDictBase:
        """Write the action into a tensordict that holds an observation.

        Raises:
            ContractError: the observation has another layout.
        """
        return tensordict.set("action", self.actions(tensordict["observation"]))

    def actions(self, observation: Tensor) -> Tensor:
        """Return the actions (..., 14) for observations (..., 56) of layout `state`.

        Raises:
            ContractError: the observation has another layout.
        """
        if observation.shape[-1] != _WIDTH:
            raise ContractError(
                f"the observation is {observation.shape[-1]} wide, but the gait reads layout {LAYOUT!r}, "
                f"which is {_WIDTH} wide; make the environment with layout={LAYOUT!r}"
            )
        joints = _swing(observation, self.gains)
        for name, correction in _balance(observation, self.gains).items():
            joints[name] = joints[name] + correction
        action = observation.new_zeros(*observation.shape[:-1], NUM_JOINTS)
        for name, value in joints.items():
            action[..., JOINT_NAMES.index(name)] = value
        return action.clamp(-contract.ACTION_CLIP, contract.ACTION_CLIP)


def _swing(observation: Tensor, gains: GaitGains) -> dict[str, Tensor]:
    """Return what the clock drives, by joint: the left leg swings while the directed sine is positive."""
    direction = observation[..., _VX].sign()
    sine, cosine, ramp = observation[..., _CLOCK : _CLOCK + 3].unbind(-1)
    wave, quadrature = ramp * direction * sine, ramp * direction * cosine
    left, right = wave.clamp(min=0), (-wave).clamp(min=0)
    sway = gains.sway * (wave * cos(gains.sway_phase) + quadrature * sin(gains.sway_phase))
    return {
        "left_hip_roll": sway,
        "right_hip_roll": sway,
        "left_hip_pitch": -gains.hip_swing * wave,
        "right_hip_pitch": -gains.hip_swing * wave,
        "left_knee": gains.knee_lift * left,
        "right_knee": -gains.knee_lift * right,
        "left_ankle": -gains.ankle_lift * left,
        "right_ankle": gains.ankle_lift * right,
    }


def _balance(observation: Tensor, gains: GaitGains) -> dict[str, Tensor]:
    """Return what keeps the trunk upright, by joint; the legs are reflections, so their signs differ."""
    pitch = observation[..., _GRAVITY_X].clamp(-1, 1).asin()
    rate = observation[..., _PITCH_RATE]
    hip = gains.hip_pitch * pitch + gains.hip_pitch_rate * rate
    hip = hip.clamp(-HIP_FEEDBACK_LIMIT, HIP_FEEDBACK_LIMIT)
    ankle = gains.ankle_pitch * pitch + gains.ankle_pitch_rate * rate
    ankle = ankle.clamp(-ANKLE_FEEDBACK_LIMIT, ANKLE_FEEDBACK_LIMIT)
    return {"left_hip_pitch": -hip, "right_hip_pitch": hip, "left_ankle": ankle, "right_ankle": -ankle}
