"""A picture of what the ducks of a batch are."""

from __future__ import annotations

from math import ceil
from pathlib import Path
from typing import Any

from tensordict import TensorDictBase
from torch import Tensor

from hardware.errors import ConfigError
from microduck.randomization.parameters import BY_NAME, Parameter, spread
from microduck.randomization.ranges import Randomization

_COLUMNS = 4
_BINS = 30
_KEY = "diagnostic_randomized_"


def plot_randomized(source: Any, path: Path, randomization: Randomization | None = None) -> None:
    """Draw a histogram of each property that varies, with the ends of its range as lines.

    Args:
        source: an environment, or a TensorDict: its `randomized`, or a rollout with diagnostics.
        path: picture to write; the ending says which kind.
        randomization: the ranges; None for the environment's own, or for the full ones.

    Raises:
        ConfigError: nothing in there was randomised.
    """
    import matplotlib.figure  # noqa: PLC0415  (slow to import, needed here alone)

    found, ranges = _found(source), randomization or _ranges(source)
    drawn = {name: values for name, values in found.items() if ranges.changes(name)}
    if not drawn:
        raise ConfigError(
            "nothing was randomised; make the environment with randomization=Randomization.full()"
        )
    rows = ceil(len(drawn) / _COLUMNS)
    figure = matplotlib.figure.Figure(figsize=(4 * _COLUMNS, 2.4 * rows), layout="constrained")
    panels = list(figure.subplots(rows, _COLUMNS, squeeze=False).flat)
    for axes, (name, values) in zip(panels, drawn.items(), strict=False):
        _panel(axes, BY_NAME[name], values, getattr(ranges, name))
    for axes in panels[len(drawn) :]:
        axes.set_axis_off()
    figure.savefig(path, dpi=100)


def _found(source: Any) -> dict[str, Tensor]:
    """Return the properties in a source by name, (..., width) each."""
    table = source if isinstance(source, TensorDictBase) else source.randomized
    if "next" in table.keys():  # noqa: SIM118  (a TensorDict's iterator runs over its rows)
        table = table["next"]
    names = {key.removeprefix(_KEY): key for key in table.keys() if isinstance(key, str)}  # noqa: SIM118
    return {name: table[names[name]] for name in BY_NAME if name in names}


def _ranges(source: Any) -> Randomization:
    if isinstance(source, TensorDictBase) or source.options.randomization is None:
        return Randomization.full()
    own: Randomization = source.options.randomization
    return own


def _panel(axes: Any, parameter: Parameter, values: Tensor, ends: Any) -> None:
    low, high = min(spread(ends[0], parameter)), max(spread(ends[1], parameter))
    shown = min(low, parameter.nominal), max(high, parameter.nominal)
    axes.hist(values.flatten().numpy(force=True), bins=_BINS, range=shown, color="#f2b705")
    for place in {low, high}:
        axes.axvline(place, color="0.3", linestyle="--")
    axes.set_title(parameter.name, fontsize=10)
    axes.set_xlabel(parameter.label, fontsize=7)
    axes.tick_params(labelsize=7)
