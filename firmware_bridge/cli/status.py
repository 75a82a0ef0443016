"""What a user sees of a drive: news as lines, a live line on a terminal, a table at the end."""

from __future__ import annotations

import logging
import queue
import shutil
import threading
from collections.abc import Callable
from dataclasses import asdict
from math import acos, degrees
from types import TracebackType
from typing import Any, Self, TextIO

from firmware_bridge.clock import Ticker
from firmware_bridge.modes import Mode
from firmware_bridge.summary import Summary, Tick

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
        ticker: the loop's ticker, for the rate.
    """

    def __init__(self, stream: TextIO, ticker: Ticker) -> None:
        self._stream, self._ticker = stream, ticker
        self._live = stream.isatty()
        self._news: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._tick: Tick | None = None
        self._alerts: set[str] = set()
        self._logs = _News(self._news.put)
        self._thread = threading.Thread(target=self._work, name="status", daemon=True)

    def on_mode(self, mode: Mode, reason: str) -> None:
        """Announce a mode."""
        self._news.put(f"{mode.value}: {reason}")

    def on_tick(self, tick: Tick) -> None:
        """Take a tick in, and announce a servo that reports a fault, once."""
        self._tick = tick
        if tick.sample and not self._alerts.issuperset(tick.sample.alerts):
            for name in set(tick.sample.alerts) - self._alerts:
                self._news.put(f"{name}: the servo reports a hardware fault")
            self._alerts.update(tick.sample.alerts)

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
        line = live_line(self._tick, self._ticker)
        return line[: shutil.get_terminal_size().columns - 1]


def live_line(tick: Tick, ticker: Ticker) -> str:
    """Return one line on how the drive goes."""
    vx, vy, yaw = tick.command
    lean = (
        "?" if tick.sample is None else f"{degrees(acos(min(1.0, max(-1.0, -tick.sample.gravity[2])))):.0f}"
    )
    return (
        f"{tick.mode.value} {tick.mode_s:.1f} s | {ticker.rate_hz:.2f} Hz | missed {ticker.missed} | "
        f"bus errors {tick.bus_errors} | command {vx:+.2f} {vy:+.2f} {yaw:+.2f} | lean {lean} deg"
    )


def summary_table(summary: Summary, cpu_share: float) -> str:
    """Return the end of a drive as a table."""
    tally = summary.tally
    errors = ", ".join(f"{count} {name}" for name, count in sorted(tally.bus_errors.items())) or "none"
    rows = {
        "end": f"{summary.mode.value}: {summary.reason}",
        "driven": f"{summary.run_s:.2f} s",
        "ticks": f"{summary.ticks}, {summary.missed} missed",
        "rate": f"{summary.rate_hz:.3f} Hz, at worst {1e3 * summary.worst_lateness_s:.1f} ms late",
        "work": f"{1e3 * summary.mean_work_s:.2f} ms a tick, at worst {1e3 * summary.worst_work_s:.1f} ms",
        "CPU": f"{100 * cpu_share:.1f} % of a core",
        "bus errors": f"{errors}; {tally.held_ticks} ticks held",
        "limited": f"{tally.slewed} targets slowed, {tally.clamped} out of range",
        "servo faults": ", ".join(sorted(tally.alerts)) or "none",
    }
    if summary.commands_refused:
        rows["input"] = f"{summary.commands_refused} lines were no command VX VY YAW"
    return "\n".join(f"{name:<13}{text}" for name, text in rows.items())


def summary_data(summary: Summary, cpu_share: float) -> dict[str, Any]:
    """Return the end of a drive as plain data."""
    data = asdict(summary)
    tally = data.pop("tally")
    tally["alerts"] = sorted(tally["alerts"])
    return {**data, "mode": summary.mode.value, "cpu_share": cpu_share, **tally}
