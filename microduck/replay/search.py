"""The search for causes: which single change of the simulated duck takes most of the gap away, and what next.

A sweep replays the log on ducks that differ from the present one in one property each. The best of them takes
its place, and the search goes on until the gap is noise or no further change is worth it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from microduck.replay.causes import Cause

WORTH = 0.2
"""Part of the gap that a cause must explain to be told. On logs of simulated ducks whose fault is none of the
causes (mass, its centre, slippery soles, one weak servo) the best of them explained 0.12 or less, and on logs
with a fault that is one, 0.55 or more; see docs/replay.md."""
MOST_CAUSES = 4
"""Causes that are looked for; with each one the next is less certain."""
FINALISTS = 5
"""Causes whose value is refined in each sweep."""
REFINED = 2
"""How often a value is refined: the gap is nearly a parabola near its lowest point."""

Gauge = Callable[[Tensor], Tensor]
"""Returns the size of the gap (k,) of ducks (k, COLUMNS)."""


@dataclass
class Trial:
    """What was tried of one cause.

    Attributes:
        cause: the property.
        sizes: of the gap, by the property's value.
    """

    cause: Cause
    sizes: dict[float, float]

    @property
    def best(self) -> float:
        """The value that leaves the least gap."""
        return min(self.sizes, key=lambda value: self.sizes[value])

    @property
    def size(self) -> float:
        """The gap that value leaves."""
        return self.sizes[self.best]

    def next(self) -> float:
        """Return a parabola's lowest point, at most a step beyond what is known."""
        cause = self.cause
        known = sorted(self.sizes)
        if len(known) < 3:  # at an end of what is possible
            return self.best
        place = min(max(known.index(self.best), 1), len(known) - 2)
        three = known[place - 1 : place + 2]
        (a, b, c), (fa, fb, fc) = map(cause.scale, three), (self.sizes[value] for value in three)
        slopes = (fb - fa) / (b - a), (fc - fb) / (c - b)
        bend = (slopes[1] - slopes[0]) / (c - a)
        least, most = a - (b - a), c + (c - b)
        downhill = least if fa < fc else most
        lowest = 0.5 * (a + b - slopes[0] / bend) if bend > 0 else downhill
        return cause.limited(cause.value(min(max(lowest, least), most)))


@dataclass(frozen=True)
class Finding:
    """A cause that was found.

    Attributes:
        cause: what it is.
        own: value of the duck that the search began with.
        value: of the one that comes nearest.
        before: size of the gap without it.
        after: with it.
        rivals: causes that explain nearly as much in its place.
    """

    cause: Cause
    own: float
    value: float
    before: float
    after: float
    rivals: tuple[Cause, ...] = ()

    @property
    def share(self) -> float:
        """Part of the gap that it explains."""
        return 1.0 - self.after / self.before

    @property
    def matters(self) -> bool:
        """Whether the value differs enough to be called a cause."""
        return self.cause.is_worth_it(self.value, self.own)


@dataclass
class Search:
    """What was found so far.

    Attributes:
        duck: values of the duck that comes nearest, (COLUMNS,).
        size: of its gap.
        start: size of the gap that the search began with.
        trials: all causes, as they were tried alone.
        findings: the causes taken, in their order.
    """

    duck: Tensor
    size: float
    start: float
    trials: Sequence[Trial] = ()
    findings: list[Finding] = field(default_factory=list)


def begin(duck: Tensor, causes: Iterable[Cause], gauge: Gauge, noise: float) -> Search:
    """Try every cause alone, and take the one that explains most, if it is worth it."""
    trials = _sweep(duck, list(causes), gauge)
    start = trials[0].sizes[float(duck[trials[0].cause.column])]
    search = Search(duck, start, start, trials)
    if start > noise:
        _take(search, trials)
    return search


def go_on(search: Search, causes: Iterable[Cause], gauge: Gauge, noise: float) -> None:
    """Look for further causes until what is left is noise, or none is worth it.

    Args:
        search: what was found; it is continued.
        causes: all of them.
        gauge: the replay.
        noise: size up to which a gap is nothing but noise.
    """
    causes = list(causes)
    while search.findings and search.size > noise and len(search.findings) < MOST_CAUSES:
        taken = {finding.cause for finding in search.findings}
        if not _take(search, _sweep(search.duck, [one for one in causes if one not in taken], gauge)):
            return
        for finding in list(search.findings):  # each was found without those after it
            _settle(search, finding.cause, gauge)


def _take(search: Search, trials: Sequence[Trial]) -> bool:
    best = min(trials, key=lambda trial: trial.size)
    if best.size > (1 - WORTH) * search.size:
        return False
    least = search.size - (1 - _NEARLY) * (search.size - best.size)
    rivals = tuple(one.cause for one in trials if one is not best and one.size <= least)
    own = float(search.duck[best.cause.column])
    search.findings.append(Finding(best.cause, own, best.best, search.size, best.size, rivals))
    search.duck = _changed(search.duck, best.cause, best.best)
    search.size = best.size
    return True


_NEARLY = 0.1
"""Part by which a rival may explain less and still be told: so much differs from one stretch to the next."""


def _settle(search: Search, cause: Cause, gauge: Gauge) -> None:
    """Refine a value again beside the others."""
    value = float(search.duck[cause.column])
    step = 0.25 if cause.is_factor else 0.25 * max(abs(change) for change in cause.tried)
    near = (value / (1 + step), value * (1 + step)) if cause.is_factor else (value - step, value + step)
    trial = Trial(cause, {value: search.size})
    _measure(search.duck, {trial.cause: trial}, [(cause, cause.limited(each)) for each in near], gauge)
    _refine(search.duck, [trial], gauge)
    search.duck, search.size = _changed(search.duck, cause, trial.best), trial.size
    for place, finding in enumerate(search.findings):
        if finding.cause is cause:
            search.findings[place] = replace(finding, value=trial.best)


def _sweep(duck: Tensor, causes: Sequence[Cause], gauge: Gauge) -> list[Trial]:
    values = {cause: float(duck[cause.column]) for cause in causes}
    wanted = [(cause, value) for cause in causes for value in cause.first(values[cause])]
    rows = torch.stack([duck, *(_changed(duck, *each) for each in wanted)])
    own, *others = gauge(rows).tolist()
    trials = {cause: Trial(cause, {values[cause]: own}) for cause in causes}
    for (cause, value), size in zip(wanted, others, strict=True):
        trials[cause].sizes[value] = size
    finalists = sorted(trials.values(), key=lambda trial: trial.size)[:FINALISTS]
    _refine(duck, finalists, gauge)
    return list(trials.values())


def _refine(duck: Tensor, trials: Sequence[Trial], gauge: Gauge) -> None:
    by_cause = {trial.cause: trial for trial in trials}
    for _ in range(REFINED):
        _measure(duck, by_cause, [(trial.cause, trial.next()) for trial in trials], gauge)


def _measure(
    duck: Tensor, trials: Mapping[Cause, Trial], wanted: Iterable[tuple[Cause, float]], gauge: Gauge
) -> None:
    """Add the gaps of values that are not known yet to their trials."""
    new = [(cause, value) for cause, value in wanted if value not in trials[cause].sizes]
    if new:
        rows = torch.stack([_changed(duck, cause, value) for cause, value in new])
        for (cause, value), size in zip(new, gauge(rows).tolist(), strict=True):
            trials[cause].sizes[value] = size


def _changed(duck: Tensor, cause: Cause, value: float) -> Tensor:
    changed = duck.clone()
    changed[cause.column] = value
    return changed
