"""The control law that simulator and robot share: clock, command, observation, action map.

Written once against the array API: the same lines run on numpy arrays on the robot and on torch tensors
in training. Leading axes are free, so `(14,)` and `(num_envs, 14)` both work. The gait clock, action clip
and layout `state` follow TorchRL's MicroDuckEnv; layout `sensor` is what the robot can measure.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import pi
from typing import Any, NamedTuple

from array_api_compat import device

from hardware import joints, rotations, servo
from hardware.arrays import array_namespace
from hardware.errors import CommandError, ContractError

Array = Any
"""A numpy array or a torch tensor."""

CONTROL_PERIOD_S = 0.02
"""Time between two actions [s]."""
GAIT_PHASE_OFFSET = -1.5237
"""Phase of the gait clock when it starts [rad]."""
GAIT_RAMP_S = 0.4
"""Time in which the clock's ramp rises from 0 to 1 [s]."""
ACTION_CLIP = 1.0
"""Actions are clipped to plus or minus this before they move a joint."""
COMMAND_NAMES = ("vx", "vy", "yaw_rate")
"""Order and names of the command [m/s, m/s, rad/s], in the trunk frame."""
COMMAND_SLEW = (1.0, 1.0, 3.0)
"""Most the command may change per second on the robot [m/s2, m/s2, rad/s2]."""
HEAD_NAMES = ("neck_pitch", "head_pitch", "head_yaw", "head_roll")
"""Order and names of the head offsets [rad]: the head's joints, in joint order."""
HEAD_LOW = (-0.3, -0.3, -1.0, -0.3)
HEAD_HIGH = (0.1, 0.3, 1.0, 0.3)
"""Ends of the head offsets [rad]. The head is a third of the duck's mass and no policy is told that it moves:
in the simulator the shipped walker stays up in every corner of this box, but not with twice the neck's."""
HEAD_SLEW = 2.0
"""Most a head offset may change per second [rad/s]."""
HEADING_ERROR_LIMIT = 0.5
"""Most heading error that is remembered [rad]: a duck that was turned by hand soon lets it be."""


@dataclass(frozen=True)
class Block:
    """A named part of the observation: its width and its unit."""

    name: str
    width: int
    unit: str


_GRAVITY = Block("projected_gravity", 3, "1")
_ANGULAR_VELOCITY = Block("angular_velocity", 3, "rad/s")
_JOINTS = (
    Block("joint_error", joints.NUM_JOINTS, "rad"),
    Block("joint_velocity", joints.NUM_JOINTS, "rad/s"),
    Block("gait_clock", 3, "1"),
    Block("previous_action", joints.NUM_JOINTS, "1"),
)
LAYOUTS: Mapping[str, tuple[Block, ...]] = {
    "state": (
        _GRAVITY,
        _ANGULAR_VELOCITY,
        Block("linear_velocity", 3, "m/s"),
        Block("planar_command", 2, "m/s"),
        *_JOINTS,
    ),
    "sensor": (
        _GRAVITY,
        _ANGULAR_VELOCITY,
        Block("command", 3, "m/s, m/s, rad/s"),
        Block("heading_error", 1, "rad"),
        *_JOINTS,
    ),
}
"""Observation layouts: `state` (56, with the simulator's base velocity) and `sensor` (55)."""


def blocks(layout: str) -> tuple[Block, ...]:
    """Return the blocks of a layout in order.

    Raises:
        ContractError: no layout has that name.
    """
    if layout not in LAYOUTS:
        raise ContractError(f"observation layout {layout!r} does not exist; choose one of {sorted(LAYOUTS)}")
    return LAYOUTS[layout]


def width(layout: str) -> int:
    """Return the number of values in a layout."""
    return sum(block.width for block in blocks(layout))


def offsets(layout: str) -> dict[str, int]:
    """Return where each block of a layout begins, by its name."""
    starts, at = {}, 0
    for block in blocks(layout):
        starts[block.name], at = at, at + block.width
    return starts


def observe(layout: str, signals: Mapping[str, Array]) -> Array:
    """Lay the signals out as one observation.

    Args:
        layout: name of the layout.
        signals: one array (..., width) for each block of the layout, all of one dtype.

    Returns:
        The observation, (..., width of the layout).

    Raises:
        ContractError: a signal is missing or has another width.
    """
    parts = []
    for block in blocks(layout):
        if block.name not in signals:
            raise ContractError(f"layout {layout!r} needs the signal {block.name!r}; got {sorted(signals)}")
        part = signals[block.name]
        if part.shape[-1] != block.width:
            raise ContractError(
                f"{block.name} must be {block.width} wide in layout {layout!r}, not {part.shape[-1]}"
            )
        parts.append(part)
    return array_namespace(*parts).concat(parts, axis=-1)


