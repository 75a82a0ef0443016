"""The figures of a whole task that a reader compares, each with its unit and its better direction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import degrees

from microduck.evaluation import Figures, TaskResult, score
from microduck.evaluation.criteria import LEAST_SPEED, LEAST_TURN_RATE

Value = float | None
"""A figure in SI units; None where a task has none."""


@dataclass(frozen=True)
class Measure:
    """One figure of a task.

    Attributes:
        name: as a reader sees it.
        unit: its unit there.
        factor: from SI units to that unit.
        better: 1 if more is better, -1 if less is, 0 if neither can be said.
        of: computes it.
    """

    name: str
    unit: str
    factor: float
    better: int
    of: Callable[[TaskResult], Value]

    def shown(self, value: Value) -> str:
        """Return a value as a reader sees it, without its unit."""
        return "-" if value is None else f"{value * self.factor:.3g}"


Where = Callable[[Figures], bool]


def _always(point: Figures) -> bool:
    return True


def _moves(point: Figures) -> bool:
    return point.commanded_speed >= LEAST_SPEED


def _in_place(point: Figures) -> bool:
    return point.commanded_speed == 0


def _turns(point: Figures) -> bool:
    return abs(point.yaw_rate) >= LEAST_TURN_RATE


def _keeps_heading(point: Figures) -> bool:
    return not _turns(point)


def _values(result: TaskResult, of: Callable[[Figures], Value], where: Where) -> list[float]:
    found = (of(point) for point in result.points if where(point))
    return [value for value in found if value is not None]


def _mean(of: Callable[[Figures], Value], where: Where = _always) -> Callable[[TaskResult], Value]:
    def mean(result: TaskResult) -> Value:
        values = _values(result, of, where)
        return sum(values) / len(values) if values else None

    return mean


def _most(of: Callable[[Figures], Value], where: Where = _always) -> Callable[[TaskResult], Value]:
    return lambda result: max(_values(result, of, where), default=None)


def _of_hops(of: Callable[[Figures], Value]) -> Callable[[TaskResult], Value]:
    return lambda result: _mean(of)(result) if result.demands.hops else None


MEASURES = (
    Measure("score", "", 1, 1, score),
    Measure("survival", "%", 100, 1, _mean(lambda point: point.survival)),
    Measure("speed error", "m/s", 1, -1, _mean(lambda point: point.speed_error, _moves)),
    Measure("speed across", "m/s", 1, -1, _mean(lambda point: point.across, _moves)),
    Measure("turn rate error", "rad/s", 1, -1, _mean(lambda point: point.turn_rate_error, _turns)),
    Measure(
        "heading drift, p95",
        "deg",
        degrees(1),
        -1,
        _most(lambda point: point.heading_drift_p95, _keeps_heading),
    ),
    Measure("drift in place, p95", "cm", 100, -1, _most(lambda point: point.planar_drift_p95, _in_place)),
    Measure("airborne", "%", 100, 1, _of_hops(lambda point: point.airborne)),
    Measure("hop height", "cm", 100, 1, _of_hops(lambda point: point.apex)),
    Measure("sole clearance", "cm", 100, 1, _of_hops(lambda point: point.clearance)),
    Measure("double support", "%", 100, 0, _mean(lambda point: point.double_support)),
    Measure("foot lift", "mm", 1000, 0, _mean(lambda point: point.foot_height)),
    Measure("foot slip", "mm/s", 1000, -1, _mean(lambda point: point.foot_slip)),
    Measure("head pitch", "deg", degrees(1), -1, _mean(lambda point: point.head_pitch)),
    Measure("power", "W", 1, -1, _mean(lambda point: point.power)),
    Measure("cost of transport", "", 1, -1, _mean(lambda point: point.cost_of_transport)),
    Measure("action rate", "", 1, -1, _mean(lambda point: point.action_rate)),
    Measure("torque, p95", "N m", 1, -1, _most(lambda point: max(point.torque_p95))),
    Measure("near the torque limit", "% of time", 100, -1, _mean(lambda point: point.hard)),
)
"""All of them, in the order of a report. Each is a mean over the commands that it can be said of, except that
drifts are those of the worst command, and the torque is that of its hardest joint."""
BY_NAME = {measure.name: measure for measure in MEASURES}
