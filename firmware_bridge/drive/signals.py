"""Signals that end a drive: noted at once, obeyed between two ticks, so that limp is never cut short."""

from __future__ import annotations

import signal
from types import FrameType, TracebackType
from typing import Any, Self

STOP_SIGNALS = (
    *(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP),
    *(signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGVTALRM, signal.SIGXCPU),
)
"""Ctrl-C, `kill`, a closed terminal, Ctrl-\\, Ctrl-Z (a sleeping process would leave the servos stiff), and
those that end a process which does not expect them."""
IGNORED_SIGNALS = (signal.SIGTTOU, signal.SIGTTIN)
"""A terminal's way of suspending a background process that writes to it or reads from it."""


class StopSignals:
    """Context in which `STOP_SIGNALS` only set `received`, however often they come, and none suspends.

    A SIGHUP that the parent asked to ignore, as `nohup` does, stays ignored.

    Attributes:
        received: the first signal that came, None before.
    """

    def __init__(self) -> None:
        self.received: signal.Signals | None = None
        self._hurry = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        for number in STOP_SIGNALS:
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._note)
        for number in IGNORED_SIGNALS:
            self._before[number] = signal.signal(number, signal.SIG_IGN)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        # Only a person presses Ctrl-C again; a terminal or a system going down may send several others.
        self._hurry = self._hurry or (self.received is not None and number == signal.SIGINT)
        self.received = self.received or signal.Signals(number)

    def hurry(self) -> bool:
        """Return whether Ctrl-C came after a first signal: the user wants limp servos, now."""
        return self._hurry

    def reason(self) -> str | None:
        """Return what to tell the user, None when no signal came."""
        return f"{self.received.name} received" if self.received else None
