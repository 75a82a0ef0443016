"""What a joint looks like at zero, and which way it turns: words for the person who sets it.

Source: the model at qpos = 0, `duck.xml`: every hinge is square to the trunk; the axes of hip pitch, knee and
ankle lie at (4, -17.5), (-31.8, -39.5) and (-31.8, -81.5) mm forward and up of the trunk's origin, and the
soles are square to the shanks.
"""

from __future__ import annotations

from collections.abc import Mapping

_HIP_YAW = "seen from above the foot points straight ahead, along the trunk"
_HIP_ROLL = "seen from the front the leg goes straight down, its sides parallel to the trunk's sides"
_HIP_PITCH = (
    "seen from the side the line from the hip's axis to the knee's goes backward and down,\n"
    "    32 degrees below level while the trunk is upright"
)
_KNEE = (
    "seen from the side thigh and shank make an angle of 122 degrees; where the hip is at its zero, too,\n"
    "    the shank is upright"
)
_ANKLE = "the sole is square to the line from the knee's axis to the ankle's"

ZEROS: Mapping[str, tuple[str, str]] = {
    "left_hip_yaw": (_HIP_YAW, "the toe inward"),
    "left_hip_roll": (_HIP_ROLL, "the foot outward"),
    "left_hip_pitch": (_HIP_PITCH, "the thigh backward"),
    "left_knee": (_KNEE, "the shank forward"),
    "left_ankle": (_ANKLE, "the toe down"),
    "neck_pitch": ("the neck goes straight up from the trunk, square to its top", "the neck back"),
    "head_pitch": ("the head is level while the neck is upright", "the beak down"),
    "head_yaw": ("the beak points straight ahead", "the beak to the duck's left"),
    "head_roll": ("the eyes are level while the trunk is", "the head to the duck's left side"),
    "right_hip_yaw": (_HIP_YAW, "the toe outward"),
    "right_hip_roll": (_HIP_ROLL, "the foot inward"),
    "right_hip_pitch": (_HIP_PITCH, "the thigh forward"),
    "right_knee": (_KNEE, "the shank backward"),
    "right_ankle": (_ANKLE, "the toe up"),
}
"""For each joint: what it looks like at zero, and what a larger angle moves where."""
