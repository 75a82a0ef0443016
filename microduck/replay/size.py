"""How large a gap is: one number from all signals, in which no single bad contact weighs much."""

from __future__ import annotations

import torch
from torch import Tensor

from hardware.joints import NUM_JOINTS
from microduck.replay.driven import SIGNALS
from microduck.replay.windows import Windows

UNITS = {"position": 0.002, "velocity": 0.25, "angular_velocity": 0.05, "gravity": 0.01}
"""Size of a gap that is nothing but noise, for each signal [rad, rad/s, rad/s, 1].

Replaying a simulated walk leaves 0.002 rad of joint angles, a count of the encoder or two, and 0.05 rad/s of
turn rate. The others are what training adds to a sensor, `Randomization.full()`: the firmware's joint speeds
and the IMU's gravity are no better. An angle's unit grows by how far its joint turns in the time for which
nobody knows when it was measured, see `Windows.unsure_s`."""
_POSITION, _VELOCITY = slice(0, NUM_JOINTS), slice(NUM_JOINTS, 2 * NUM_JOINTS)
BENT = 3.0
"""Multiple of a unit from which a gap counts by its size and no longer by its square: a foot that meets the
floor a period later makes such gaps for a moment, whatever the ducks are like."""
NOISE = 1.5
"""Size up to which a gap is nothing but noise: on average each signal differs by its unit."""


def sizes(windows: Windows, told: Tensor) -> Tensor:
    """Return the size of the gap of each duck, (k,) float64.

    Args:
        windows: of the log.
        told: what the simulated ducks measured, (w, k, LENGTH, WIDTH).
    """
    units = torch.cat([torch.full((width,), UNITS[name]) for name, width in SIGNALS.items()])
    unsure_s = windows.unsure_s
    total = torch.zeros(told.shape[1], dtype=torch.float64)
    for measured, counted, of_window in zip(windows.measured, windows.counted, told, strict=True):
        robot = measured[counted].float()
        unit = units.expand_as(robot).clone()
        unit[:, _POSITION] = torch.hypot(unit[:, _POSITION], robot[:, _VELOCITY] * unsure_s)
        gap = (robot - of_window[:, counted]) / unit
        total += (2 * BENT**2 * ((1 + (gap / BENT) ** 2).sqrt() - 1)).mean(dim=-1).double().sum(dim=-1)
    return total / windows.counted.sum()
