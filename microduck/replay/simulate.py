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
from microduck.replay.windows import LENGTH, Windows
from microduck.virtual_body import STEP_S

LED = 0.5
"""Part of the trunk's difference that is taken back in every period; all of it would pass on sensor noise."""
MOST_DUCKS = 1200
"""Ducks that are simulated at once; more need memory and are no faster."""
STEPS = round(CONTROL_PERIOD_S / STEP_S)
"""Physics steps from one measurement to the next, however far they are apart."""
MOST_TOLD = 1e3
"""What a simulated duck that burst tells, in every unit: far from all that is measured, and a number."""
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
    times = windows.time[row]
    follow = _Follow(targets, windows.written[row] + named(values)["delay"][:, None])
    told = torch.empty(len(row), LENGTH, measured.shape[-1])
    for period in range(LENGTH):
        now = flock.tell().nan_to_num(nan=MOST_TOLD).clamp(-MOST_TOLD, MOST_TOLD)
        told[:, period] = now
        off = (measured[:, period] - now) * (LED * seen[:, period, None])
        flock.guide(to_trunk(values, off[:, _RATE]), to_trunk(values, off[:, _GRAVITY]))
        if period + 1 < LENGTH:
            lasts = (times[:, period + 1] - times[:, period]) / STEPS
            for step in range(STEPS):
                begin = times[:, period] + step * lasts
                flock.step(follow(begin, begin + lasts), lasts)
        worked(len(row))
    return told.unflatten(0, (len(some), count))


class _Follow:
    """Gives the targets that servos follow.

    Args:
        targets: in their order, (n, k, 14) [rad].
        since: when each takes force, (n, k) [s]; never falls.
    """

    def __init__(self, targets: Tensor, since: Tensor) -> None:
        self._targets, self._since, self._rows = targets, since.contiguous(), torch.arange(len(targets))

    def __call__(self, begin: Tensor, end: Tensor) -> Tensor:
        """Return the targets (n, 14) of a physics step; one that comes within it counts in part.

        Args:
            begin: of the step, (n,) [s].
            end: of the step, (n,) [s].
        """
        newest = torch.searchsorted(self._since, end.unsqueeze(-1)).squeeze(-1) - 1
        newest, before = newest.clamp(min=0), (newest - 1).clamp(min=0)
        part = ((end - self._since[self._rows, newest]) / (end - begin)).clamp(0.0, 1.0)
        targets = self._targets
        return torch.lerp(targets[self._rows, before], targets[self._rows, newest], part.unsqueeze(-1))
