"""Writing a duck's properties into the table of its servos."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from torch import Tensor

from microduck.physics.servo_bank import ServoBank

SUPPLY_PARAMETERS = ("voltage", "sag")
"""What a position servo has not."""
SERVO_PARAMETERS = ("servo_friction_scale", "delay", "p_gain_scale", *SUPPLY_PARAMETERS)


class ServoFields:
    """The servos of some simulations, as far as they vary.

    Args:
        servos: their table.
        timestep: of the simulations [s].
        names: parameters that vary; those that are not in `SERVO_PARAMETERS` are left to others.
    """

    def __init__(self, servos: ServoBank, timestep: float, names: Iterable[str]) -> None:
        self._names = [name for name in SERVO_PARAMETERS if name in set(names)]
        self._servos, self._step = servos, timestep
        self._p_gain = servos.p_gain[0].clone()
        self._columns = {
            "servo_friction_scale": servos.friction_scale,
            "delay": servos.delay,
            "p_gain_scale": servos.p_gain,
            "voltage": servos.voltage,
            "sag": servos.sag,
        }

    def write(self, ids: Tensor, values: Mapping[str, Tensor]) -> None:
        """Write the properties of ducks `ids` (k,), by name, (k,) each, into their servos."""
        for name in self._names:
            value = values[name]
            if name == "delay":
                value = self._step * (value / self._step).round()  # a simulated servo looks once in a step
            elif name == "p_gain_scale":
                value = value.unsqueeze(-1) * self._p_gain
            self._columns[name][ids] = value.to(self._p_gain)
        if self._names:
            self._servos.apply(ids)
