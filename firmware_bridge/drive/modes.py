"""What the duck is doing: its modes, and the one table of which may follow which and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import NamedTuple

from hardware.contract import CONTROL_PERIOD_S
from hardware.errors import SafetyError


class Mode(Enum):
    """A state of the drive."""

    LIMP = "limp"
    """Torque off, waiting for START."""
    RISE = "rise"
    """A ramp from where the joints are to STAND."""
    STAND = "stand"
    """The policy holds the duck in place: nobody steers it."""
    RUN = "run"
    """The policy does what is asked."""
    SIT = "sit"
    """To a halt, down to the seat, then torque off."""
    FALLEN = "fallen"
    """It fell or was about to: torque off, waiting for START."""
    STOPPED = "stopped"
    """Ended as asked."""
    FAULT = "fault"
    """Ended because something broke."""


STIFF = frozenset({Mode.RISE, Mode.STAND, Mode.RUN, Mode.SIT})
"""Modes with torque; in all others the servos are limp."""
ENDS = frozenset({Mode.STOPPED, Mode.FAULT})
"""Modes that end the process."""

_WAYS_OUT: Mapping[Mode, str] = {
    Mode.SIT: "SIT, an end, heat, current, empty battery",
    Mode.FALLEN: "it falls",
    Mode.LIMP: "LIMP",
    Mode.STOPPED: "an end, unable to sit",
    Mode.FAULT: "fault",
}
TRANSITIONS: Mapping[Mode, Mapping[Mode, str]] = {
    Mode.LIMP: {Mode.RISE: "START", Mode.LIMP: "LIMP", Mode.STOPPED: "an end", Mode.FAULT: "fault"},
    Mode.RISE: {Mode.STAND: "risen, nobody steers", Mode.RUN: "risen, somebody steers", **_WAYS_OUT},
    Mode.STAND: {Mode.RUN: "a live command", **_WAYS_OUT},
    Mode.RUN: {Mode.STAND: "the command is lost", **_WAYS_OUT},
    Mode.SIT: {
        Mode.LIMP: "seated after SIT",
        Mode.STOPPED: "seated after an end",
        Mode.FAULT: "seated after heat, current, empty battery; fault",
    },
    Mode.FALLEN: {Mode.RISE: "START", Mode.LIMP: "LIMP", Mode.STOPPED: "an end", Mode.FAULT: "fault"},
    Mode.STOPPED: {Mode.FAULT: "torque stays on"},
    Mode.FAULT: {Mode.FAULT: "torque stays on"},
}
"""For each mode, the modes that may follow and what leads there."""


class Order(NamedTuple):
    """A change of mode that is due.

    Attributes:
        mode: the mode to enter.
        reason: why, for the user.
        then: what follows a SIT, also when the duck is unable to sit.
    """

    mode: Mode
    reason: str
    then: Mode = Mode.STOPPED


class ModeMachine:
    """Holds the mode and lets it change only along the table.

    Args:
        report: called with each new mode and the reason for it.

    Attributes:
        mode: the present mode, LIMP at first.
        reason: why.
        periods: control periods since it was entered.
    """

    def __init__(self, report: Callable[[Mode, str], None]) -> None:
        self.mode, self.reason, self.periods = Mode.LIMP, "waiting for START", 0
        self._report = report

    @property
    def seconds(self) -> float:
        """Time in the present mode [s]."""
        return self.periods * CONTROL_PERIOD_S

    def change(self, mode: Mode, reason: str) -> None:
        """Enter a mode.

        Raises:
            SafetyError: the table does not allow the change.
        """
        if mode not in TRANSITIONS[self.mode]:
            allowed = sorted(m.value for m in TRANSITIONS[self.mode])
            raise SafetyError(f"mode {self.mode.value!r} cannot become {mode.value!r}; allowed: {allowed}")
        self.mode, self.reason, self.periods = mode, reason, 0
        self._report(mode, reason)


def diagram() -> str:
    """Return the table as a Mermaid state diagram; modes with torque have a thick border."""
    edges = [
        f"    {before.value} --> {after.value}: {why}"
        for before, followers in TRANSITIONS.items()
        for after, why in followers.items()
    ]
    ends = [f"    {mode.value} --> [*]" for mode in Mode if mode in ENDS]
    stiff = ",".join(mode.value for mode in Mode if mode in STIFF)
    style = ["    classDef torque stroke-width:4px", f"    class {stiff} torque"]
    return "\n".join(["stateDiagram-v2", f"    [*] --> {Mode.LIMP.value}", *edges, *ends, *style])
