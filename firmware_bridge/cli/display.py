"""What a user sees of a drive: news as lines, a live line on a terminal, a table at the end."""

from __future__ import annotations

import logging
import queue
import shutil
import threading
from collections.abc import Callable, Mapping
from math import acos, degrees
from types import TracebackType
from typing import Any, Self, TextIO

from firmware_bridge.drive.modes import Mode
from firmware_bridge.drive.summary import Summary, Tick

REFRESH_S = 0.2
"""Time between two live lines [s]."""
CLOSE_S = 1.0
"""Longest to wait for a terminal that takes no text when the drive is over [s]."""
_LOGGER = logging.getLogger("firmware_bridge")


class _News(logging.Handler):
    """Hands log records on as lines."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        self._tell(record.getMessage())


class StatusPrinter:
    """Context that shows a drive, and what the bus logs meanwhile.

    A thread prints, because a terminal may block and the loop must not.

    Args:
        stream: where to print; the live line appears only on a terminal.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._live = stream.isatty()
        self._news: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._tick: Tick | None = None
        self._logs = _News(self.tell)
        self._thread = threading.Thread(target=self._work, name="status", daemon=True)

    def tell(self, text: str) -> None:
        """Show a line; any thread may call this."""
        self._news.put(text)

    def on_mode(self, mode: Mode, reason: str) -> None:
        """Announce a mode."""
        self.tell(f"{mode.value}: {reason}")

    def on_tick(self, tick: Tick) -> None:
        """Take a tick in, for the live line."""
        self._tick = tick

    def __enter__(self) -> Self:
        _LOGGER.addHandler(self._logs)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _LOGGER.removeHandler(self._logs)
        self._news.put(None)
        self._thread.join(CLOSE_S)

    def _work(self) -> None:
        clear = "\r\x1b[K" if self._live else ""
        try:
            while True:
                try:
                    news = self._news.get(timeout=REFRESH_S if self._live else None)
                except queue.Empty:
                    self._stream.write(clear + self._live_line())
                else:
                    if news is None:
                        self._stream.write(clear)
                        return
                    self._stream.write(f"{clear}{news}\n")
                self._stream.flush()
        except OSError:  # the terminal is gone; the drive goes on and its signal ends it
            return

    def _live_line(self) -> str:
        if self._tick is None:
            return ""
        return live_line(self._tick)[: shutil.get_terminal_size().columns - 1]


def live_line(tick: Tick) -> str:
    """Return one line on how the drive goes; a narrow terminal cuts its end, which matters least."""
    vx, vy, yaw = tick.command
    limits = f" | limited by {', '.join(tick.limited_by)}" if tick.limited_by else ""
    return (
        f"{tick.mode.value} {tick.mode_s:.1f} s | {tick.skill} {vx:+.2f} {vy:+.2f} {yaw:+.2f} | "
        f"lean {_lean(tick)} deg | {tick.rate_hz:.1f} Hz, missed {tick.missed}, errors {tick.bus_errors}"
        f"{limits}"
    )


def _lean(tick: Tick) -> str:
    if tick.sample is None:
        return "?"
    return f"{degrees(acos(min(1.0, max(-1.0, -tick.sample.gravity[2])))):.0f}"


def summary_table(summary: Summary, cpu_share: float) -> str:
    """Return the end of a drive as a table."""
    tally = summary.tally
    stages = (
        f"{name} {1e3 * time.mean_s:.2f} ({1e3 * time.worst_s:.1f})" for name, time in summary.stages.items()
    )
    rows = {
        "end": f"{summary.mode.value}: {summary.reason}",
        "driven": f"{summary.run_s:.2f} s",
        "ticks": f"{summary.ticks}, {summary.missed} missed{_when_missed(summary)}",
        "rate": f"{summary.rate_hz:.3f} Hz, at worst {1e3 * summary.worst_lateness_s:.1f} ms late",
        "work": f"{1e3 * summary.mean_work_s:.2f} ms a tick, at worst {1e3 * summary.worst_work_s:.1f} ms",
        "stages": f"{', '.join(stages)} ms, in brackets the worst",
        "CPU": f"{100 * cpu_share:.1f} % of a core",
        "bus errors": f"{_counts(tally.bus_errors)}; {tally.held_ticks} ticks held",
        "limited by": f"{_counts(tally.limited)}",
        "servo faults": ", ".join(sorted(tally.alerts)) or "none",
    }
    if summary.commands_refused:
        rows["input"] = f"{summary.commands_refused} refused, for they were no command"
    return "\n".join(f"{name:<13}{text}" for name, text in rows.items())


def _when_missed(summary: Summary) -> str:
    """Say how many were missed on the way: switching torque on and off may well take longer than a tick."""
    return f", {summary.tally.missed_driving} of them while the policy drove" if summary.missed else ""


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items())) or "none"


def summary_data(summary: Summary, cpu_share: float) -> dict[str, Any]:
    """Return the end of a drive as plain data."""
    data = {**vars(summary), **vars(summary.tally), "mode": summary.mode.value, "cpu_share": cpu_share}
    del data["tally"]
    data["stages"] = {name: time._asdict() for name, time in summary.stages.items()}
    data["alerts"] = sorted(summary.tally.alerts)
    return data
