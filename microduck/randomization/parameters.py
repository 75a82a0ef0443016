"""What may differ from one duck to the next: names, nominal values, units, and what is possible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, pi
from numbers import Real
from typing import Any, TypeGuard

from torch import Tensor

from hardware import servo
from hardware.calibration import MAX_OFFSET
from hardware.contract import HEAD_NAMES
from hardware.errors import ConfigError
from hardware.joints import JOINT_NAMES
from microduck.physics.servo_bank import MAX_DELAY_S

_AXES = ("x", "y", "z")


@dataclass(frozen=True)
class Parameter:
    """One property of a duck.

    Attributes:
        name: the field of `Randomization` and `Twin`, and the key of a twin's file.
        nominal: value of the duck as it is modelled, for each component.
        least: smallest value that is physically possible.
        most: largest.
        unit: SI unit; empty for a plain number.
        meaning: in a few words, for files and plots.
        components: names of its values; empty for a single number.
    """

    name: str
    nominal: float
    least: float
    most: float
    unit: str
    meaning: str
    components: tuple[str, ...] = ()

    @property
    def _space(self) -> str:
        return f" {self.unit}" if self.unit else ""

    @property
    def label(self) -> str:
        """What it is, and its unit."""
        return f"{self.meaning} [{self.unit}]" if self.unit else self.meaning

    @property
    def width(self) -> int:
        """Number of its values."""
        return len(self.components) or 1

    def check(self, value: Any) -> float:
        """Return one of its values as a float.

        Raises:
            ConfigError: it is no number, or not possible.
        """
        if is_number(value) and self.least <= value <= self.most:
            return float(value)
        raise ConfigError(
            f"{self.name} is {value!r}; it must be a number in [{self.least:g}, {self.most:g}]{self._space}"
        )


PARAMETERS = (
    Parameter("sole_friction", 1.0, 0.0, 5.0, "", "sliding friction of both soles"),
    Parameter("trunk_mass_scale", 1.0, 0.1, 10.0, "", "mass and inertia of the trunk, times the model's"),
    Parameter("trunk_com", 0.0, -0.1, 0.1, "m", "shift of the trunk's centre of mass", _AXES),
    Parameter(
        "head_com",
        0.0,
        -0.1,
        0.1,
        "m",
        "shift of the centre of mass of each part of neck and head, by its joint",
        tuple(f"{joint}_{axis}" for joint in HEAD_NAMES for axis in _AXES),
    ),
    Parameter("armature_scale", 1.0, 0.1, 10.0, "", "rotor inertia of the servos, times the model's"),
    Parameter("servo_friction_scale", 1.0, 0.0, 10.0, "", "friction of the servos, times the model's"),
    Parameter(
        "voltage",
        servo.NOMINAL_VOLTAGE,
        servo.FLOOR_VOLTAGE,
        servo.FULL_VOLTAGE,
        "V",
        "voltage of the battery without load",
    ),
    Parameter("sag", 0.0, 0.0, 1.0, "V/(N m)", "voltage lost for the torque of all servos"),
    Parameter("delay", 0.0, 0.0, MAX_DELAY_S, "s", "time from a command to the servo's answer"),
    Parameter("p_gain_scale", 1.0, 0.1, 10.0, "", "position gain of the servos, times the register's"),
    Parameter(
        "encoder_offset", 0.0, -MAX_OFFSET, MAX_OFFSET, "rad", "measured less true joint angle", JOINT_NAMES
    ),
    Parameter(
        "imu_mounting", 0.0, -pi, pi, "rad", "rotation vector from the trunk's axes to the IMU's", _AXES
    ),
    Parameter("gyro_bias", 0.0, -1.0, 1.0, "rad/s", "turn rate that the IMU tells at rest", _AXES),
    Parameter("gyro_noise", 0.0, 0.0, 5.0, "rad/s", "most noise of the gyro, either way"),
    Parameter("gravity_noise", 0.0, 0.0, 1.0, "", "most noise of the direction of gravity, either way"),
    Parameter("joint_position_noise", 0.0, 0.0, 1.0, "rad", "most noise of joint angles, either way"),
    Parameter("joint_velocity_noise", 0.0, 0.0, 10.0, "rad/s", "most noise of joint velocities, either way"),
    Parameter("imu_lateness", 0.0, 0.0, 1.0, "control periods", "age of gyro and gravity"),
    Parameter("joint_velocity_lateness", 0.0, 0.0, 1.0, "control periods", "age of joint velocities"),
)
BY_NAME: Mapping[str, Parameter] = {parameter.name: parameter for parameter in PARAMETERS}
COLUMNS = sum(parameter.width for parameter in PARAMETERS)
"""Number of values of one duck."""


def _places() -> dict[str, slice]:
    places, at = {}, 0
    for parameter in PARAMETERS:
        places[parameter.name] = slice(at, at + parameter.width)
        at += parameter.width
    return places


PLACES: Mapping[str, slice] = _places()
"""Where the values of each parameter are among the `COLUMNS`."""


def is_number(value: Any) -> TypeGuard[float]:
    """Return whether `value` is a finite real number, and no bool."""
    return isinstance(value, Real) and not isinstance(value, bool) and abs(value) < inf  # type: ignore[operator]


def named(values: Tensor) -> dict[str, Tensor]:
    """Return the columns of a table (k, COLUMNS) by parameter, (k,) or (k, width) each."""
    return {
        name: values[:, place] if BY_NAME[name].components else values[:, place.start]
        for name, place in PLACES.items()
    }


def spread(value: float | Sequence[float], parameter: Parameter) -> list[float]:
    """Return one number for each component, from one for all of them or from as many as there are."""
    return [float(v) for v in value] if isinstance(value, Sequence) else [float(value)] * parameter.width
