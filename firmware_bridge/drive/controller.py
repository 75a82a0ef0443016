"""The control law of a bundle's skills at run time: from a body sample to joint targets, as in training."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from firmware_bridge.drive import safety
from firmware_bridge.estimate.velocity import VelocityEstimator
from firmware_bridge.robot.body import BodySample
from firmware_bridge.skills.bundle import Bundle
from firmware_bridge.skills.manifest import Skill
from hardware import contract
from hardware.joints import NUM_JOINTS

_ROUNDING = 1e-9
"""By how much a command that was slewed to the edge of a box may miss it."""


@dataclass
class ControlState:
    """What the control law remembers from tick to tick.

    Attributes:
        command: command in force, (3,) [m/s, m/s, rad/s].
        clock: gait clock in float64.
        heading_error: how far the trunk has turned beyond the commanded heading, () [rad].
        previous_action: the policy's last raw output, (14,).
        head: head offsets in force, (4,) [rad].
        head_pose: what they add to each joint, (14,) [rad].
        velocity: of the trunk in its frame, (3,) [m/s]; zero where the layout has no place for it.
    """

    command: np.ndarray
    clock: contract.GaitClock = field(default_factory=lambda: contract.start_clock(np.zeros(())))
    heading_error: np.ndarray = field(default_factory=lambda: np.zeros(()))
    previous_action: np.ndarray = field(default_factory=lambda: np.zeros(NUM_JOINTS))
    head: np.ndarray = field(default_factory=lambda: np.zeros(len(contract.HEAD_NAMES)))
    head_pose: np.ndarray = field(default_factory=lambda: np.zeros(NUM_JOINTS))
    velocity: np.ndarray = field(default_factory=lambda: np.zeros(3))


def build_observation(
    layout: str, sample: BodySample, state: ControlState, action_map: contract.ActionMap
) -> np.ndarray:
    """Return the observation of a tick, (width of the layout,) float32."""
    signals = {
        "projected_gravity": sample.gravity,
        "angular_velocity": sample.angular_velocity,
        "linear_velocity": state.velocity,
        "command": state.command,
        "planar_command": state.command[:2],
        "heading_error": state.heading_error.reshape(1),
        "joint_error": action_map.joint_error(sample.position - state.head_pose),
        "joint_velocity": sample.velocity,
        "gait_clock": contract.clock_signal(state.clock),
        "previous_action": state.previous_action,
    }
    return contract.observe(layout, signals).astype(np.float32)


class Controller:
    """Runs the skills of a bundle, one at a time.

    Args:
        bundle: the policy.
        skill: the skill it begins with.

    Attributes:
        state: what is remembered between ticks; the command starts at zero, or at the nearest in the box.
        skill: the skill in force.
        estimator: of the trunk's velocity, which nothing measures; None where the layout does not ask for it.
        observation: the last observation, (width,) float32.
        limited_by: names of what kept the command or the head from what was asked in the last period.
    """

    def __init__(self, bundle: Bundle, skill: Skill) -> None:
        self._bundle = bundle
        self._boxes = {
            row.name: (np.array(row.command_low), np.array(row.command_high))
            for row in bundle.skills.values()
        }
        self._map = contract.ActionMap(np.zeros(1), bundle.action_scale)
        self._needs_velocity = "linear_velocity" in contract.offsets(bundle.layout)
        self.observation = np.zeros(contract.width(bundle.layout), np.float32)
        self.reset(skill)

    def reset(self, skill: Skill) -> None:
        """Begin anew, as a training episode does."""
        self.skill = self._next = skill
        self.state = ControlState(np.clip(np.zeros(3), *self._boxes[skill.name]))
        self.estimator = VelocityEstimator() if self._needs_velocity else None
        self.limited_by: tuple[str, ...] = ()
        self._paced: tuple[Skill | None, np.ndarray | None] = (None, None)
        self._pace = 0.0

    def choose(self, skill: Skill) -> None:
        """Change to another skill as soon as the command is one that both allow; clock and history go on.

        Until then the command moves towards the new skill's box, as fast as commands may change.
        """
        self._next = skill

    def targets(self, sample: BodySample) -> np.ndarray:
        """Evaluate the policy and return its joint targets with the head offsets added, (14,) [rad].

        Raises:
            SafetyError: the action is not finite.
            BundleError: the policy cannot be evaluated.
        """
        state = self.state
        self.observation = build_observation(self._bundle.layout, sample, state, self._map)
        action = self._bundle.act(self.observation, self.skill)
        safety.refuse_non_finite(action)
        state.previous_action = action.astype(np.float64)
        return self._map.joint_targets(state.previous_action) + state.head_pose

    def advance(self, asked: np.ndarray, head: np.ndarray, sample: BodySample, periods: int) -> None:
        """Let `periods` control periods pass.

        Args:
            asked: command that is asked for, (3,) [m/s, m/s, rad/s].
            head: head offsets that are asked for, (4,) [rad].
            sample: the newest one; it stands for every period since the one before.
            periods: how many.
        """
        state = self.state
        if self.estimator is not None:
            state.velocity = self.estimator.update(sample, periods)
        for _ in range(periods):
            self._switch()
            state.clock = contract.advance_clock(state.clock, self._frequency())
            state.heading_error = contract.advance_heading(
                state.heading_error, sample.angular_velocity, sample.gravity, state.command[2]
            )
            stepped = safety.step_command(state.command, *self._way(asked))
            turned = safety.step_head(state.head, head)
            if turned.applied is not state.head:
                state.head, state.head_pose = turned.applied, safety.HEAD.pose(turned.applied)
            state.command = stepped.applied
            self.limited_by = stepped.limited_by + turned.limited_by

    def _frequency(self) -> float:
        """Return the gait clock's frequency [Hz], worked out anew only for another skill or command."""
        if self._paced[0] is not self.skill or self._paced[1] is not self.state.command:
            skill, command = self._paced = self.skill, self.state.command
            self._pace = contract.gait_frequency(
                skill.gait_frequency_hz, skill.gait_frequency_per_mps, command
            )
        return self._pace

    def _switch(self) -> None:
        if self._next is not self.skill:
            low, high = self._boxes[self._next.name]
            command = self.state.command
            if (command >= low - _ROUNDING).all() and (command <= high + _ROUNDING).all():
                self.skill = self._next

    def _way(self, asked: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the command to go for and the box it may be in meanwhile."""
        low, high = self._boxes[self.skill.name]
        if self._next is self.skill:
            return asked, low, high
        next_low, next_high = self._boxes[self._next.name]
        inside = np.minimum(np.maximum(asked, next_low), next_high)
        return inside, np.minimum(low, next_low), np.maximum(high, next_high)
