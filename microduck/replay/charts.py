"""Pictures of a gap as PNG."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hardware.joints import JOINT_NAMES
from microduck.replay.study import Study
from microduck.replay.windows import PAST
from microduck.report.charts import PALE, PLAIN, WIDTH, as_png, blank

ROBOT, NEAREST, TARGET = "#22262b", "#1b6e3c", "0.75"
SHOWN = 2
"""Windows that are drawn in full: three seconds, in which single steps can be seen."""
_MOST_CAUSES = 6
_LINES = ("robot", "simulation", "nearest duck")


class _Excerpt:
    """The middle of what was replayed, in the order of time."""

    def __init__(self, study: Study) -> None:
        windows = study.windows
        first = max(0, (len(windows) - SHOWN) // 2)
        some = slice(first, first + SHOWN)
        counted = windows.counted[some].numpy()
        self.time = windows.time[some].numpy()[counted]
        self.target = windows.targets[some, PAST:].numpy()[counted]
        told = study.told[some].numpy()
        robot = windows.measured[some].numpy()[counted]
        self.lines = (robot, told[:, 0][counted], told[:, 1][counted])

    def draw(self, axes: Axes, column: int, *, both: bool) -> None:
        """Draw one signal of the robot, of the duck it is compared with, and of the nearest one."""
        styles = ((ROBOT, "-"), (PLAIN, "-"), (NEAREST, "--"))
        for values, label, (colour, dashes) in zip(self.lines, _LINES, styles, strict=True):
            if both or colour != NEAREST:
                axes.plot(self.time, values[:, column], dashes, color=colour, linewidth=0.9, label=label)


def joints(study: Study, *, speeds: bool = False) -> bytes:
    """Draw angle, or speed, of every joint over some seconds."""
    excerpt, both = _Excerpt(study), bool(study.search.findings)
    figure = Figure(figsize=(WIDTH, 10.5), layout="constrained")
    panels = figure.subplots(7, 2, sharex=True)
    for place, name in enumerate(JOINT_NAMES):
        axes = panels[place % 7, place // 7]
        if not speeds:
            axes.plot(excerpt.time, excerpt.target[:, place], color=TARGET, linewidth=0.9, label="target")
        excerpt.draw(axes, place + 14 * speeds, both=both)
        _small(axes, name)
    _one_legend(figure, panels[0, 0])
    for axes in panels[-1]:
        axes.set_xlabel("time in the log [s]", fontsize=8)
    figure.supylabel("speed [rad/s]" if speeds else "angle [rad]", fontsize=9)
    return as_png(figure)


def trunk(study: Study) -> bytes:
    """Draw the trunk's turn rate and gravity over some seconds."""
    excerpt, both = _Excerpt(study), bool(study.search.findings)
    figure = Figure(figsize=(WIDTH, 5.5), layout="constrained")
    panels = figure.subplots(3, 2, sharex=True)
    for axis, letter in enumerate("xyz"):
        for column, (start, what) in enumerate(((28, "turn rate"), (31, "gravity"))):
            excerpt.draw(panels[axis, column], start + axis, both=both)
            _small(panels[axis, column], f"{what} {letter}" + (" [rad/s]" if start == 28 else ""))
    _one_legend(figure, panels[0, 0])
    for axes in panels[-1]:
        axes.set_xlabel("time in the log [s]", fontsize=8)
    return as_png(figure)


def by_joint(study: Study) -> bytes:
    """Draw how far each joint's angle is off."""
    figure, axes = blank(4.2)
    before, after = study.gaps
    axes.barh(JOINT_NAMES, [1e3 * one.rms for one in before.joints], color=PALE, label="to the simulation")
    if study.search.findings:
        rest = [1e3 * one.rms for one in after.joints]
        axes.barh(JOINT_NAMES, rest, height=0.4, color=NEAREST, label="to the nearest duck")
    axes.invert_yaxis()
    axes.tick_params(axis="y", labelsize=8)
    axes.set_xlabel("gap of the angle, RMS [mrad]")
    return as_png(figure)


def over_time(study: Study) -> bytes:
    """Draw how the gap of the angles goes over the log, window by window."""
    windows, figure_axes = study.windows, blank(2.6)
    figure, axes = figure_axes
    counted = windows.counted.numpy()
    shown = counted.any(axis=1)
    time = [
        float(row[mask].mean()) for row, mask in zip(windows.time.numpy(), counted, strict=True) if mask.any()
    ]
    for duck, colour in ((0, PLAIN), (1, NEAREST))[: 1 + bool(study.search.findings)]:
        off = (windows.measured[..., :14].numpy() - study.told[:, duck, :, :14].numpy()) ** 2
        rms = [1e3 * np.sqrt(off[i][counted[i]].mean()) for i in np.flatnonzero(shown)]
        label = ("to the simulation", "to the nearest duck")[duck]
        axes.plot(time, rms, "o-", markersize=3, color=colour, label=label)
    axes.set(xlabel="time in the log [s]", ylabel="RMS [mrad]", ylim=(0, None))
    return as_png(figure)


def causes(study: Study) -> bytes:
    """Draw what each cause alone explains of the gap."""
    trials = sorted(study.search.trials, key=lambda trial: trial.size)[:_MOST_CAUSES]
    shares = [100 * (1 - trial.size / study.search.start) for trial in trials]
    labels = [f"{trial.cause.name}\n{trial.cause.say(trial.best)}" for trial in trials]
    figure, axes = blank(1 + 0.42 * len(trials))
    axes.barh(labels, shares, color=PLAIN)
    axes.invert_yaxis()
    axes.tick_params(axis="y", labelsize=8)
    axes.set(xlabel="part of the gap that it explains alone [%]", xlim=(0, 100))
    return as_png(figure)


def _small(axes: Axes, title: str) -> None:
    axes.set_title(title, fontsize=8, loc="left", pad=2)
    axes.tick_params(labelsize=7)


def _one_legend(figure: Figure, shown: Axes) -> None:
    """Leave labels in one panel: the picture's legend shows each line once."""
    for axes in figure.axes:
        if axes is not shown:
            for line in axes.lines:
                line.set_label("_")
