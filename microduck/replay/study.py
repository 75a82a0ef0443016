"""From a recording to its study: the replay, the search for causes, and the duck that comes nearest."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
import torch
from torch import Tensor

from firmware_bridge.recording import Log
from hardware import servo
from hardware.contract import CONTROL_PERIOD_S
from hardware.errors import ArchiveError, ConfigError
from microduck.physics.options import ACTUATORS
from microduck.randomization.parameters import PARAMETERS, PLACES
from microduck.randomization.twin import Twin
from microduck.replay.causes import TRIED_FIRST, causes_for
from microduck.replay.driven import Driven, find_driven
from microduck.replay.flock import Servos
from microduck.replay.gap import Gap, measure
from microduck.replay.search import FINALISTS, MOST_CAUSES, REFINED, Search, begin, go_on
from microduck.replay.simulate import simulate
from microduck.replay.size import NOISE, sizes
from microduck.replay.windows import LENGTH, Windows, cut

AUTO = "auto"
"""Both kinds of servo are tried, and that is taken which comes nearer with at most one cause."""
MOST_SEARCHED = 20
"""Windows that causes are looked for in, half a minute of driving, spread over the log."""
MOST_COMPARED = 400
"""Windows whose gap is told, ten minutes of driving, spread over the log."""

MOST_VOLTS = 50.0
"""Largest voltage that is believed [V]; an XL330 bears 10."""


@dataclass(frozen=True)
class ReplayOptions:
    """How to replay.

    Attributes:
        actuator: kind of servo, one of `ACTUATORS`, or "auto". A twin has "xl330".
        twin: the duck to compare with; None for the modelled one.

    Raises:
        ConfigError: there is no such actuator, or a twin cannot have it.
    """

    actuator: str = AUTO
    twin: Twin | None = None

    def __post_init__(self) -> None:
        if self.actuator not in (AUTO, *ACTUATORS):
            raise ConfigError(f"actuator is {self.actuator!r}; choose one of {[AUTO, *ACTUATORS]}")
        if self.twin is not None and self.actuator == "position":
            raise ConfigError("a twin has the actuator xl330; leave the actuator or the twin out")

    @property
    def actuators(self) -> tuple[str, ...]:
        """Kinds of servo to try."""
        if self.twin is not None:
            return ("xl330",)
        return ACTUATORS if self.actuator == AUTO else (self.actuator,)


@dataclass(frozen=True)
class Study:
    """What came out.

    Attributes:
        driven: what was replayed of the log.
        windows: those that were compared.
        servos: of the simulated ducks.
        others: size of the gap that each other kind of servo leaves with at most one cause.
        search: the causes.
        told: what the duck to compare with measured, and the one that comes nearest, (w, 2, LENGTH, WIDTH).
        gaps: of both.
        twin: the one that comes nearest.
        volts: what the servos measured on average, None where the log does not tell [V].
    """

    driven: Driven
    windows: Windows
    servos: Servos
    others: Mapping[str, float]
    search: Search
    told: Tensor
    gaps: tuple[Gap, Gap]
    twin: Twin
    volts: float | None

    @property
    def is_noise(self) -> bool:
        """Whether the gap is nothing but noise."""
        return self.search.start <= NOISE


Progress = Callable[[float, str], None]
"""Told of the part of the work that is done, at most, and of what is going on."""


def study(log: Log, options: ReplayOptions, progress: Progress) -> Study:
    """Replay a log and look for what makes its duck differ.

    Raises:
        ArchiveError: nothing of it can be replayed.
        ContractError: it was made under another contract.
    """
    driven = find_driven(log)
    windows = cut(driven.stretches, CONTROL_PERIOD_S)
    with _quiet():
        return _study(log, driven, windows, options, progress)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep MuJoCo from writing MUJOCO_LOG.TXT into the user's folder where a duck that is tried bursts."""
    usual = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda text: None)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(usual)


def _study(log: Log, driven: Driven, windows: Windows, options: ReplayOptions, progress: Progress) -> Study:
    worked = _counting(progress, _most_work(min(len(windows), MOST_SEARCHED), options))
    duck = torch.tensor((options.twin or Twin()).numbers(), dtype=torch.float64)
    p_gain = _p_gain(log)
    searches = {}
    for actuator in options.actuators:
        servos = Servos(actuator, p_gain)
        gauge = _gauge(windows.some(MOST_SEARCHED), servos, worked(f"looking for a cause ({actuator})"))
        searches[actuator] = (begin(duck, causes_for(actuator), gauge, NOISE), gauge)
    chosen = min(searches, key=lambda actuator: searches[actuator][0].size)
    others = {name: found.size for name, (found, _) in searches.items() if name != chosen}
    search, gauge = searches[chosen]
    go_on(search, causes_for(chosen), gauge, NOISE)
    shown, servos = windows.some(MOST_COMPARED), Servos(chosen, p_gain)
    told = simulate(shown, torch.stack([duck, search.duck]), servos, worked("comparing"))
    gaps = measure(shown, told[:, 0]), measure(shown, told[:, 1])
    return Study(driven, shown, servos, others, search, told, gaps, _twin(search.duck), _volts(log))


def _most_work(windows: int, options: ReplayOptions) -> float:
    """Return the most work that the search may be [duck-periods]; it often ends sooner."""
    sweeps = len(options.actuators) + MOST_CAUSES - 1
    return float(windows * LENGTH * (TRIED_FIRST + FINALISTS * REFINED) * sweeps)


def _counting(progress: Progress, whole: float) -> Callable[[str], Callable[[int], None]]:
    done = 0

    def of(text: str) -> Callable[[int], None]:
        def worked(more: int) -> None:
            nonlocal done
            done += more
            progress(min(done / whole, 1.0), text)

        return worked

    return of


def _gauge(windows: Windows, servos: Servos, worked: Callable[[int], None]) -> Callable[[Tensor], Tensor]:
    return lambda ducks: sizes(windows, simulate(windows, ducks, servos, worked))


def _p_gain(log: Log) -> float:
    given: Any = log.meta.get("p_gain", servo.POSITION_P_GAIN)
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given <= servo.P_GAIN_LIMIT:
        raise ArchiveError(
            f"the log's p_gain is {given!r:.80}; it must be in (0, {servo.P_GAIN_LIMIT}], so record it again"
        )
    return float(given)


def _volts(log: Log) -> float | None:
    volts = log.arrays["voltage"].astype(np.float64)
    known = volts[(volts > 0) & (volts < MOST_VOLTS)]
    return float(known.mean()) if known.size else None


def _twin(values: Tensor) -> Twin:
    fields: dict[str, Any] = {}
    for parameter in PARAMETERS:
        place = PLACES[parameter.name]
        some = [_plain(value) for value in values[place].tolist()]
        fields[parameter.name] = tuple(some) if parameter.components else some[0]
    return Twin(**fields)


def _plain(value: float) -> float:
    """Return a value with as many digits as a fit has, for people to read."""
    return float(f"{value:.5g}") if math.isfinite(value) else value
