"""What the servos of each simulation are like: a table of tensors, and what it means to the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

import mujoco
import numpy as np
import torch
from torch import Tensor

from hardware import servo
from hardware.errors import ConfigError
from microduck.physics.servo_model import MAX_DELAY_S

_ROUNDING_S = 1e-6
"""Less than this the sums of timesteps are off after days [s]; a whole number of steps stays that number."""


class Column(NamedTuple):
    """A column of the table: its unit and the values it may hold."""

    unit: str
    low: float
    high: float


COLUMNS = {
    "voltage": Column("V", servo.FLOOR_VOLTAGE, servo.FULL_VOLTAGE),
    "sag": Column("V for each N m", 0.0, 10.0),
    "p_gain": Column("of the register", 0.0, servo.P_GAIN_LIMIT),
    "friction_scale": Column("times the model's", 0.0, 100.0),
    "delay": Column("s", 0.0, MAX_DELAY_S),
}
"""What can differ from simulation to simulation."""


class ModelFields(Protocol):
    """What a table needs of the simulations it belongs to; see `microduck.physics.base.Physics`."""

    num_envs: int
    model: mujoco.MjModel
    qvel: Tensor

    def expand(self, name: str) -> Tensor:
        """Return the values of a model field for each simulation, (num_envs, ...); may be written."""

    def expanded(self, name: str) -> bool:
        """Return whether a model field has values for each simulation."""

    def derived(self, name: str) -> Tensor:
        """Return a quantity that the simulator derives, (num_envs, ...); it follows each step."""


class ServoBank:
    """The servos of a batch, linearised at one voltage: the model's own position actuators.

    A row written into the table counts from `apply` on. Until a value differs from the model's own, nothing
    is written into the model, and steps are as fast as without a table.

    Args:
        fields: the simulations.

    Attributes:
        voltage: of the battery without load, (num_envs,) [V].
        sag: voltage lost for each newton metre of all servos together, (num_envs,) [V/(N m)].
        p_gain: P registers, (num_envs, 14).
        friction_scale: factor of the friction that does not depend on speed, (num_envs,).
        delay: time from a command to its effect, (num_envs,) [s]; whole physics steps, rounded up.
    """

    _fixed: Mapping[str, str] = dict.fromkeys(
        ("voltage", "sag"),
        "a position servo is linearised at one voltage; use PhysicsOptions(actuator='xl330')",
    )
    """Why some columns stay as they are."""

    def __init__(self, fields: ModelFields) -> None:
        self._fields = fields
        self._nominal = {
            "voltage": servo.NOMINAL_VOLTAGE,
            "sag": 0.0,
            "p_gain": float(servo.POSITION_P_GAIN),
            "friction_scale": 1.0,
            "delay": float(fields.model.actuator_delay.max()),
        }
        self.voltage = self._column("voltage")
        self.sag = self._column("sag")
        self.p_gain = self._column("p_gain", fields.model.nu)
        self.friction_scale = self._column("friction_scale")
        self.delay = self._column("delay")
        self._applied = {name: getattr(self, name).clone() for name in COLUMNS}
        self._plain_stiffness = self._copy(fields.model.actuator_gainprm[:, 0])
        self._plain_friction = self._copy(fields.model.dof_frictionloss)

    def _copy(self, values: np.ndarray) -> Tensor:
        """Return values of the model as they are now."""
        return torch.tensor(values).to(self.voltage)

    def _column(self, name: str, *width: int) -> Tensor:
        size = (self._fields.num_envs, *width)
        return torch.full(
            size, self._nominal[name], dtype=self._fields.qvel.dtype, device=self._fields.qvel.device
        )

    def apply(self, ids: Tensor) -> None:
        """Let the servos of simulations `ids` (k,) be what the table says.

        Raises:
            ConfigError: a value is out of range, or these servos cannot have it; nothing was applied.
        """
        for name in COLUMNS:
            self._check(name, ids)
        for name, values in self._applied.items():
            values[ids] = getattr(self, name)[ids]
        self._write(ids)

    def supply(self) -> Tensor:
        """Return the voltage under the load that the servos felt last, (num_envs,) [V]."""
        return self._applied["voltage"].clone()

    def rest(self, ids: Tensor) -> None:
        """Forget the load of simulations `ids` (k,), which start anew."""

    def feel(self) -> None:
        """Let the servos follow the load of the step that has just ended."""

    def save(self, ids: Tensor) -> dict[str, Tensor]:
        """Return what is applied to simulations `ids` (k,), and what depends on their load."""
        return {name: values[ids] for name, values in self._state().items()}

    def load(self, ids: Tensor, saved: dict[str, Tensor]) -> None:
        """Put what `save` returned in the place of simulations `ids` (k,), but for the model's fields."""
        for name, values in self._state().items():
            values[ids] = saved[name]
        for name in COLUMNS:
            getattr(self, name)[ids] = saved[name]

    def _state(self) -> dict[str, Tensor]:
        return self._applied

    def _check(self, name: str, ids: Tensor) -> None:
        values, column = getattr(self, name)[ids], COLUMNS[name]
        wrong = ~((values >= column.low) & (values <= column.high))  # NaN compares false
        if bool(wrong.any()):
            raise ConfigError(
                f"{self._example(name, ids, wrong)}; "
                f"it must be {column.low:g} to {column.high:g} {column.unit}"
            )
        wrong = values != self._nominal[name]
        if name in self._fixed and bool(wrong.any()):
            example = self._example(name, ids, wrong)
            raise ConfigError(f"{example} in place of {self._nominal[name]:g}, but {self._fixed[name]}")

    def _example(self, name: str, ids: Tensor, wrong: Tensor) -> str:
        values = getattr(self, name)[ids]
        first = int(wrong.reshape(len(ids), -1).any(-1).nonzero()[0])
        return (
            f"{name} of simulation {int(ids[first])} is {float(values[first][wrong[first]].reshape(-1)[0]):g}"
        )

    def _write(self, ids: Tensor) -> None:
        """Write what is applied to simulations `ids` (k,) into the model."""
        gains = self._field("actuator_gainprm", "p_gain", ids)
        if gains is not None:
            stiffness = self._applied["p_gain"][ids] / servo.POSITION_P_GAIN * self._plain_stiffness
            gains[ids, :, 0] = stiffness
            self._fields.expand("actuator_biasprm")[ids, :, 1] = -stiffness
        friction = self._field("dof_frictionloss", "friction_scale", ids)
        if friction is not None:
            friction[ids] = self._applied["friction_scale"][ids, None] * self._plain_friction
        self._write_delay(ids)

    def _write_delay(self, ids: Tensor) -> None:
        delay = self._field("actuator_delay", "delay", ids)
        if delay is not None:
            delay[ids] = (self._applied["delay"][ids, None] - _ROUNDING_S).clamp(min=0.0)

    def _field(self, field: str, column: str, ids: Tensor) -> Tensor | None:
        """Return a model field to write a column into; None while there is no need to."""
        as_ever = bool((self._applied[column][ids] == self._nominal[column]).all())
        return None if as_ever and not self._fields.expanded(field) else self._fields.expand(field)