class GaitClock(NamedTuple):
    """State of the gait clock.

    Attributes:
        phase: gait phase in [-pi, pi), (...) [rad].
        elapsed: time since the clock started, (...) [s].
    """

    phase: Array
    elapsed: Array


def start_clock(like: Array) -> GaitClock:
    """Return a clock at its start, with the shape, dtype and device of `like`."""
    xp = array_namespace(like)
    return GaitClock(xp.full_like(like, GAIT_PHASE_OFFSET), xp.zeros_like(like))


def gait_frequency(base_hz: Array, hz_per_mps: Array, command: Array) -> Array:
    """Return the clock's frequency [Hz], (...), for a command (..., 2 or 3) [m/s]."""
    xp = array_namespace(command)
    return base_hz + hz_per_mps * xp.sqrt(command[..., 0] ** 2 + command[..., 1] ** 2)


def advance_clock(clock: GaitClock, frequency_hz: Array) -> GaitClock:
    """Return the clock one control period later.

    The phase is integrated, so it stays continuous when the command changes the frequency, and wrapped, so
    it stays precise in a run of any length.
    """
    phase = clock.phase + 2 * pi * CONTROL_PERIOD_S * frequency_hz
    return GaitClock(rotations.wrap(phase), clock.elapsed + CONTROL_PERIOD_S)


def clock_signal(clock: GaitClock) -> Array:
    """Return sin(phase), cos(phase) and the ramp, (..., 3)."""
    xp = array_namespace(clock.phase)
    ramp = (clock.elapsed / GAIT_RAMP_S).clip(0.0, 1.0)
    parts = (xp.sin(clock.phase), xp.cos(clock.phase), ramp)
    # numpy stacks in Python, which took a tick on the robot a tenth of a millisecond.
    return xp.concat([part[..., None] for part in parts], axis=-1)


def advance_heading(error: Array, angular_velocity: Array, gravity: Array, yaw_rate: Array) -> Array:
    """Return how far the trunk has turned beyond what was commanded, one control period later.

    The gyro's rate about the vertical is summed up: without it no policy could tell a slow turn from a walk
    straight ahead.

    Args:
        error: a control period ago, (...) [rad]; zero at the start.
        angular_velocity: as measured now, trunk frame, (..., 3) [rad/s].
        gravity: unit gravity in the trunk frame, (..., 3).
        yaw_rate: what was commanded for the period, (...) [rad/s].
    """
    turned = -(angular_velocity * gravity).sum(-1)
    changed = error + CONTROL_PERIOD_S * (turned - yaw_rate)
    return changed.clip(-HEADING_ERROR_LIMIT, HEADING_ERROR_LIMIT)


def check_command(command: Array, low: Array, high: Array) -> None:
    """Refuse commands (..., 3) that are not finite or lie outside the box [low, high].

    Raises:
        CommandError: names the first bad component, its value and its interval.
    """
    xp = array_namespace(command, low, high)
    tolerance = 1e-6  # a box kept in float32 must accept its own ends
    good = (command >= low - tolerance) & (command <= high + tolerance)  # NaN fails both
    if bool(xp.all(good)):
        return
    index = [int(i[0]) for i in xp.nonzero(~good)]
    value, least, most = (float(xp.broadcast_to(a, good.shape)[tuple(index)]) for a in (command, low, high))
    raise CommandError(
        f"command {COMMAND_NAMES[index[-1]]} = {value:g} is outside [{least:g}, {most:g}]; "
        "choose a value inside the box or another skill"
    )


def step_command(current: Array, target: Array, low: Array, high: Array) -> Array:
    """Return the command one control period later: slewed towards the target, kept in the box.

    Args:
        current: command now, (..., 3) [m/s, m/s, rad/s].
        target: command asked for, (..., 3).
        low: lower corner of the skill's box, (..., 3).
        high: upper corner, (..., 3).
    """
    xp = array_namespace(current, target)
    most = xp.asarray(COMMAND_SLEW, dtype=current.dtype, device=device(current)) * CONTROL_PERIOD_S
    step = xp.minimum(xp.maximum(target - current, -most), most)
    return xp.minimum(xp.maximum(current + step, low), high)


