"""The duck's joints: the one joint order, ids, ranges and the STAND pose.

Source: the MJCF of pollen-robotics/microduck_rl (`robot_walk.xml`, ranges; `scene_walk.xml`, keyframe
STAND) and the id table of the robot's own runtime. All angles in rad. Positive directions are the
hinge axes of `duck.xml`; the two legs are reflections of each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import radians

import numpy as np


@dataclass(frozen=True)
class Joint:
    """One policy joint.

    Attributes:
        name: joint, actuator and ONNX name.
        servo_id: Dynamixel id on the bus.
        low: lower end of the range [rad].
        high: upper end of the range [rad].
        stand: angle in the STAND pose [rad].
        partner: joint on the other side, itself on the midline.
        mirror_sign: factor of the angle when left and right are exchanged.
    """

    name: str
    servo_id: int
    low: float
    high: float
    stand: float
    partner: str
    mirror_sign: float


# STAND as in the model's keyframe [rad].
_HIP_ROLL, _HIP_PITCH, _KNEE, _ANKLE, _NECK = 0.0872665, 0.457924, 0.004940, 0.452984, 0.3490659
_QUARTER = radians(90)
_LEGS = ("hip_yaw", "hip_roll", "hip_pitch", "knee", "ankle")


def _leg(side: str, first_id: int, yaw: tuple[float, float], stand: tuple[float, ...]) -> tuple[Joint, ...]:
    other = "right" if side == "left" else "left"
    roll = radians(22)
    ranges = (yaw, (-roll, roll), *[(-_QUARTER, _QUARTER)] * 3)
    return tuple(
        Joint(f"{side}_{part}", first_id + i, *ranges[i], stand[i], f"{other}_{part}", -1.0)
        for i, part in enumerate(_LEGS)
    )


JOINTS: tuple[Joint, ...] = (
    *_leg("left", 20, (radians(-25), radians(30)), (0.0, -_HIP_ROLL, -_HIP_PITCH, -_KNEE, _ANKLE)),
    Joint("neck_pitch", 30, -_QUARTER, radians(60), _NECK, "neck_pitch", 1.0),
    Joint("head_pitch", 31, -_QUARTER, _QUARTER, _NECK, "head_pitch", 1.0),
    Joint("head_yaw", 32, radians(-170), radians(170), 0.0, "head_yaw", -1.0),
    Joint("head_roll", 33, radians(-25), radians(25), 0.0, "head_roll", -1.0),
    *_leg("right", 10, (radians(-30), radians(25)), (0.0, _HIP_ROLL, _HIP_PITCH, _KNEE, -_ANKLE)),
)
"""The fourteen policy joints, in the order of every 14-vector in this toolkit."""

NUM_JOINTS = len(JOINTS)
JOINT_NAMES: tuple[str, ...] = tuple(joint.name for joint in JOINTS)
SERVO_IDS: tuple[int, ...] = tuple(joint.servo_id for joint in JOINTS)
MOUTH_ID = 34
"""Id of the fifteenth servo, which no policy drives."""


def _frozen(values: list[float]) -> np.ndarray:
    array = np.array(values, dtype=np.float64)
    array.flags.writeable = False
    return array


STAND = _frozen([joint.stand for joint in JOINTS])
"""STAND pose [rad], (14,)."""
LOW = _frozen([joint.low for joint in JOINTS])
"""Lower ends of the joint ranges [rad], (14,)."""
HIGH = _frozen([joint.high for joint in JOINTS])
"""Upper ends of the joint ranges [rad], (14,)."""
MIRROR_INDEX: tuple[int, ...] = tuple(JOINT_NAMES.index(joint.partner) for joint in JOINTS)
"""Index of each joint's partner on the other side, (14,)."""
MIRROR_SIGN = _frozen([joint.mirror_sign for joint in JOINTS])
"""Factor of each joint when left and right are exchanged, (14,)."""
