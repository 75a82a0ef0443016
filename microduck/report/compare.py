"""Two policies side by side: what differs, and which way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from microduck.evaluation import TaskResult
from microduck.report.measures import MEASURES, Measure

SAME = 0.01
"""Values that differ by less than this part of the larger one count as equal."""


@dataclass(frozen=True)
class Delta:
    """One measure of one task in two policies.

    Attributes:
        task: the task that both have.
        measure: what is compared.
        this: value of the policy that the report is about, in SI units.
        other: value of the one that it is compared with.
        mark: whether this one is `better`, `worse` or the `same`; `differs` where neither can be said.
    """

    task: str
    measure: Measure
    this: float
    other: float
    mark: str


def deltas(these: Sequence[TaskResult], others: Sequence[TaskResult]) -> list[Delta]:
    """Return what differs between the tasks that two policies share, by task and measure."""
    known = {result.task: result for result in others}
    return [
        delta for result in these if result.task in known for delta in _of_task(result, known[result.task])
    ]


def unshared(these: Sequence[TaskResult], others: Sequence[TaskResult]) -> list[str]:
    """Return the tasks of `these` that `others` lack."""
    known = {result.task for result in others}
    return [result.task for result in these if result.task not in known]


def _of_task(this: TaskResult, other: TaskResult) -> Iterator[Delta]:
    for measure in MEASURES:
        ours, theirs = measure.of(this), measure.of(other)
        if ours is not None and theirs is not None:
            yield Delta(this.task, measure, ours, theirs, _mark(measure, ours, theirs))


def _mark(measure: Measure, ours: float, theirs: float) -> str:
    if abs(ours - theirs) <= SAME * max(abs(ours), abs(theirs)):
        return "same"
    if measure.better == 0:
        return "differs"
    return "better" if (ours - theirs) * measure.better > 0 else "worse"
