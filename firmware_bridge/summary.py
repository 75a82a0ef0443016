"""What a drive tells: each tick as it happens, and the counts at its end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from firmware_bridge.body import BodySample
from firmware_bridge.modes import Mode


class Tick(NamedTuple):
    """What one tick did, for whoever watches.

    Attributes:
        mode: mode in the tick.
        mode_s: time in that mode [s].
        sample: newest sample, None before the first.
        fresh: whether the sample is of this tick.
        command: command in force, (3,) [m/s, m/s, rad/s].
        observation: last observation of the policy, (width,).
        targets: targets written last, (14,) [rad], None before the first.
        bus_errors: failed reads and writes so far.
    """

    mode: Mode
    mode_s: float
    sample: BodySample | None
    fresh: bool
    command: np.ndarray
    observation: np.ndarray
    targets: np.ndarray | None
    bus_errors: int


@dataclass
class Tally:
    """Counts of a drive.

    Attributes:
        policy_ticks: ticks in which the policy ran.
        held_ticks: ticks that only held the last targets, because too many reads were missed.
        bus_errors: failed reads and writes by the name of their error.
        slewed: joint targets that were slowed down.
        clamped: joint targets that were out of range.
        alerts: joints whose servo reported a hardware fault.
    """

    policy_ticks: int = 0
    held_ticks: int = 0
    bus_errors: dict[str, int] = field(default_factory=dict)
    slewed: int = 0
    clamped: int = 0
    alerts: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Summary:
    """What a drive did and how it ended.

    Attributes:
        mode: mode at the end.
        reason: why it ended.
        run_s: time in which the policy drove [s].
        ticks: ticks of the loop.
        missed: ticks that were skipped because the one before took too long.
        rate_hz: ticks per second [Hz].
        worst_lateness_s: largest delay of a tick [s].
        mean_work_s: mean time of a tick's work [s].
        worst_work_s: largest [s].
        tally: what else was counted.
        commands_refused: inputs of the command source that were no command.
    """

    mode: Mode
    reason: str
    run_s: float
    ticks: int
    missed: int
    rate_hz: float
    worst_lateness_s: float
    mean_work_s: float
    worst_work_s: float
    tally: Tally
    commands_refused: int
