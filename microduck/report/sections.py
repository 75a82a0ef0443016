"""The parts of a page that show one policy."""

from __future__ import annotations

from collections.abc import Sequence
from math import degrees

from microduck.evaluation import Figures, TaskResult, score
from microduck.report import charts
from microduck.report.markup import Cell, Html, captioned, join, table, tag
from microduck.report.measures import BY_NAME, MEASURES, Measure
from microduck.report.study import Study

ROUGH_MEASURES = ("survival", "speed error", "turn rate error", "heading drift, p95")
"""Measures that are shown of ducks that all differ."""


def headline(study: Study) -> Html:
    """Return which tasks are met, and why the others are not."""
    survival = BY_NAME["survival"]
    rows = [
        [result.task, _verdict(result), f"{score(result):.2f}", survival.shown(survival.of(result))]
        for result in study.plain
    ]
    return table(["task", "", "score", "survival [%]"], rows)


def _verdict(result: TaskResult) -> Html:
    """Return whether a task is met, and below it what is missing: another column is too wide for a phone."""
    verdict = tag("b", "✓ met", class_="met") if result.met else tag("b", "✗ not met", class_="unmet")
    return join([verdict, *(tag("div", str(check)) for check in result.unmet)])


def curves(results: Sequence[TaskResult]) -> Html:
    """Return the curves of speed and turn rate, those that some task commands."""
    drawn = (
        (charts.SPEED, "Speed along the command, with its deviation over episodes. Hollow: turning as well."),
        (charts.TURN_RATE, "Turn rate, likewise. Hollow: walking as well."),
    )
    pictures = ((charts.curve(results, shown), caption) for shown, caption in drawn)
    return join([captioned(png, caption) for png, caption in pictures if png is not None])


def heading(study: Study) -> Html:
    """Return how far the heading drifts."""
    caption = "How far from where the command leads the heading ends, at the worst command that hardly turns."
    png = charts.heading(study.plain, study.rough)
    return Html("") if png is None else captioned(png, caption)


def gaits(study: Study) -> Html:
    """Return when the feet are down."""
    caption = (
        "Dark: the foot is down. Blue: the clock swings this foot. Two seconds from the middle of one "
        "episode, or the last before its fall, at the task's fastest command."
    )
    return captioned(charts.gaits(study.traces), caption)


def torques(study: Study) -> Html:
    """Return how hard the servos work."""
    return captioned(
        charts.torques(study.plain), "Torque of each joint in the task and command where it is largest."
    )


def rough(study: Study) -> Html:
    """Return how ducks that all differ and are pushed do the tasks; nothing where that was not run."""
    if study.rough is None:
        return Html("")
    measures = [BY_NAME[name] for name in ROUGH_MEASURES]
    rows = [
        [result.task, _verdict(result), *(measure.shown(measure.of(result)) for measure in measures)]
        for result in study.rough
    ]
    return join([table(["task", "", *map(named, measures)], rows), curves(study.rough)])


def all_figures(study: Study) -> Html:
    """Return every measure of every task, and every command's figures folded away."""
    rows = [
        [named(measure), *(measure.shown(measure.of(result)) for result in study.plain)]
        for measure in MEASURES
    ]
    by_command = (
        tag("details", tag("summary", f"{result.task}, by command"), _by_command(result))
        for result in study.plain
    )
    return join([table(["", *(result.task for result in study.plain)], rows), *by_command])


def named(measure: Measure) -> str:
    """Return a measure's name with its unit."""
    return f"{measure.name} [{measure.unit}]" if measure.unit else measure.name


def _by_command(result: TaskResult) -> Html:
    head = [
        "vx vy yaw rate",
        "survival [%]",
        "speed [m/s]",
        "turn rate [rad/s]",
        "heading drift, p95 [deg]",
        "drift, p95 [cm]",
        "airborne [%]",
        "power [W]",
    ]
    return table(head, [_command_row(point) for point in result.points])


def _command_row(point: Figures) -> list[Cell]:
    return [
        " ".join(f"{value:.3g}" for value in point.command),
        f"{100 * point.survival:.1f}",
        f"{point.speed:.3f} ± {point.speed_std:.3f}",
        f"{point.turn_rate:.2f} ± {point.turn_rate_std:.2f}",
        f"{degrees(point.heading_drift_p95):.1f}",
        f"{100 * point.planar_drift_p95:.1f}",
        f"{100 * point.airborne:.1f}",
        f"{point.power:.2f}",
    ]
