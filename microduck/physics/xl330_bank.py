"""XL330s with a motor, a supply that sags and a gearbox that rubs more under load."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from microduck.physics import xl330
from microduck.physics.options import PhysicsOptions
from microduck.physics.servo_bank import ModelFields, ServoBank


def make_servos(fields: ModelFields, options: PhysicsOptions) -> ServoBank:
    """Return the servos that the options ask for."""
    return Xl330Bank(fields) if options.actuator == "xl330" else ServoBank(fields)


class Xl330Bank(ServoBank):
    """The servos of a batch whose model has motors; see `microduck.physics.servo_model.fit_motors`.

    Supply and friction follow the load once in a control period: MuJoCo holds them in between.

    Args:
        fields: the simulations.
    """

    _fixed: Mapping[str, str] = {}

    def __init__(self, fields: ModelFields) -> None:
        super().__init__(fields)
        names = ("actuator_force", "actuator_velocity", "qacc", "qfrc_bias", "qfrc_constraint")
        self._loads = [fields.derived(name) for name in names]
        self._joints = slice(fields.model.nv - fields.model.nu, None)  # after the free base
        self._friction = fields.expand("dof_frictionloss")[:, self._joints]
        self._gains = fields.expand("actuator_gainprm")
        self._inverse_inertia = self._copy(fields.model.dof_invweight0[self._joints]).float()
        self._level = torch.full_like(self.p_gain, xl330.REST_FRICTION, dtype=torch.float32)
        self._draw = torch.zeros_like(self.voltage)
        self._sags = False
        self._write(torch.arange(fields.num_envs, device=self.voltage.device))

    def _state(self) -> dict[str, Tensor]:
        return {**self._applied, "level": self._level, "draw": self._draw}

    def load(self, ids: Tensor, saved: dict[str, Tensor]) -> None:
        """Put what `save` returned in the place of simulations `ids` (k,), but for the model's fields."""
        super().load(ids, saved)
        self._sags = bool(self._applied["sag"].any())

    def supply(self) -> Tensor:
        """Return the voltage under the load that the servos felt last, (num_envs,) [V]."""
        return self._supply(slice(None))

    def rest(self, ids: Tensor) -> None:
        """Forget the load of simulations `ids` (k,), which start anew."""
        self._level[ids] = xl330.REST_FRICTION
        self._draw[ids] = 0.0
        self._write_load(ids)

    def feel(self) -> None:
        """Let supply and friction follow the load as the last physics step began, and present speeds."""
        # Single precision is plenty for a fit to a bench, and three times as fast.
        torque, speed, *whole = (load.float() for load in self._loads)
        acceleration, bias, constraint = (load[:, self._joints] for load in whole)
        held = xl330.friction_torque(acceleration, speed, self._friction.float(), self._inverse_inertia)
        now = self._fields.qvel[:, self._joints].float()
        self._level[:] = xl330.friction_level(torque, constraint - bias - held, now)
        self._friction[:] = self._level * self._applied["friction_scale"].unsqueeze(-1)
        self._draw[:] = torque.abs().sum(-1)
        if self._sags:
            self._write_supply(slice(None))

    def _write(self, ids: Tensor) -> None:
        self._sags = bool(self._applied["sag"].any())
        self._write_delay(ids)
        self._write_load(ids)

    def _write_load(self, ids: Tensor) -> None:
        self._friction[ids] = self._level[ids] * self._applied["friction_scale"][ids, None]
        self._write_supply(ids)

    def _write_supply(self, rows: Tensor | slice) -> None:
        supply = self._supply(rows).unsqueeze(-1)
        self._gains[rows, :, 4] = xl330.STIFFNESS_PER_VOLT * supply * self._applied["p_gain"][rows]
        self._gains[rows, :, 7] = supply

    def _supply(self, rows: Tensor | slice) -> Tensor:
        voltage, sag = self._applied["voltage"][rows], self._applied["sag"][rows]
        return xl330.supply_voltage(voltage, sag, self._draw[rows])
