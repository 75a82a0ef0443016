"""What each mode asks of the joints: ramps, the policy, and never more than the limits allow."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from firmware_bridge.drive import safety
from firmware_bridge.drive.controller import Controller
from firmware_bridge.drive.limits import Limits
from firmware_bridge.drive.modes import Mode
from firmware_bridge.drive.poses import RISE_S, SETTLE_S, SIT_S, SLOW_S, rise_pose, sit_pose
from firmware_bridge.robot.body import BodySample
from firmware_bridge.skills.bundle import Bundle
from hardware.contract import CONTROL_PERIOD_S, HEAD_NAMES

REST_SKILL = "stand"
"""Skill that holds the duck in place, in bundles that have it."""
_NO_HEAD = np.zeros(len(HEAD_NAMES))
_NO_COMMAND = np.zeros(3)


class Aim(NamedTuple):
    """What the duck is to do in this tick.

    Attributes:
        command: (3,) [m/s, m/s, rad/s].
        head: head offsets, (4,) [rad].
    """

    command: np.ndarray = _NO_COMMAND
    head: np.ndarray = _NO_HEAD


class Asked(NamedTuple):
    """What was asked of the joints in a tick, before the limits.

    Attributes:
        action: the policy's raw output, (14,), None when it did not run.
        targets: (14,) [rad], None for nothing.
    """

    action: np.ndarray | None = None
    targets: np.ndarray | None = None


class Motion:
    """Makes the joint targets of the modes with torque.

    Args:
        bundle: the policy.
        skill: name of the skill to begin with, None for the bundle's first.
        limits: how fast a target may change.

    Attributes:
        skills: names of the skills there are.
        controller: the policy and its memory.
        written: targets of the last tick, (14,) [rad], None before the first of a rise.
        asked: what they were before the limits.
        failed: whether the policy could not be evaluated; then it can balance the duck no more.

    Raises:
        BundleError: the bundle has no such skill.
    """

    def __init__(self, bundle: Bundle, skill: str | None, limits: Limits) -> None:
        self._skills, self._limits = bundle.skills, limits
        self.skills = sorted(bundle.skills)
        self._chosen = bundle.skill(skill)
        self.controller = Controller(bundle, self._chosen)
        self.written: np.ndarray | None = None
        self.asked = Asked()
        self.failed = False
        self._start: np.ndarray | None = None
        self._walked = False
        self._periods = 0

    def choose(self, skill: str) -> bool:
        """Change the skill of RUN; return False when the bundle has none of that name."""
        if skill not in self._skills:
            return False
        self._chosen = self._skills[skill]
        return True

    def begin_rise(self) -> None:
        """Start from wherever the next sample finds the joints."""
        self._start = self.written = None
        self._periods = 0
        self.controller.reset(self._chosen)

    def begin_sit(self, walked: bool) -> None:
        """Start on the way to the seat.

        Args:
            walked: whether the policy has the duck on its feet and can go on balancing it.
        """
        self._start, self._walked = self.written, walked
        self._periods = 0

    def advance(self, mode: Mode, aim: Aim, sample: BodySample, periods: int) -> None:
        """Let control periods pass.

        Args:
            mode: the present mode.
            aim: what to do.
            sample: the newest one; in a rise it must be a new one.
            periods: how many.
        """
        if mode is Mode.RISE and self._start is None:
            self._start = self.written = sample.position.copy()
            return
        self._periods += periods
        if mode is Mode.RISE and self.risen:
            self.controller.reset(self._chosen)
        elif self._balances(mode):
            rest = self._skills.get(REST_SKILL, self._chosen)
            self.controller.choose(self._chosen if mode is Mode.RUN else rest)
            self.controller.advance(aim.command, aim.head, sample, periods)

    @property
    def risen(self) -> bool:
        """Whether the ramp of a rise is over."""
        return self._start is not None and self._seconds >= RISE_S

    @property
    def seated(self) -> bool:
        """Whether the way to the seat is over and the duck has settled on it."""
        return self._down_s >= SIT_S + SETTLE_S

    def targets(self, mode: Mode, sample: BodySample) -> safety.Limited | None:
        """Return the joint targets of this tick, (14,) [rad], None before a rise has begun.

        Raises:
            SafetyError: the policy's action is not finite.
            BundleError: the policy cannot be evaluated.
        """
        if self._start is None or self.written is None:
            return None
        wanted = self._wanted(mode, sample)
        action = self.controller.state.previous_action if self._balances(mode) else None
        self.asked = Asked(action, wanted)
        limited = safety.limit_targets(wanted, self.written, self._limits)
        self.written = limited.applied
        return limited

    def _wanted(self, mode: Mode, sample: BodySample) -> np.ndarray:
        assert self._start is not None
        if mode is Mode.RISE:
            return rise_pose(self._start, self._seconds)
        balanced = self._policy(sample) if self._balances(mode) else self._start
        return sit_pose(balanced, self._down_s) if mode is Mode.SIT else balanced

    def _balances(self, mode: Mode) -> bool:
        return mode in (Mode.STAND, Mode.RUN) or (mode is Mode.SIT and self._walked)

    def _policy(self, sample: BodySample) -> np.ndarray:
        self.failed = True  # whatever is raised
        targets = self.controller.targets(sample)
        self.failed = False
        return targets

    @property
    def _seconds(self) -> float:
        return self._periods * CONTROL_PERIOD_S

    @property
    def _down_s(self) -> float:
        return self._seconds - (SLOW_S if self._walked else 0.0)
