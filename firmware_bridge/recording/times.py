"""When the ticks of a log were, on the calendar."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np

from firmware_bridge.recording.log import Log

CLOCK = "clock"
"""Key of the description: the monotonic time at `started` [s]."""


def tick_nanoseconds(log: Log) -> np.ndarray:
    """Return the time of each tick since 1970, (ticks,) [ns, integers].

    They follow from the start in the description; without a valid one the log starts in 1970.
    """
    time = log.arrays["time"]
    begin = log.meta.get(CLOCK)
    if type(begin) is not float or not abs(begin) < 1e9:
        begin = time[0] if log.ticks else 0.0
    return _epoch(log.meta.get("started")) + np.rint((time - begin) * 1e9).astype(np.int64)


def _epoch(started: object) -> int:
    try:
        moment = datetime.fromisoformat(started) if isinstance(started, str) else None
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None or moment < datetime(1970, 1, 1, tzinfo=UTC):
        return 0
    return round(moment.timestamp() * 1e3) * 10**6
