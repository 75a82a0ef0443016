"""report.html: one file with all its pictures and films inside, for a phone as for a desk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from microduck.evaluation import TaskResult
from microduck.report import sections
from microduck.report.compare import Delta, deltas, unshared
from microduck.report.document import Report
from microduck.report.markup import Cell, Html, film, join, table, tag
from microduck.report.measures import MEASURES
from microduck.report.method import method, rough_method
from microduck.report.study import Study
from microduck.report.style import document

Films = Sequence[Mapping[str, bytes]]
"""Films as mp4 by task: of the policy that the report is about, then of the one that it is compared with."""


def page(report: Report, films: Films, missing: str = "") -> str:
    """Return a report as HTML that needs no other file.

    Args:
        report: what was measured.
        films: one entry for each policy; empty for none.
        missing: why there are no films.
    """
    return document(_title(report), _body(report, films, missing))


def _title(report: Report) -> str:
    results = report.study.plain
    title = f"{report.study.subject.name}: {sum(r.met for r in results)} of {len(results)} tasks met"
    return title if report.other is None else f"{title}, beside {report.other.subject.name}"


def _body(report: Report, films: Films, missing: str) -> Iterator[Html]:
    yield _beside(report, sections.headline)
    if report.other is not None:
        yield from _differences(report.study, report.other)
    yield tag("h2", "Every task")
    yield from (_films(mapping, study) for mapping, study in zip(films, _studies(report), strict=False))
    if missing:
        yield tag("p", missing, class_="faint")
    yield tag("h2", "Commanded and reached")
    yield _beside(report, lambda study: sections.curves(study.plain))
    for name, section in (
        ("Heading", sections.heading),
        ("Gait", sections.gaits),
        ("Torque", sections.torques),
    ):
        yield tag("h2", name)
        yield _beside(report, section)
    yield from _robustness(report)
    yield tag("h2", "All figures")
    yield _beside(report, sections.all_figures)
    yield from method(_studies(report), report.provenance)


def _studies(report: Report) -> list[Study]:
    return [report.study] if report.other is None else [report.study, report.other]


def _beside(report: Report, section: Callable[[Study], Html]) -> Html:
    """Return a section of every policy; side by side, with their names, where there are two."""
    if report.other is None:
        return section(report.study)
    named = (tag("div", tag("h3", study.subject.name), section(study)) for study in _studies(report))
    return tag("div", *named, class_="pair")


def _films(films: Mapping[str, bytes], study: Study) -> Html:
    shown = (
        tag("figure", film(mp4), tag("figcaption", f"{task}: {_command(study, task)}"))
        for task, mp4 in films.items()
    )
    return join([tag("p", study.subject.name, class_="faint"), tag("div", *shown, class_="films")])


def _command(study: Study, task: str) -> str:
    vx, vy, yaw = study.traces[task][0].command
    return f"{vx:.3g} {vy:.3g} m/s, {yaw:.3g} rad/s"


def _robustness(report: Report) -> Iterator[Html]:
    if report.study.rough is None:
        return
    yield tag("h2", "Ducks that all differ, and are pushed")
    yield rough_method()
    yield _beside(report, sections.rough)


def _differences(study: Study, other: Study) -> Iterator[Html]:
    yield tag("h2", "Differences")
    yield tag("p", f"{study.subject.name}, and how much that is more or less than {other.subject.name} has.")
    yield _difference_table(study.plain, other.plain)
    if study.rough and other.rough:
        yield tag("p", "The same on ducks that all differ, and are pushed:")
        yield _difference_table(study.rough, other.rough)
    for one, two in ((study, other), (other, study)):
        alone = unshared(one.plain, two.plain)
        if alone:
            yield tag("p", f"Only {one.subject.name} has: {', '.join(alone)}.")


def _difference_table(these: Sequence[TaskResult], others: Sequence[TaskResult]) -> Html:
    found = {(delta.task, delta.measure.name): delta for delta in deltas(these, others)}
    tasks = list(dict.fromkeys(task for task, _ in found))
    rows: list[list[Cell]] = [
        [sections.named(measure), *(_delta(found.get((task, measure.name))) for task in tasks)]
        for measure in MEASURES
    ]
    return table(["", *tasks], rows)


def _delta(delta: Delta | None) -> Cell:
    if delta is None:
        return "-"
    value, change = delta.measure.shown(delta.this), (delta.this - delta.other) * delta.measure.factor
    said = delta.mark if delta.mark == "same" else f"{change:+.3g} {delta.mark}"
    return join([value, tag("div", said)]), delta.mark
