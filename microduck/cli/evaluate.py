"""`microduck eval`."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import tyro
from rich.markup import escape
from rich.table import Table

from microduck.cli.console import console
from microduck.cli.progress import Bar
from microduck.report import PAGE_FILE, REPORT_FILE
from microduck.report.plan import Plan

if TYPE_CHECKING:
    from microduck.report.study import Study
    from microduck.report.subject import Subject

DEFAULT = Plan()


def evaluate(
    folder: tyro.conf.Positional[Path],
    compare: Path | None = None,
    out: Path | None = None,
    last: bool = False,
    plan: tyro.conf.OmitArgPrefixes[Plan] = DEFAULT,
) -> None:
    """Measure every task of a run or a bundle; leaves report.json and report.html in its folder.

    Args:
        folder: of a training run or of an exported bundle.
        compare: another one to set beside it.
        out: folder of the report, if not that of the run or bundle.
        last: measure a run's last policy even where its best is known.
        plan: what to measure.
    """
    from microduck.report.document import Report
    from microduck.report.provenance import provenance
    from microduck.report.subject import load_subject
    from microduck.report.write import check_writable, write_report

    start, target = time.monotonic(), out or folder
    subjects = [load_subject(each, last=last) for each in (folder, compare) if each is not None]
    check_writable(target)
    studies = _conduct(subjects, plan)
    films, missing = _film(studies) if plan.video else ([], "Not filmed, as asked.")
    made = provenance(plan, ["microduck", *sys.argv[1:]], time.monotonic() - start)
    report = Report(studies[0], studies[1] if compare else None, made)
    write_report(report, films, missing, target)
    for study in studies:
        console.print(table(study))
    if missing:
        console.print(escape(missing), soft_wrap=True)
    console.print(f"{REPORT_FILE} and {PAGE_FILE} -> {escape(str(target))}", soft_wrap=True)


def _conduct(subjects: Sequence[Subject], plan: Plan) -> list[Study]:
    from microduck.report.study import conduct

    with Bar("evaluating", len(subjects) * plan.rounds * plan.steps) as bar:
        step = _counting(bar)
        return [conduct(subject, plan, step) for subject in subjects]


def _film(studies: Sequence[Study]) -> tuple[list[dict[str, bytes]], str]:
    """Return the films of each policy; none, and why, where no picture can be made."""
    from hardware.errors import RenderError
    from microduck.report.films import films

    with Bar("filming", sum(len(study.traces) for study in studies)) as bar:
        step = _counting(bar)
        try:
            return [films(study, step) for study in studies], ""
        except RenderError as error:
            return [], f"No films: {error}."


def _counting(bar: Bar) -> Callable[[], None]:
    """Return what moves a bar on by one."""
    done = itertools.count(1)
    return lambda: bar.show(next(done))


def table(study: Study) -> Table:
    """Return the results of a policy as a table for a terminal."""
    from microduck.evaluation import score
    from microduck.report.measures import BY_NAME

    survival = BY_NAME["survival"]
    episodes = study.plain[0].points[0].episodes
    out = Table(title=escape(f"{study.subject.name}, {episodes} episodes of each command"))
    for head in ("task", "", "score", "survival [%]", "all differ, pushed", "what is missing"):
        out.add_column(escape(head), overflow="fold")
    for place, result in enumerate(study.plain):
        rough = study.rough[place] if study.rough else None
        out.add_row(
            escape(result.task),
            "[green]met[/]" if result.met else "[red]not met[/]",
            f"{score(result):.2f}",
            survival.shown(survival.of(result)),
            survival.shown(survival.of(rough) if rough else None),
            ", ".join(check.criterion for check in result.unmet),
        )
    return out
