"""The ducks of a batch as individuals: what each one is, what it measures, how its servos take commands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from hardware.joints import NUM_JOINTS
from microduck.physics.base import Physics
from microduck.randomization.model_fields import ModelFields
from microduck.randomization.parameters import BY_NAME, COLUMNS, named
from microduck.randomization.pushes import Pushes
from microduck.randomization.ranges import Randomization
from microduck.randomization.sensing import SIGNALS, Sensing
from microduck.randomization.servo_fields import ServoFields

Signals = Mapping[str, Tensor]


class NominalDucks:
    """Ducks that are all as the model says, with perfect sensors. What `Ducks` changes, this hands on.

    Attributes:
        strength: how far the ranges reach; 0 without ranges.
    """

    strength = 0.0

    def draw(self, ids: Tensor) -> None:
        """Make other ducks of `ids` (k,), with their model fields, servos and sensors."""

    def take_command(self, targets: Tensor) -> Tensor:
        """Let a control period begin; return where the servos go for joint targets (count, 14) [rad]."""
        return targets

    def begin(self, ids: Tensor, truth: Signals) -> Signals:
        """Return what ducks `ids` (k,) measure first; `truth` has their rows, see `Sensing`."""
        return self.measure(truth)

    def measure(self, truth: Signals) -> Signals:
        """Return what all ducks measure after a control period."""
        return {name: truth[name] for name in SIGNALS}

    def properties(self) -> dict[str, Tensor]:
        """Return what the ducks are by name, (count,) or (count, width) each; nothing for nominal ducks."""
        return {}

    def save(self, ids: Tensor) -> Any:
        """Return what `load` takes: everything about ducks `ids` (k,) that the simulator does not keep."""

    def load(self, ids: Tensor, saved: Any) -> None:
        """Put what `save` returned into ducks `ids` (k,)."""


class Ducks(NominalDucks):
    """Ducks drawn from ranges.

    Args:
        randomization: the ranges.
        physics: simulates them.
        generator: everything is drawn from it; its device is that of all tensors.

    Attributes:
        strength: how far the ranges reach, 0 to 1; a new one counts at each duck's next draw.
        values: what each duck is, (count, COLUMNS) float64; see `microduck.randomization.parameters`.
        pushes: when each is pushed.

    Raises:
        ConfigError: a range needs something that the simulation does not have.
    """

    def __init__(self, randomization: Randomization, physics: Physics, generator: torch.Generator) -> None:
        count, device = physics.num_envs, physics.device
        varied = [name for name in BY_NAME if randomization.changes(name)]
        self._full, self._physics, self._generator, self._device = randomization, physics, generator, device
        self._fields = ModelFields(physics, varied)
        self._servos = ServoFields(physics.servos, physics.model.opt.timestep, varied)
        self._sensing = Sensing(count, generator)
        self.pushes = Pushes(count, randomization.push_interval, generator)
        self.values = torch.zeros(count, COLUMNS, dtype=torch.float64, device=device)
        self._offset = torch.zeros(count, NUM_JOINTS, device=device)
        self._nominal = torch.tensor(Randomization.off().bounds()[0], dtype=torch.float64, device=device)
        self.strength = 1.0

    @property
    def strength(self) -> float:
        """How far the ranges reach."""
        return self._strength

    @strength.setter
    def strength(self, strength: float) -> None:
        ranges = self._full.scaled(strength)
        self._low, high = torch.tensor(ranges.bounds(), dtype=torch.float64, device=self._device).unbind()
        self._width, self._push_speed, self._strength = high - self._low, ranges.push_speed, float(strength)

    def draw(self, ids: Tensor) -> None:
        """Make other ducks of `ids` (k,), with their model fields, servos and sensors."""
        drawn = torch.empty_like(self.values[: len(ids)]).uniform_(generator=self._generator)
        differ = self._differ(len(ids))
        self.values[ids] = torch.where(differ[:, None], self._low + self._width * drawn, self._nominal)
        values = named(self.values[ids])
        self._fields.write(ids, values)
        self._servos.write(ids, values)
        self._attach(ids)
        self.pushes.begin(ids, self._push_speed * differ)

    def _differ(self, count: int) -> Tensor:
        """Draw which of `count` ducks are not the nominal one, (count,) bool."""
        drawn = torch.rand(count, generator=self._generator, device=self._device)
        return drawn >= self._full.nominal_share

    def _attach(self, ids: Tensor) -> None:
        """Give ducks `ids` (k,) the sensors that their values tell of."""
        values = {name: value.float() for name, value in named(self.values[ids]).items()}
        self._sensing.write(ids, values)
        self._offset[ids] = values["encoder_offset"]

    def take_command(self, targets: Tensor) -> Tensor:
        """Push who is due; return the joint angles at which the encoders show the targets, (count, 14)."""
        self.pushes.advance(self._physics.qvel)
        return targets - self._offset

    def begin(self, ids: Tensor, truth: Signals) -> Signals:
        """Return what ducks `ids` (k,) measure first; `truth` has their rows, see `Sensing`."""
        return self._sensing.begin(ids, truth)

    def measure(self, truth: Signals) -> Signals:
        """Return what all ducks measure after a control period."""
        return self._sensing.measure(truth)

    def properties(self) -> dict[str, Tensor]:
        """Return what the ducks are by name, (count,) or (count, width) each."""
        return {name: value.clone() for name, value in named(self.values).items()}

    def save(self, ids: Tensor) -> dict[str, Tensor]:
        """Return what `load` takes: everything about ducks `ids` (k,) that the simulator does not keep."""
        return {name: table[ids] for name, table in self._tables().items()}

    def load(self, ids: Tensor, saved: dict[str, Tensor]) -> None:
        """Put what `save` returned into ducks `ids` (k,)."""
        for name, table in self._tables().items():
            table[ids] = saved[name]
        self._attach(ids)

    def _tables(self) -> dict[str, Tensor]:
        pushes = self.pushes
        return {
            "values": self.values,
            "before": self._sensing.before,
            "push_speed": pushes.speed,
            "push_steps": pushes.steps,
            "last_push": pushes.last,
        }
