"""Why a drive is to end, from the first check on, and the exit code that tells it."""

from __future__ import annotations

from firmware_bridge.cli.exits import EXIT_FALLEN, EXIT_FAULT, EXIT_OK, EXIT_SIGNAL
from firmware_bridge.commands.request import CommandSource, Event
from firmware_bridge.drive.modes import Mode
from firmware_bridge.drive.signals import StopSignals


class Ending:
    """Knows whether the drive is to end, also before there is a loop that asks the source.

    Args:
        signals: what ends it at any time.
        source: what may tell it to end while the duck is waited for.
    """

    def __init__(self, signals: StopSignals, source: CommandSource) -> None:
        self._signals, self._source = signals, source
        self._told = False

    def before_the_loop(self) -> str | None:
        """Ask the source, too, and return why to end, None to go on; a START it gives is forgotten."""
        self._told = self._told or self._source.latest().event is Event.QUIT
        return self.reason()

    def reason(self) -> str | None:
        """Return why to end, None to go on."""
        return self._signals.reason() or ("told to end" if self._told else None)

    def hurry(self) -> bool:
        """Return whether to go limp at once, without sitting down first."""
        return self._signals.hurry()

    def code(self, mode: Mode = Mode.STOPPED) -> int:
        """Return the exit code of a drive that ended in a mode."""
        if mode is not Mode.STOPPED:
            return EXIT_FALLEN if mode is Mode.FALLEN else EXIT_FAULT
        return EXIT_SIGNAL + self._signals.received if self._signals.received else EXIT_OK
