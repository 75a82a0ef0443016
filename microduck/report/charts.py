"""Pictures of results as PNG, narrow enough for a phone."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import degrees

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hardware.contract import CONTROL_PERIOD_S
from hardware.joints import JOINT_NAMES
from hardware.servo import STALL_TORQUE
from microduck.evaluation import NOMINAL, Figures, TaskResult, Trace
from microduck.evaluation.tally import HARD
from microduck.report.measures import BY_NAME

WIDTH, DOTS = 5.2, 190
"""Width of a picture [inch] and dots per inch: its letters can be read where it is shown 7 cm wide."""
GAIT_FROM_S, GAIT_S = 4.0, 2.0
"""Where in an episode a gait diagram begins, and how long it is [s]."""
PLAIN, PALE, LIMIT = "#e07b00", "#f6d9b0", "#c62828"
SWING = "#dbe9f4"
"""Behind the times at which the clock swings a foot."""


@dataclass(frozen=True)
class Curve:
    """What a curve of reached against wanted shows of each command.

    Attributes:
        what: name and unit, for both axes.
        wanted: what is asked for.
        reached: what came of it.
        spread: its standard deviation over episodes.
        mixed: whether the command asks for something else as well; drawn hollow.
    """

    what: str
    wanted: Callable[[Figures], float]
    reached: Callable[[Figures], float]
    spread: Callable[[Figures], float]
    mixed: Callable[[Figures], bool]


SPEED = Curve(
    "speed [m/s]",
    lambda point: point.commanded_speed,
    lambda point: point.speed,
    lambda point: point.speed_std,
    lambda point: point.yaw_rate != 0,
)
TURN_RATE = Curve(
    "turn rate [rad/s]",
    lambda point: point.yaw_rate,
    lambda point: point.turn_rate,
    lambda point: point.turn_rate_std,
    lambda point: point.commanded_speed != 0,
)


def curve(results: Sequence[TaskResult], shown: Curve) -> bytes | None:
    """Draw reached against wanted with the ideal line; None where no task wants any."""
    figure, axes = blank(4.6)
    ends = [0.0]
    for place, result in enumerate(results):
        points = [point for point in result.points if shown.wanted(point)]
        for point in points:
            wanted, reached = shown.wanted(point), shown.reached(point)
            face = "white" if shown.mixed(point) else _colour(place)
            spread = shown.spread(point)
            axes.errorbar(wanted, reached, spread, fmt="o", color=_colour(place), mfc=face, capsize=3)
            ends += [wanted, reached]
        if points:
            axes.plot([], [], "o", color=_colour(place), label=_plain_text(result.task))
    if len(ends) == 1:
        return None
    span = [min(ends), max(ends)]
    axes.plot(span, span, "--", color="0.6", zorder=0, label="as commanded")
    axes.set(xlabel=f"commanded {shown.what}", ylabel=f"reached {shown.what}")
    return as_png(figure)


def heading(results: Sequence[TaskResult], rough: Sequence[TaskResult] | None) -> bytes | None:
    """Draw the heading drift of every task that keeps its heading, and that of ducks that all differ.

    Returns:
        The picture; None where no task keeps its heading.
    """
    of = BY_NAME["heading drift, p95"].of
    drawn = [(label, some) for label, some in (("as above", results), ("all differ, pushed", rough)) if some]
    tasks = [result.task for result in results if of(result) is not None]
    if not tasks:
        return None
    figure, axes = blank(1.2 + 0.42 * len(tasks))
    places, thickness = np.arange(len(tasks)), 0.8 / len(drawn)
    for i, (label, some) in enumerate(drawn):
        drifts = [degrees(value) for value in map(of, some) if value is not None]
        axes.barh(places + i * thickness, drifts, thickness, color=(PLAIN, PALE)[i], label=label)
    axes.set_yticks(places, [_plain_text(task) for task in tasks], fontsize=9)
    axes.invert_yaxis()
    axes.axvline(degrees(NOMINAL.heading_drift or 0.0), color=LIMIT, linestyle="--", label="limit")
    axes.set_xlabel("heading drift in an episode, p95 [deg]")
    return as_png(figure)


def gaits(traces: Mapping[str, tuple[Figures, Trace]]) -> bytes:
    """Draw when both feet are down over 2 s of one episode, against the swings of the clock."""
    figure = Figure(figsize=(WIDTH, 0.8 + 0.75 * len(traces)), layout="constrained")
    rows = figure.subplots(len(traces), 1, sharex=True, squeeze=False)[:, 0]
    for axes, (task, (point, trace)) in zip(rows, traces.items(), strict=True):
        _gait(axes, point, trace)
        axes.set_title(_plain_text(task), fontsize=8, loc="left", pad=2)
    rows[-1].set_xlabel("time [s]")
    return as_png(figure)


def _gait(axes: Axes, point: Figures, trace: Trace) -> None:
    length = round(GAIT_S / CONTROL_PERIOD_S)
    start = max(0, min(round(GAIT_FROM_S / CONTROL_PERIOD_S), len(trace.phase) - length))
    window = slice(start, start + length)
    direction = -1 if point.command[0] < 0 else 1
    left_swings = direction * np.sin(trace.phase[window]) > 0
    for row, swings in enumerate((left_swings, ~left_swings)):
        axes.broken_barh(stretches(swings), (row - 0.45, 0.9), color=SWING)
        axes.broken_barh(stretches(trace.contacts[window, row]), (row - 0.25, 0.5), color=PLAIN)
    axes.set_yticks([0, 1], ["left", "right"], fontsize=8)
    axes.set(xlim=(0, GAIT_S), ylim=(1.6, -0.6))
    axes.tick_params(axis="x", labelsize=8)


def stretches(on: np.ndarray) -> list[tuple[float, float]]:
    """Return start and length of every stretch of True [s] in one value for each control step, (T,)."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], on, [0]])))
    return [
        (float(CONTROL_PERIOD_S * begin), float(CONTROL_PERIOD_S * (end - begin)))
        for begin, end in zip(edges[::2], edges[1::2], strict=True)
    ]


def torques(results: Sequence[TaskResult]) -> bytes:
    """Draw the torque of every joint in its hardest task against the servo's limit."""
    points = [point for result in results for point in result.points]
    figure, axes = blank(4.2)
    for label, colour, values in (
        ("largest", PALE, np.max([point.torque_max for point in points], axis=0)),
        ("95th percentile", PLAIN, np.max([point.torque_p95 for point in points], axis=0)),
    ):
        axes.barh(JOINT_NAMES, values, color=colour, label=label)
    axes.axvline(STALL_TORQUE, color=LIMIT, label="servo's limit")
    axes.axvline(HARD * STALL_TORQUE, color=LIMIT, linestyle="--", label="90 % of it")
    axes.invert_yaxis()
    axes.tick_params(axis="y", labelsize=8)
    axes.set_xlabel("torque [N m]")
    return as_png(figure)


def blank(height: float) -> tuple[Figure, Axes]:
    """Return an empty picture of a height [inch]."""
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    return figure, figure.subplots()


def as_png(figure: Figure) -> bytes:
    """Return a picture as PNG, with a legend of whatever has a label."""
    if any(axes.get_legend_handles_labels()[1] for axes in figure.axes):
        figure.legend(loc="outside upper left", ncols=3, fontsize=8, frameon=False)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DOTS)
    return buffer.getvalue()


def _colour(place: int) -> tuple[float, ...]:
    return tuple(colormaps["tab10"](place % 10))


def _plain_text(name: str) -> str:
    """Return a name that a picture shows as it is: matplotlib reads formulas between dollar signs."""
    return name.replace("$", r"\$")
