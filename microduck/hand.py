"""The hand that holds a duck until it walks, and picks it up when it lies there.

STAND held by the servos alone topples within a second, here as on the real duck: standing is learned. So the
trunk is held while the servos move to STAND, and let go at the policy's first step.
"""

from __future__ import annotations

from enum import Enum

import numpy as np

from hardware.joints import STAND
from microduck.virtual_body import STEP_S, VirtualBody

GOAL_LEFT_RAD = 0.02
"""Goals at STAND to within this are the end of the rise; one that leaves it again is a step [rad]. A goal
register's rounding is 0.0008 rad."""
PICK_UP_S = 1.0
"""Time without any torque after which a duck that was let go is picked up [s]."""


class Grip(Enum):
    """What the hand does next to the duck."""

    HELD = "held"
    LET_GO = "let go"


class Hand:
    """Holds a duck; moved by one `update` before every physics step.

    Args:
        body: the duck, which is taken at once.
    """

    def __init__(self, body: VirtualBody) -> None:
        self._body = body
        self._risen = False
        self._limp_s = 0.0
        self.grip = Grip.HELD
        body.hold()

    def update(self, torque: np.ndarray, goals: np.ndarray, lasts: float = STEP_S) -> Grip | None:
        """Hold, let go or pick up.

        Args:
            torque: whether each servo has torque, (14,) bool.
            goals: goal positions, (14,) [rad].
            lasts: the time that the physics step takes [s].

        Returns:
            The new grip when it changed, else None.
        """
        if self.grip is Grip.HELD:
            return self._let_go() if self._steps(torque, goals) else None
        self._limp_s = 0.0 if torque.any() else self._limp_s + lasts
        return self._pick_up() if self._limp_s >= PICK_UP_S else None

    def _steps(self, torque: np.ndarray, goals: np.ndarray) -> bool:
        """Return whether the duck has risen and its goals now leave STAND.

        Goals alone tell: joints lag behind them, a head that hung limp by more than a quarter of a second.
        """
        at_stand = float(np.abs(goals - STAND).max()) <= GOAL_LEFT_RAD
        stiff = bool(torque.all())
        leaves = self._risen and stiff and not at_stand
        self._risen = stiff and at_stand
        return leaves

    def _let_go(self) -> Grip:
        self._body.let_go()
        self._limp_s = 0.0
        self.grip = Grip.LET_GO
        return self.grip

    def _pick_up(self) -> Grip:
        self._body.hold()
        self._risen = False
        self.grip = Grip.HELD
        return self.grip
