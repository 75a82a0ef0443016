"""When a task is met, and how near to that a result is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import degrees, prod, radians

from microduck.evaluation.commands import Command
from microduck.evaluation.demands import Demands
from microduck.evaluation.results import Figures

LEAST_SPEED = 0.1
"""Commanded speeds below this are not judged: a fraction of next to nothing [m/s]."""
LEAST_TURN_RATE = 0.3
"""The same of yaw rates; below it the heading is judged instead [rad/s]."""


@dataclass(frozen=True)
class Criteria:
    """What a task must reach; None leaves a criterion out.

    Attributes:
        survival: part of the episodes without a fall.
        speed_share: most distance from the commanded speed, as a part of it.
        speed_error: the same [m/s]; the wider of the two counts.
        turn_share: most distance from the wanted turn rate, as a part of it.
        heading_drift: 95th percentile of the heading's drift [rad]; of all that hardly turns.
        standing_drift: 95th percentile of how far a standing duck gets [m].
        airborne: part of the time that a hop has no foot down.
        apex: height above STAND at the top of a hop [m].
    """

    survival: float | None = None
    speed_share: float | None = None
    speed_error: float | None = None
    turn_share: float | None = None
    heading_drift: float | None = None
    standing_drift: float | None = None
    airborne: float | None = None
    apex: float | None = None

    def speed_margin(self, speed: float) -> float | None:
        """Return the most distance from a commanded speed, None where speed is not judged [m/s]."""
        share = None if self.speed_share is None else self.speed_share * speed
        return max((margin for margin in (share, self.speed_error) if margin is not None), default=None)


NOMINAL = Criteria(
    survival=1.0,
    speed_share=0.15,
    turn_share=0.15,
    heading_drift=radians(10),
    standing_drift=0.02,
    airborne=0.15,
    apex=0.02,
)
"""What a task must reach on the duck as it is modelled. For comparison: published walkers of this duck turn
by 50 to 160 degrees in 10 s."""
ROUGH = Criteria(survival=0.98, speed_error=0.04)
"""What a task must reach on ducks that all differ and are pushed: as much as policies that GPUs trained."""


@dataclass(frozen=True)
class Check:
    """One criterion held against one command's result.

    Attributes:
        criterion: its name.
        command: vx, vy, yaw rate [m/s, m/s, rad/s].
        value: what was measured.
        limit: what is needed.
        at_least: whether more is better; else the limit is the most.
    """

    criterion: str
    command: Command
    value: float
    limit: float
    at_least: bool = False

    @property
    def met(self) -> bool:
        """Whether the limit is kept."""
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    @property
    def nearness(self) -> float:
        """How near the value is to its limit, in [0, 1]; 1 when it is kept."""
        if self.met:
            return 1.0
        return max(0.0, self.value / self.limit) if self.at_least else self.limit / self.value

    def __str__(self) -> str:
        name, factor, unit = _WORDS[self.criterion]
        least = "at least" if self.at_least else "at most"
        at = " ".join(f"{value:.3g}" for value in self.command)
        return f"{name} {self.value * factor:.3g} {unit} at {at}, {least} {self.limit * factor:.3g} {unit}"


_WORDS = {
    "survival": ("survival", 100, "%"),
    "speed": ("speed off by", 1, "m/s"),
    "turn rate": ("turn rate off by", 1, "rad/s"),
    "heading": ("heading drift", degrees(1), "deg"),
    "standing": ("drift", 100, "cm"),
    "airborne": ("airborne", 100, "% of the time"),
    "apex": ("hop height", 100, "cm"),
}
"""Of each criterion: what is measured, the factor from SI units to the unit of a message, that unit."""


@dataclass(frozen=True)
class TaskResult:
    """How well one task is done.

    Attributes:
        task: its name.
        points: figures of each command that was tried.
        checks: the criteria that apply to it, held against them.
        demands: what the task asks for besides its command.
    """

    task: str
    points: tuple[Figures, ...]
    checks: tuple[Check, ...]
    demands: Demands = field(default_factory=Demands)

    @property
    def met(self) -> bool:
        """Whether every criterion is met at every command."""
        return all(check.met for check in self.checks)

    @property
    def unmet(self) -> list[Check]:
        """The checks that failed, of each criterion the one that failed by most, in their order."""
        worst: dict[str, Check] = {}
        for check in self.checks:
            known = worst.get(check.criterion)
            if not check.met and (known is None or check.nearness < known.nearness):
                worst[check.criterion] = check
        return list(worst.values())


def judge(
    task: str, demanded: Demands, points: tuple[Figures, ...], criteria: Criteria = NOMINAL
) -> TaskResult:
    """Return the result of a task from the figures of its commands."""
    checks = tuple(check for point in points for check in checks_of(point, demanded, criteria))
    return TaskResult(task, points, checks, demanded)


def checks_of(point: Figures, demanded: Demands, criteria: Criteria) -> Iterator[Check]:
    """Yield the criteria that apply to one command, held against its figures."""
    if criteria.survival is not None:
        yield Check("survival", point.command, point.survival, criteria.survival, at_least=True)
    speed, turn = point.commanded_speed, abs(point.yaw_rate)
    margin = criteria.speed_margin(speed)
    if margin is not None and speed >= LEAST_SPEED:
        yield Check("speed", point.command, point.speed_error, margin)
    turns = turn >= LEAST_TURN_RATE
    if turns and criteria.turn_share is not None:
        yield Check("turn rate", point.command, point.turn_rate_error, criteria.turn_share * turn)
    if not turns and criteria.heading_drift is not None:
        yield Check("heading", point.command, point.heading_drift_p95, criteria.heading_drift)
    if demanded.stands and criteria.standing_drift is not None:
        yield Check("standing", point.command, point.planar_drift_p95, criteria.standing_drift)
    if demanded.hops and criteria.airborne is not None:
        yield Check("airborne", point.command, point.airborne, criteria.airborne, at_least=True)
    if demanded.hops and criteria.apex is not None:
        yield Check("apex", point.command, point.apex or 0.0, criteria.apex, at_least=True)


def score(result: TaskResult) -> float:
    """Return how near to met a task is, in [0, 1]; 1 when it is.

    It is the product over the task's criteria, survival among them, of the mean over its commands of how near
    each is to its limit: a fall costs whatever the rest is worth, and progress on any criterion shows.
    """
    nearness: dict[str, list[float]] = {}
    for check in result.checks:
        nearness.setdefault(check.criterion, []).append(check.nearness)
    return prod(sum(values) / len(values) for values in nearness.values())
