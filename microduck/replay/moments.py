"""When things happened in a drive: a robot measures and obeys whenever it does, and not on a beat."""

from __future__ import annotations

import numpy as np

from firmware_bridge.drive.summary import STAGES
from firmware_bridge.recording import Log
from hardware.contract import CONTROL_PERIOD_S


def measured_s(log: Log) -> np.ndarray:
    """Return when each tick measured, since the log's first tick, (ticks,) [s].

    That is a quarter of a usual read after its start: all servos hear one request, and the rest of a read is
    their answers' way. A longer read tried again, or fetched slow values as well.
    """
    return log.seconds + 0.25 * float(np.median(_stage(log, "read")))


def written_s(log: Log) -> np.ndarray:
    """Return when each tick's target was on the bus, since the log's first tick, (ticks,) [s]."""
    work = sum(_stage(log, name) for name in ("read", "policy", "write"))
    return log.seconds + np.minimum(work, CONTROL_PERIOD_S)


def _stage(log: Log, name: str) -> np.ndarray:
    """Return how long a stage took in each tick, (ticks,) [s]; 0 where that is not known."""
    times = log.arrays["stages"][:, STAGES.index(name)].astype(np.float64)
    return np.clip(np.nan_to_num(times, nan=0.0), 0.0, CONTROL_PERIOD_S)