class HeadMap:
    """Moves the head on top of what the policy does, on arrays of one kind.

    Args:
        like: an array whose library, dtype and device the constants take.
    """

    def __init__(self, like: Array) -> None:
        xp = array_namespace(like)
        self._xp, self._most = xp, HEAD_SLEW * CONTROL_PERIOD_S
        places = [[float(joint == name) for joint in joints.JOINT_NAMES] for name in HEAD_NAMES]
        self._low, self._high, self._places = (
            xp.asarray(rows, dtype=like.dtype, device=device(like)) for rows in (HEAD_LOW, HEAD_HIGH, places)
        )

    def step(self, current: Array, target: Array) -> Array:
        """Return the head offsets one control period later: slewed towards the target, kept in their ends.

        Args:
            current: offsets now, (..., 4) [rad].
            target: offsets asked for, (..., 4) [rad].
        """
        xp = self._xp
        low, high = xp.maximum(self._low, current - self._most), xp.minimum(self._high, current + self._most)
        return xp.minimum(xp.maximum(target, low), high)

    def pose(self, head: Array) -> Array:
        """Return what head offsets (..., 4) [rad] add to each joint, (..., 14) [rad].

        It is added to the joint targets after the policy and taken off the measured positions before it, so
        that the policy finds its head where it put it.
        """
        return head @ self._places


class ActionMap:
    """Maps actions to joint targets and back, on arrays of one kind.

    Args:
        like: an array whose library, dtype and device the constants take.
        scale: joint travel for an action of 1 [rad].
    """

    def __init__(self, like: Array, scale: float) -> None:
        xp = array_namespace(like)
        self._xp, self.scale = xp, scale
        self.stand, self._low, self._high = (
            xp.asarray(row.tolist(), dtype=like.dtype, device=device(like))
            for row in (joints.STAND, joints.LOW, joints.HIGH)
        )

    def joint_error(self, position: Array) -> Array:
        """Return joint positions relative to STAND, (..., 14) [rad]."""
        return position - self.stand

    def joint_targets(self, action: Array) -> Array:
        """Return the joint targets of an action, (..., 14) [rad]: STAND + scale * clipped action, limited."""
        return self._xp.minimum(self._xp.maximum(self._wanted(action), self._low), self._high)

    def cut(self, action: Array) -> Array:
        """Return which joint targets of an action its joint's range cuts, (..., 14) bool."""
        wanted = self._wanted(action)
        return (wanted < self._low) | (wanted > self._high)

    def _wanted(self, action: Array) -> Array:
        return self.stand + self.scale * action.clip(-ACTION_CLIP, ACTION_CLIP)


def foundation() -> dict[str, Any]:
    """Return what every contract of this toolkit shares, as plain data: all but layout, scale and gain."""
    return {
        "version": 1,
        "control_period_s": CONTROL_PERIOD_S,
        "joint_names": list(joints.JOINT_NAMES),
        "stand_rad": joints.STAND.tolist(),
        "joint_low_rad": joints.LOW.tolist(),
        "joint_high_rad": joints.HIGH.tolist(),
        "command_names": list(COMMAND_NAMES),
        "command_slew": list(COMMAND_SLEW),
        "gait_phase_offset_rad": GAIT_PHASE_OFFSET,
        "gait_ramp_s": GAIT_RAMP_S,
        "heading_error_limit_rad": HEADING_ERROR_LIMIT,
        "action_clip": ACTION_CLIP,
    }


def describe(layout: str, action_scale: float, p_gain: int = servo.POSITION_P_GAIN) -> dict[str, Any]:
    """Return the whole contract as plain data, for a bundle's manifest.

    Args:
        layout: observation layout.
        action_scale: joint travel for an action of 1 [rad].
        p_gain: position P register the policy was trained for.
    """
    return {
        **foundation(),
        "layout": layout,
        "observation": [[block.name, block.width, block.unit] for block in blocks(layout)],
        "action_scale_rad": float(action_scale),
        "position_p_gain": int(p_gain),
    }


def digest(description: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a contract's canonical JSON, as hexadecimal text."""
    text = json.dumps(description, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def differences(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[str]:
    """Return one line for each field in which two contracts differ, empty when they are the same."""
    missing = "absent"
    return [
        f"{key}: this toolkit has {ours.get(key, missing)!r}, the other has {theirs.get(key, missing)!r}"
        for key in sorted({*ours, *theirs})
        if ours.get(key, missing) != theirs.get(key, missing)
    ]
