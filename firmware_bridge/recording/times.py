"""When the ticks of a log were, on the calendar."""

from __future__ import annotations

import numpy as np

from firmware_bridge.recording.description import started
from firmware_bridge.recording.log import MOST_TIME_S, Log

CLOCK = "clock"
"""Key of the description: the monotonic time at `started` [s]."""


def tick_nanoseconds(log: Log) -> np.ndarray:
    """Return the time of each tick since 1970, (ticks,) [ns, integers].

    They follow from the start in the description; without a valid one the log starts in 1970. A clock that
    the ticks cannot have followed is taken for that of the first tick.
    """
    time = log.arrays["time"]
    begin, first = log.meta.get(CLOCK), time[0] if log.ticks else 0.0
    if type(begin) is not float or not -MOST_TIME_S < begin <= first:
        begin = first
    moment = started(log.meta)
    epoch = round(moment.timestamp() * 1e3) * 10**6 if moment else 0
    return epoch + np.rint((time - begin) * 1e9).astype(np.int64)
