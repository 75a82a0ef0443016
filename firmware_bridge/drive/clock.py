"""Ticking at absolute deadlines: no drift, no bursts, and a count of what was missed.

Deadlines are multiples of the period from the start, not from the last wake-up: a loop that sleeps "a period
minus the work" loses every wake-up's delay for good.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from math import ceil

from hardware.contract import CONTROL_PERIOD_S

GRACE = 0.5
"""Lateness, in periods, up to which a tick still starts; a later one waits for the next deadline."""
CATCH_UP_S = 0.001
"""Most by which two ticks may start closer than a period [s]: a late tick is made up for by the next few, a
little in each, instead of by one that comes at once."""
_RECENT = 51


class Ticker:
    """Wakes the loop at each deadline.

    Args:
        period_s: time between deadlines [s].
        now: monotonic time [s].
        sleep: waits for a time [s].

    Attributes:
        now: the same.
        started_s: when the present tick started [s].
        idle_s: how long the loop waited for it [s].
        ticks: ticks started.
        missed: deadlines that were skipped.
        worst_lateness_s: largest delay of a tick behind its deadline [s].
        worst_work_s: longest time between a tick's start and the next wait [s].
    """

    def __init__(
        self,
        period_s: float = CONTROL_PERIOD_S,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._period, self.now, self._sleep = period_s, now, sleep
        self._first = self.started_s = 0.0
        self._index = 0
        self._work = 0.0
        self._recent: deque[float] = deque(maxlen=_RECENT)
        self.ticks = self.missed = 0
        self.idle_s = self.worst_lateness_s = self.worst_work_s = 0.0

    @property
    def rate_hz(self) -> float:
        """Ticks per second since the first [Hz]; 0 before the second tick."""
        return (self.ticks - 1) / (self.started_s - self._first) if self.ticks > 1 else 0.0

    @property
    def recent_hz(self) -> float:
        """Ticks per second over the last second of ticks [Hz]; 0 before the second tick."""
        starts = self._recent
        return (len(starts) - 1) / (starts[-1] - starts[0]) if len(starts) > 1 else 0.0

    @property
    def mean_work_s(self) -> float:
        """Mean time between a tick's start and the next wait [s]."""
        return self._work / self.ticks if self.ticks else 0.0

    @property
    def next_s(self) -> float:
        """When the next tick starts at the earliest [s]."""
        return max(self._deadline(self._index + 1), self._earliest)

    def wait(self) -> int:
        """Sleep until the next tick.

        Returns:
            Deadlines skipped since the last call.
        """
        now = self.now()
        if self.ticks == 0:
            self._first = now
            self._start(now)
            return 0
        work = now - self.started_s
        self._work += work
        self.worst_work_s = max(self.worst_work_s, work)
        skipped = self._sleep_to_deadline(now)
        self.idle_s = self.started_s - now
        self.missed += skipped
        return skipped

    @property
    def _earliest(self) -> float:
        return self.started_s + self._period - CATCH_UP_S

    def _deadline(self, index: int) -> float:
        return self._first + index * self._period

    def _start(self, now: float) -> None:
        self.started_s = now
        self.ticks += 1
        self._recent.append(now)

    def _sleep_to_deadline(self, now: float) -> int:
        self._index += 1
        skipped = 0
        while True:
            late = now - self._deadline(self._index)
            early = self._earliest - now
            if late > GRACE * self._period:
                step = ceil(late / self._period - GRACE)
                self._index += step
                skipped += step
            elif late < 0 or early > 0:
                self._sleep(-late if late < 0 else early)
                now = self.now()
            else:
                self.worst_lateness_s = max(self.worst_lateness_s, late)
                self._start(now)
                return skipped
