"""Poses that are not the policy's: the seat, and the smooth ways to it and to STAND."""

from __future__ import annotations

import numpy as np

from hardware.contract import HEAD_NAMES
from hardware.joints import JOINT_NAMES, STAND

RISE_S = 2.0
"""Time of the ramp from the measured pose to STAND [s], as on the duck's own daemon."""
SLOW_S = 0.5
"""Time in which a walking duck comes to a halt before it sits down [s]; 0.3 m/s takes 0.3 s."""
SIT_S = 1.6
"""Time of the way down to the seat [s]."""
HEAD_S = 1.0
"""Time in which the head goes to where it is on the seat [s]: before the knees fold, late in `SIT_S`. The
head is a third of the duck: swung back while the legs fold, it takes the duck with it."""
SETTLE_S = 0.4
"""Time on the seat before torque goes off [s]."""
_FOLD = 1.55
"""Bend of knees and ankles on the seat [rad], just inside their range: the shanks lie on the floor."""
_HEAD_LEAN = {"neck_pitch": 0.16, "head_pitch": 0.6}
"""How far the head is out in front on the seat, beyond STAND [rad]: a weight before the heels."""
_IS_HEAD = np.array([name in HEAD_NAMES for name in JOINT_NAMES])


def _seat() -> np.ndarray:
    seat = STAND.copy()
    for name, lean in _HEAD_LEAN.items():
        seat[JOINT_NAMES.index(name)] += lean
    folded = {"hip_pitch": 0.0, "knee": _FOLD, "ankle": _FOLD}
    for side, sign in (("left", 1.0), ("right", -1.0)):  # the legs are reflections of each other
        for part, angle in folded.items():
            seat[JOINT_NAMES.index(f"{side}_{part}")] = sign * angle
    seat.flags.writeable = False
    return seat


SEAT = _seat()
"""Pose of a seated duck [rad], (14,): it kneels on soles and shanks. The trunk is upright, 65 mm above the
floor instead of 117, with its centre of mass well between toes and knees, so it stays there without a policy
and sinks by a few millimetres when torque goes off."""


def rise_pose(start: np.ndarray, elapsed_s: float) -> np.ndarray:
    """Return the targets (14,) [rad] `elapsed_s` into the ramp from pose `start` (14,) to STAND."""
    return start + (STAND - start) * _smooth(elapsed_s / RISE_S)


def sit_pose(balanced: np.ndarray, elapsed_s: float) -> np.ndarray:
    """Return the targets (14,) [rad] `elapsed_s` into the way from standing to the seat.

    Args:
        balanced: what the policy asks for now, (14,) [rad]. Its say fades, so that it balances the duck on
            the way: a ramp without it topples.
        elapsed_s: time since the way began [s].
    """
    legs, head = _smooth(elapsed_s / SIT_S) ** 2, _smooth(elapsed_s / HEAD_S)
    return balanced + (SEAT - balanced) * np.where(_IS_HEAD, head, legs)


def _smooth(part: float) -> float:
    """Return 0 to 1 for a part (0 to 1) of a way; speed is zero at both ends, so nothing is jerked."""
    part = min(max(part, 0.0), 1.0)
    return part * part * (3.0 - 2.0 * part)
