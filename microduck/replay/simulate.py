"""The replay itself: recorded targets drive simulated ducks whose trunks are led along the recorded motion.

A duck on its feet is unstable: the same targets topple a simulated one within a second, however small the
gap. So after every comparison the trunk is turned by `LED` of what its IMU differs by; joints and contacts
are left to the simulator. What the servos do then differs only where the ducks do.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from hardware.contract import CONTROL_PERIOD_S
from microduck.randomization.parameters import named
from microduck.replay.driven import SIGNALS
from microduck.replay.flock import Flock, Servos, to_trunk
from microduck.replay.windows import LENGTH, PAST, Windows
from microduck.virtual_body import STEP_S

LED = 0.5
"""Part of the trunk's difference that is taken back in every period; all of it would pass on sensor noise."""
MOST_DUCKS = 1200
"""Ducks that are simulated at once; more need memory and are no faster."""
_STEPS = round(CONTROL_PERIOD_S / STEP_S)
_PLACES = dict(zip(SIGNALS, torch.arange(sum(SIGNALS.values())).split(list(SIGNALS.values())), strict=True))
_RATE, _GRAVITY = (_PLACES[name].tolist() for name in ("angular_velocity", "gravity"))

Worked = Callable[[int], None]
"""Told how many duck-periods were simulated."""


def simulate(windows: Windows, ducks: Tensor, servos: Servos, worked: Worked) -> Tensor:
    """Replay every window on every duck.

    Args:
        windows: of the log.
        ducks: what each is, (k, COLUMNS); see `microduck.randomization.parameters`.
        servos: what their servos have in common.
        worked: told of the progress.

    Returns:
        What they measured, `driven.SIGNALS` side by side, (w, k, LENGTH, WIDTH) float32.
    """
    told = []
    for some in torch.arange(len(windows)).split(max(1, MOST_DUCKS // len(ducks))):
        told.append(_together(windows, some, ducks, servos, worked))
    return torch.cat(told)


def _together(windows: Windows, some: Tensor, ducks: Tensor, servos: Servos, worked: Worked) -> Tensor:
    count = len(ducks)
    values = ducks.repeat(len(some), 1)
    row = some.repeat_interleave(count)
    measured, targets, seen = windows.measured[row], windows.targets[row], windows.seen[row]
    flock = Flock(values, servos)
    position, velocity, rate, gravity = (measured[:, 0, places] for places in _PLACES.values())
    flock.begin(position, velocity, to_trunk(values, rate), to_trunk(values, gravity))
    follow = _Follow(targets, named(values)["delay"] + servos.loop_s)
    told = torch.empty(len(row), LENGTH, measured.shape[-1])
    for period in range(LENGTH):
        now = flock.tell()
        told[:, period] = now
        off = (measured[:, period] - now) * (LED * seen[:, period, None])
        flock.guide(to_trunk(values, off[:, _RATE]), to_trunk(values, off[:, _GRAVITY]))
        for step in range(period * _STEPS, (period + 1) * _STEPS):
            flock.step(follow(step))
        worked(len(row))
    return told.unflatten(0, (len(some), count))


class _Follow:
    """Gives the targets that late servos follow.

    Args:
        targets: one for each period, `PAST` before the first, (n, PAST + LENGTH, 14) [rad].
        delay: of each duck, (n,) [s].
    """

    def __init__(self, targets: Tensor, delay: Tensor) -> None:
        self._targets, self._rows = targets, torch.arange(len(targets))
        self._steps = (delay / STEP_S).floor().long()
        self._part = (delay / STEP_S - self._steps).unsqueeze(-1)

    def __call__(self, step: int) -> Tensor:
        """Return the targets (n, 14) of a physics step; one that comes within it counts in part."""
        return torch.lerp(self._in_step(step), self._in_step(step - 1), self._part)

    def _in_step(self, step: int) -> Tensor:
        period = torch.div(step - self._steps, _STEPS, rounding_mode="floor") + PAST
        return self._targets[self._rows, period.clamp(min=0)]
