"""One skill's control law at run time: from a body sample to joint targets, as in training."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from firmware_bridge.body import BodySample
from firmware_bridge.manifest import Skill
from firmware_bridge.safety import refuse_non_finite
from firmware_bridge.skills import Bundle
from hardware import contract
from hardware.joints import NUM_JOINTS


@dataclass
class ControlState:
    """What the control law remembers from tick to tick.

    Attributes:
        command: command in force, (3,) [m/s, m/s, rad/s].
        clock: gait clock in float64.
        heading_error: how far the trunk has turned beyond the commanded heading, () [rad].
        previous_action: the policy's last raw output, (14,).
    """

    command: np.ndarray
    clock: contract.GaitClock
    heading_error: np.ndarray
    previous_action: np.ndarray


def build_observation(
    layout: str, sample: BodySample, state: ControlState, action_map: contract.ActionMap
) -> np.ndarray:
    """Return the observation of a tick, (width of the layout,) float32."""
    signals = {
        "projected_gravity": sample.gravity,
        "angular_velocity": sample.angular_velocity,
        "command": state.command,
        "heading_error": state.heading_error.reshape(1),
        "joint_error": action_map.joint_error(sample.position),
        "joint_velocity": sample.velocity,
        "gait_clock": contract.clock_signal(state.clock),
        "previous_action": state.previous_action,
    }
    return contract.observe(layout, signals).astype(np.float32)


class Controller:
    """Runs one skill of a bundle.

    Args:
        bundle: the policy.
        skill: which of its skills.

    Attributes:
        state: what is remembered between ticks; the command starts at zero, or at the nearest in the box.
        observation: the last observation, (width,) float32.
    """

    def __init__(self, bundle: Bundle, skill: Skill) -> None:
        self._bundle, self._skill = bundle, skill
        self._low, self._high = np.array(skill.command_low), np.array(skill.command_high)
        self._map = contract.ActionMap(np.zeros(1), bundle.action_scale)
        self.state = ControlState(
            np.clip(np.zeros(3), self._low, self._high),
            contract.start_clock(np.zeros(())),
            np.zeros(()),
            np.zeros(NUM_JOINTS),
        )
        self.observation = np.zeros(contract.width(bundle.layout), np.float32)

    def targets(self, sample: BodySample) -> np.ndarray:
        """Evaluate the policy and return its joint targets, (14,) [rad].

        Raises:
            SafetyError: the action is not finite.
            BundleError: the policy cannot be evaluated.
        """
        self.observation = build_observation(self._bundle.layout, sample, self.state, self._map)
        action = self._bundle.act(self.observation, self._skill)
        refuse_non_finite(action)
        self.state.previous_action = action.astype(np.float64)
        return self._map.joint_targets(self.state.previous_action)

    def advance(self, request: np.ndarray, sample: BodySample, periods: int) -> None:
        """Let `periods` control periods pass.

        Args:
            request: command that is asked for, (3,) [m/s, m/s, rad/s].
            sample: the newest one; it stands for every period since the one before.
            periods: how many.
        """
        state = self.state
        base, gain = self._skill.gait_frequency_hz, self._skill.gait_frequency_per_mps
        for _ in range(periods):
            frequency = contract.gait_frequency(base, gain, state.command)
            state.clock = contract.advance_clock(state.clock, frequency)
            state.heading_error = contract.advance_heading(
                state.heading_error, sample.angular_velocity, sample.gravity, state.command[2]
            )
            state.command = contract.step_command(state.command, request, self._low, self._high)
