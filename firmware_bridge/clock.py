"""Ticking at absolute deadlines: no drift, no bursts, and a count of what was missed.

Deadlines are multiples of the period from the start, not from the last wake-up: a loop that sleeps "a period
minus the work" loses every wake-up's delay for good.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from math import ceil

from hardware.contract import CONTROL_PERIOD_S

GRACE = 0.5
"""Lateness, in periods, up to which a tick still starts; a later one waits for the next deadline, so that two
ticks are never closer than half a period."""


class Ticker:
    """Wakes the loop at each deadline.

    Args:
        period_s: time between deadlines [s].
        now: monotonic time [s].
        sleep: waits for a time [s].

    Attributes:
        ticks: ticks started.
        missed: deadlines that were skipped.
        worst_lateness_s: largest delay of a tick behind its deadline [s].
        worst_work_s: longest time between a tick's start and the next wait [s].
    """

    def __init__(
        self,
        period_s: float = CONTROL_PERIOD_S,
        now: Callable[[], float] = time.perf_counter,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._period, self._now, self._sleep = period_s, now, sleep
        self._first = self._last = 0.0
        self._index = 0
        self._work = 0.0
        self.ticks = self.missed = 0
        self.worst_lateness_s = self.worst_work_s = 0.0

    @property
    def rate_hz(self) -> float:
        """Ticks per second since the first [Hz]; 0 before the second tick."""
        return (self.ticks - 1) / (self._last - self._first) if self.ticks > 1 else 0.0

    @property
    def mean_work_s(self) -> float:
        """Mean time between a tick's start and the next wait [s]."""
        return self._work / self.ticks if self.ticks else 0.0

    def wait(self) -> int:
        """Sleep until the next deadline.

        Returns:
            Deadlines skipped since the last call.
        """
        now = self._now()
        if self.ticks == 0:
            self._first = self._last = now
            self.ticks = 1
            return 0
        work = now - self._last
        self._work += work
        self.worst_work_s = max(self.worst_work_s, work)
        skipped = self._sleep_to_deadline(now)
        self.ticks += 1
        self.missed += skipped
        return skipped

    def _sleep_to_deadline(self, now: float) -> int:
        self._index += 1
        skipped = 0
        while True:
            late = now - self._first - self._index * self._period
            if late < 0:
                self._sleep(-late)
                now = self._now()
            elif late > GRACE * self._period:
                step = ceil(late / self._period - GRACE)
                self._index += step
                skipped += step
            else:
                self._last = now
                self.worst_lateness_s = max(self.worst_lateness_s, late)
                return skipped
