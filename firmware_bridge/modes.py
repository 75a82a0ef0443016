"""What the duck is doing, as one table of allowed changes, and the ramp that brings it to its feet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum

import numpy as np

from hardware.errors import SafetyError
from hardware.joints import STAND

RISE_S = 2.0
"""Time of the ramp from the measured pose to STAND [s], as on the duck's own daemon."""


class Mode(Enum):
    """A state of the drive; in all but RISE and RUN the servos are limp."""

    LIMP = "limp"
    RISE = "rise"
    RUN = "run"
    STOPPED = "stopped"
    FALLEN = "fallen"
    FAULT = "fault"


ENDS = frozenset({Mode.STOPPED, Mode.FALLEN, Mode.FAULT})
TRANSITIONS: Mapping[Mode, frozenset[Mode]] = {
    Mode.LIMP: frozenset({Mode.RISE, Mode.STOPPED}),
    Mode.RISE: frozenset({Mode.RUN}) | ENDS,
    Mode.RUN: ENDS,
    # An end becomes a fault when torque cannot be switched off.
    Mode.STOPPED: frozenset({Mode.FAULT}),
    Mode.FALLEN: frozenset({Mode.FAULT}),
    Mode.FAULT: frozenset({Mode.FAULT}),
}
"""For each mode, the modes that may follow."""


class ModeMachine:
    """Holds the mode and lets it change only along the table.

    Args:
        report: called with each new mode and the reason for it.
    """

    def __init__(self, report: Callable[[Mode, str], None]) -> None:
        self.mode, self.reason = Mode.LIMP, "not started"
        self._report = report

    def change(self, mode: Mode, reason: str) -> None:
        """Enter a mode.

        Raises:
            SafetyError: the table does not allow the change.
        """
        if mode not in TRANSITIONS[self.mode]:
            allowed = sorted(m.value for m in TRANSITIONS[self.mode])
            raise SafetyError(f"mode {self.mode.value!r} cannot become {mode.value!r}; allowed: {allowed}")
        self.mode, self.reason = mode, reason
        self._report(mode, reason)


def rise_pose(start: np.ndarray, elapsed_s: float) -> np.ndarray:
    """Return the targets (14,) [rad] `elapsed_s` into the ramp from pose `start` (14,) to STAND.

    Speed is zero at both ends, so neither joints nor trunk are jerked.
    """
    part = min(max(elapsed_s / RISE_S, 0.0), 1.0)
    return start + (STAND - start) * (part * part * (3.0 - 2.0 * part))
