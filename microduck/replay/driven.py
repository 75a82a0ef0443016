"""What of a recording can be replayed: stretches in which the policy drove the duck and was heard."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from math import pi

import numpy as np

from firmware_bridge.drive.modes import Mode
from firmware_bridge.recording import Log
from hardware.contract import CONTROL_PERIOD_S
from hardware.errors import ArchiveError, ContractError
from microduck.replay.moments import measured_s, written_s

SIGNALS = {"position": 14, "velocity": 14, "angular_velocity": 3, "gravity": 3}
"""Arrays of a log that are compared with the simulator's, side by side, and their widths."""
WIDTH = sum(SIGNALS.values())
DRIVEN = (Mode.STAND.value, Mode.RUN.value)
"""Modes whose duck stands on its own feet."""
LEAST_S = 2.0
"""Shortest stretch that is replayed [s]: its first half second only lets the simulator swing in."""
MOST_BRIDGED = 5
"""Most periods between two ticks that are bridged; the servos held their target, and nobody measured."""
MOST_OFF_S = 0.005
"""Most by which a tick may come off the beat of the one before [s]: four simulated steps lie between two
measurements, and much longer ones are no longer those that policies are trained with."""
PERIOD_TOLERANCE = 0.1
"""By what part the time between ticks may differ from the contract's period."""
_MOST = {"applied": 2 * pi, "position": 2 * pi, "velocity": 100.0, "angular_velocity": 100.0, "gravity": 1.1}
"""Largest numbers that are believed: a servo's turn and one of a joint's offset, several times the speed of
an XL330 and of an IMU's range [rad, rad, rad/s, rad/s, 1]."""
_LEAST_GRAVITY = 0.9
"""Shortest direction of gravity that is believed; it is a unit vector."""
_HELD, _LIMP, _SILENT, _STRANGE, _SHORT = (
    "rising or sitting down, where a hand may hold the duck",
    "limp, or nothing was written",
    "without a measurement",
    "with numbers that no duck measures or is told",
    f"in a stretch of less than {LEAST_S:g} s between ticks that are late, missing or left out",
)


@dataclass(frozen=True)
class Stretch:
    """A stretch on a grid of control periods, without a gap.

    Attributes:
        measured_s: when it was measured, since the log's first tick, (n,) [s].
        written_s: when the target was on the bus, likewise; never falls.
        targets: what was written, held where a tick is missing, (n, 14) [rad].
        measured: the `SIGNALS` side by side, measured just before the target was written, (n, WIDTH).
        seen: whether there is a fresh measurement, (n,) bool.
    """

    measured_s: np.ndarray
    written_s: np.ndarray
    targets: np.ndarray
    measured: np.ndarray
    seen: np.ndarray


@dataclass(frozen=True)
class Driven:
    """What can be replayed.

    Attributes:
        stretches: in the order of the log; at least one.
        left_out: ticks that are left out, by why.
        bridged: periods without a tick inside of the stretches.
    """

    stretches: tuple[Stretch, ...]
    left_out: Mapping[str, int]
    bridged: int

    @property
    def seconds(self) -> float:
        """Time that is replayed [s]."""
        return sum(len(stretch.seen) for stretch in self.stretches) * CONTROL_PERIOD_S


def find_driven(log: Log) -> Driven:
    """Return what can be replayed of a log.

    Raises:
        ContractError: its ticks are not those of this duck's contract.
        ArchiveError: nothing of it can be replayed.
    """
    _check_period(log)
    why = _why_not(log)
    usable = why == ""
    periods = np.maximum(log.arrays["periods"][1:], 1)
    on_beat = np.abs(np.diff(log.arrays["time"]) - CONTROL_PERIOD_S * periods) <= MOST_OFF_S
    joined = usable[1:] & usable[:-1] & (periods <= MOST_BRIDGED) & on_beat
    ends = np.flatnonzero(~joined) + 1
    stretches = []
    for place in np.split(np.arange(log.ticks), ends):
        if not usable[place[0]]:
            continue
        stretch = _on_grid(log, place)
        if len(stretch.seen) * CONTROL_PERIOD_S >= LEAST_S:
            stretches.append(stretch)
        else:
            why[place] = _SHORT
    left_out = Counter(str(reason) for reason in why if reason)
    if not stretches:
        raise ArchiveError(_nothing(log, left_out))
    slots, ticks = sum(len(stretch.seen) for stretch in stretches), int((why == "").sum())
    return Driven(tuple(stretches), dict(left_out.most_common()), slots - ticks)


def _check_period(log: Log) -> None:
    if log.ticks < 2:
        raise ArchiveError(f"the log has {log.ticks} ticks; record a drive of {LEAST_S:g} s or more")
    periods = np.maximum(log.arrays["periods"][1:], 1)
    period = float(np.median(np.diff(log.arrays["time"]) / periods))
    if not abs(period / CONTROL_PERIOD_S - 1) <= PERIOD_TOLERANCE:
        raise ContractError(
            f"the log's ticks are {1e3 * period:.4g} ms apart, this duck's {1e3 * CONTROL_PERIOD_S:g} ms; "
            "it was made under another contract, so replay it with the toolkit that recorded it"
        )


def _why_not(log: Log) -> np.ndarray:
    """Return why each tick cannot be replayed, (ticks,) of text; empty where it can."""
    arrays = log.arrays
    silent = ~np.logical_and.reduce([np.isfinite(arrays[name]).all(axis=1) for name in SIGNALS])
    stands = np.isin(log.names("mode"), DRIVEN)
    limp = ~np.isfinite(arrays["applied"]).all(axis=1)
    strange = np.linalg.norm(arrays["gravity"].astype(np.float64), axis=1) < _LEAST_GRAVITY
    for name, most in _MOST.items():
        strange |= (np.abs(arrays[name]) > most).any(axis=1)
    reasons = [_LIMP, _HELD, _SILENT, _STRANGE]
    return np.select([limp, ~stands, silent, strange], reasons, "").astype(object)


def _on_grid(log: Log, place: np.ndarray) -> Stretch:
    """Return ticks `place` (k,), which follow each other, with one row for each control period."""
    arrays = log.arrays
    steps = np.maximum(arrays["periods"][place], 1).astype(np.int64)
    slot = np.cumsum(steps) - steps[0]
    newest = np.searchsorted(slot, np.arange(slot[-1] + 1), side="right") - 1  # tick in force in each period
    rows = place[newest]
    fresh = np.zeros(len(rows), bool)
    fresh[slot] = arrays["fresh"][place]
    measured = np.concatenate([arrays[name][rows] for name in SIGNALS], axis=1).astype(np.float64)
    return Stretch(
        measured_s=np.interp(np.arange(len(rows)), slot, measured_s(log)[place]),
        written_s=np.maximum.accumulate(written_s(log)[rows]),
        targets=arrays["applied"][rows].astype(np.float64),
        measured=measured,
        seen=fresh,
    )


def _nothing(log: Log, left_out: Mapping[str, int]) -> str:
    reasons = "; ".join(f"{count} {reason}" for reason, count in left_out.items())
    return (
        f"nothing of the log's {log.ticks} ticks can be replayed ({reasons}); record a drive in which a "
        f"skill runs for {LEAST_S:g} s or more"
    )
