"""Draws panels with matplotlib, which is imported only when something is drawn."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from firmware_bridge.recording.extras import extra
from firmware_bridge.recording.log import Log
from firmware_bridge.recording.panels import Band, Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_POINTS = 4000
"""Most points of a line; of more, the smallest and the largest of each stretch are drawn."""
MOST_BANDS = 500
"""Most stretches in one mode that are drawn; of more, the shortest are too narrow to be seen."""
MANY = 4
"""Most lines whose legend is inside the panel."""
_WIDTH, _HEIGHT = 7.0, 2.2
"""Room for a panel [inch]."""
_COLUMNS = 2
_LEFT, _RIGHT, _TOP, _BOTTOM = 0.7, 1.0, 0.6, 0.5
"""Margins of a figure [inch]; fixed ones are drawn in half the time of ones that fit."""
_COLOURS = (
    "tab:blue",
    "tab:orange",
    "tab:green",
    "tab:red",
    "tab:purple",
    "tab:brown",
    "tab:pink",
    "tab:cyan",
)
_BANDS = {
    "limp": "0.85",
    "rise": "tab:cyan",
    "stand": "tab:olive",
    "run": "tab:green",
    "sit": "tab:blue",
    "fallen": "tab:red",
    "stopped": "0.7",
    "fault": "tab:red",
}
_OTHER_BAND = "tab:purple"


def draw(log: Log, panels: Sequence[Panel], bands: Sequence[Band]) -> Figure:
    """Return panels as a figure, with the mode as the background.

    Raises:
        ConfigError: matplotlib is not installed.
    """
    extra("matplotlib", "plot")
    from matplotlib.figure import Figure  # noqa: PLC0415  # on a robot it need not be there

    bands = _longest(bands)
    rows = -(-len(panels) // _COLUMNS)
    width, height = _WIDTH * _COLUMNS, _HEIGHT * rows + _TOP
    figure = Figure((width, height))
    axes = figure.subplots(rows, _COLUMNS, sharex=True, squeeze=False).flat
    figure.subplots_adjust(_LEFT / width, _BOTTOM / height, 1 - _RIGHT / width, 1 - _TOP / height, 0.35, 0.5)
    for axis, panel in zip(axes, panels, strict=False):
        _draw_panel(axis, log.seconds, panel)
        _draw_bands(axis, bands)
    for axis in list(axes)[len(panels) :]:
        axis.set_axis_off()
    _name_bands(figure, bands)
    return figure


def encode(figure: Figure, kind: str) -> bytes:
    """Return a figure as a picture of a kind that matplotlib knows, such as "png" or "svg"."""
    data = io.BytesIO()
    figure.savefig(data, format=kind, dpi=90, metadata={"Date": None} if kind == "svg" else None)
    return data.getvalue()


def thin(seconds: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a line of at most `MOST_POINTS` points that keeps each peak of one that has more.

    Args:
        seconds: times, (ticks,) [s].
        values: (ticks,); a NaN stands for no value.
    """
    if len(values) <= MOST_POINTS:
        return seconds, values
    size = -(-2 * len(values) // MOST_POINTS)
    missing = -len(values) % size
    stretches = np.concatenate([values.astype(np.float64), np.full(missing, np.nan)]).reshape(-1, size)
    ends = np.stack([np.fmin.reduce(stretches, axis=1), np.fmax.reduce(stretches, axis=1)], axis=1)
    return np.repeat(seconds[::size], 2), ends.reshape(-1)


def _draw_panel(axis: Axes, seconds: np.ndarray, panel: Panel) -> None:
    many = len(panel.lines) > MANY
    for place, line in enumerate(panel.lines):
        style = "-" if place < len(_COLOURS) else "--"
        colour = _COLOURS[place % len(_COLOURS)]
        axis.plot(*thin(seconds, line.values), style, color=colour, linewidth=0.9, label=line.label)
    unit = "" if panel.unit == "1" else f" [{panel.unit}]"
    axis.set_title(f"{panel.title}{unit}", fontsize="small", loc="left")
    axis.set_xlabel("[s]", fontsize="small")
    axis.tick_params(labelsize="small", labelbottom=True)
    place_legend = {"bbox_to_anchor": (1.0, 1.0), "loc": "upper left"} if many else {"loc": "upper right"}
    axis.legend(fontsize="xx-small", **place_legend)


def _draw_bands(axis: Axes, bands: Sequence[Band]) -> None:
    for mode in dict.fromkeys(band.mode for band in bands):
        spans = [(band.begin, band.end - band.begin) for band in bands if band.mode == mode]
        colour = _BANDS.get(mode, _OTHER_BAND)
        height = axis.get_xaxis_transform()  # of the panel, whatever its values
        axis.broken_barh(spans, (0.0, 1.0), transform=height, color=colour, alpha=0.12, linewidth=0)


def _longest(bands: Sequence[Band]) -> Sequence[Band]:
    """Return the bands that are drawn, in order."""
    longest = sorted(bands, key=lambda band: band.begin - band.end)[:MOST_BANDS]
    return sorted(longest, key=lambda band: band.begin)


def _name_bands(figure: Figure, bands: Sequence[Band]) -> None:
    from matplotlib.patches import Patch  # noqa: PLC0415  # as above

    modes = dict.fromkeys(band.mode for band in bands)
    patches = [Patch(color=_BANDS.get(mode, _OTHER_BAND), alpha=0.3, label=mode) for mode in modes]
    legend = figure.legend(handles=patches, loc="upper left", ncols=len(patches) or 1, fontsize="small")
    for text in legend.get_texts():
        text.set_parse_math(False)  # names come from the file
