"""Windows: a recording cut into pieces of equal length that are replayed side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
import torch
from torch import Tensor

from hardware.errors import ArchiveError
from microduck.replay.driven import Stretch

WARM_UP = 25
"""First periods of a window, which only let the simulator swing in: its contacts have no history yet."""
COUNTED = 75
"""Periods of a window that count: many windows keep all cores busy, long ones waste less on the warm-up."""
LEAST_COUNTED = 50
"""Least periods that are compared, a second of them; fewer tell of no cause."""
LENGTH = WARM_UP + COUNTED
PAST = 3
"""Targets before a window's first, which late servos still follow."""


@dataclass(frozen=True)
class Windows:
    """Pieces of stretches; all tensors have one row for each, float64 but for the masks.

    Attributes:
        targets: what was written, with `PAST` more before the first period, (w, PAST + LENGTH, 14) [rad].
        measured: see `Stretch`, (w, LENGTH, WIDTH).
        seen: whether there is a measurement, (w, LENGTH) bool.
        counted: whether a period counts in the gap, (w, LENGTH) bool; no period counts in two windows.
        time: when it was measured, since the log's begin, (w, LENGTH) [s].
        written: when each target was on the bus, likewise, (w, PAST + LENGTH) [s].
    """

    targets: Tensor
    measured: Tensor
    seen: Tensor
    counted: Tensor
    time: Tensor
    written: Tensor

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, rows: Tensor) -> Windows:
        """Return those at `rows`, places or a mask."""
        return Windows(*(getattr(self, name)[rows] for name in Windows.__dataclass_fields__))

    @property
    def loop_s(self) -> float:
        """What usually lies between a measurement and the target it led to [s]."""
        return float((self.written[:, PAST:] - self.time)[self.counted].median())

    @property
    def unsure_s(self) -> float:
        """How far the moment of a measurement may be from where `time` has it [s].

        A robot's reads take equally long. Where they do not, the other side came to measure, or to hear of a
        target, sooner or later, and no log tells when: half of the range that nine in ten lie in.
        """
        took = (self.written[:, PAST:] - self.time)[self.counted]
        low, high = took.quantile(torch.tensor([0.05, 0.95], dtype=took.dtype)).tolist()
        return 0.5 * (high - low)

    def some(self, most: int) -> Windows:
        """Return at most so many windows, spread over the log."""
        if len(self) <= most:
            return self
        return self[torch.linspace(0, len(self) - 1, most).round().long()]


def cut(stretches: Sequence[Stretch], period_s: float) -> Windows:
    """Cut stretches into windows; a short one is filled up with periods that do not count.

    Raises:
        ArchiveError: fewer than `LEAST_COUNTED` periods count.
    """
    pieces = [piece for stretch in stretches for piece in _pieces(stretch, period_s)]
    windows = Windows(*(torch.from_numpy(np.stack(column)) for column in zip(*pieces, strict=True)))
    fresh = int(windows.counted.sum())
    if fresh < LEAST_COUNTED:
        raise ArchiveError(
            f"{fresh} ticks after the first {WARM_UP} of a stretch have a fresh measurement, and "
            f"{LEAST_COUNTED} are needed; look at the bus with `duck doctor` and record again"
        )
    return windows[windows.counted.any(dim=1)]


def _pieces(stretch: Stretch, period_s: float) -> Iterator[tuple[np.ndarray, ...]]:
    size = len(stretch.seen)
    last = max(0, size - LENGTH)
    counted_to = WARM_UP
    for number in range(max(1, ceil((size - WARM_UP) / COUNTED))):
        start = min(number * COUNTED, last)
        places = start + np.arange(-PAST, LENGTH)
        rows = np.clip(places, 0, size - 1)
        now, slots = rows[PAST:], places[PAST:]
        seen = stretch.seen[now] & (slots < size)
        fresh = (slots >= max(counted_to, start + WARM_UP)) & seen
        counted_to = start + LENGTH
        beyond = period_s * (places - rows)  # nothing happens there, a period at a time
        time, written = stretch.measured_s[rows] + beyond, stretch.written_s[rows] + beyond
        yield stretch.targets[rows], stretch.measured[now], seen, fresh, time[PAST:], written
