"""What a drive tells: each tick as it happens, and the counts at its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from firmware_bridge.drive.modes import Mode
from firmware_bridge.robot.body import BodySample

STAGES = ("read", "policy", "write", "idle")
"""Parts of a tick: the sample, everything from it to the targets, writing (targets, or torque on or off), and
waiting for the tick."""


class Tick(NamedTuple):
    """What one tick did, for whoever watches.

    Attributes:
        time_s: when it started, monotonic [s].
        mode: mode in the tick.
        reason: why the duck is in that mode.
        mode_s: time in that mode [s].
        skill: name of the skill in force.
        sample: newest sample, None before the first.
        fresh: whether the sample is of this tick.
        requested: command that was asked for, (3,) [m/s, m/s, rad/s].
        command: command in force, (3,) [m/s, m/s, rad/s].
        head: head offsets in force, (4,) [rad].
        limited_by: names of what made a difference between what was asked or wanted and what was done.
        observation: last observation of the policy, (width,).
        action: the policy's raw output, (14,), None when it did not run in this tick.
        requested_targets: what the policy or a ramp asked of the joints, before the limits, (14,) [rad], None
            for nothing in this tick.
        targets: targets written last, (14,) [rad], None while limp.
        rate_hz: ticks per second over the last second [Hz].
        missed: ticks skipped so far.
        stages: time each of `STAGES` took [s].
        bus_errors: failed reads and writes so far.
    """

    time_s: float
    mode: Mode
    reason: str
    mode_s: float
    skill: str
    sample: BodySample | None
    fresh: bool
    requested: np.ndarray
    command: np.ndarray
    head: np.ndarray
    limited_by: tuple[str, ...]
    observation: np.ndarray
    action: np.ndarray | None
    requested_targets: np.ndarray | None
    targets: np.ndarray | None
    rate_hz: float
    missed: int
    stages: Mapping[str, float]
    bus_errors: int


class StageTime(NamedTuple):
    """How long a stage took [s].

    Attributes:
        mean_s: on average.
        worst_s: at most.
    """

    mean_s: float
    worst_s: float


class StageTimes:
    """Sums the stages of all ticks up."""

    def __init__(self) -> None:
        self._ticks = 0
        self._sum = dict.fromkeys(STAGES, 0.0)
        self._worst = dict.fromkeys(STAGES, 0.0)

    def add(self, stages: Mapping[str, float]) -> None:
        """Take a tick in."""
        self._ticks += 1
        for name, seconds in stages.items():
            self._sum[name] += seconds
            self._worst[name] = max(self._worst[name], seconds)

    def table(self) -> dict[str, StageTime]:
        """Return each stage's times."""
        ticks = max(self._ticks, 1)
        return {name: StageTime(self._sum[name] / ticks, self._worst[name]) for name in STAGES}


@dataclass
class Tally:
    """Counts of a drive.

    Attributes:
        policy_ticks: ticks in which the policy ran.
        held_ticks: ticks that only held the last targets, because too many reads were missed.
        bus_errors: failed reads and writes by the name of their error.
        limited: ticks in which something was limited, by the name of the limit.
        alerts: joints whose servo reported a hardware fault; a charged pack's input voltage is none.
        missed_driving: ticks that were skipped while the policy drove.
    """

    policy_ticks: int = 0
    held_ticks: int = 0
    bus_errors: Counter[str] = field(default_factory=Counter)
    limited: Counter[str] = field(default_factory=Counter)
    alerts: set[str] = field(default_factory=set)
    missed_driving: int = 0


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
        stages: how long each of `STAGES` took.
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
    stages: Mapping[str, StageTime]
    tally: Tally
    commands_refused: int
