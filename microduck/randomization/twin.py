"""Twin: one duck out of many, with all its deviations from the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hardware import servo
from hardware.errors import ConfigError
from hardware.joints import NUM_JOINTS
from microduck.checks import check_whole
from microduck.randomization.parameters import PARAMETERS, PLACES, spread
from microduck.randomization.ranges import Randomization

Triple = tuple[float, float, float]


@dataclass(frozen=True)
class Twin:
    """One duck. The fields are those of `Randomization`, each with a value in place of a range.

    A twin without arguments is the nominal duck.

    Raises:
        ConfigError: a value is no number, not possible, or there are too many or too few.
    """

    sole_friction: float = 1.0
    trunk_mass_scale: float = 1.0
    trunk_com: Triple = (0.0, 0.0, 0.0)
    head_com: tuple[float, ...] = (0.0,) * 12
    armature_scale: float = 1.0
    servo_friction_scale: float = 1.0
    voltage: float = servo.NOMINAL_VOLTAGE
    sag: float = 0.0
    delay: float = 0.0
    p_gain_scale: float = 1.0
    encoder_offset: tuple[float, ...] = (0.0,) * NUM_JOINTS
    imu_mounting: Triple = (0.0, 0.0, 0.0)
    gyro_bias: Triple = (0.0, 0.0, 0.0)
    gyro_noise: float = 0.0
    gravity_noise: float = 0.0
    joint_position_noise: float = 0.0
    joint_velocity_noise: float = 0.0
    imu_lateness: float = 0.0
    joint_velocity_lateness: float = 0.0

    def __post_init__(self) -> None:
        for parameter in PARAMETERS:
            given = getattr(self, parameter.name)
            if not parameter.components:
                object.__setattr__(self, parameter.name, parameter.check(given))
                continue
            if not isinstance(given, Sequence) or isinstance(given, str) or len(given) != parameter.width:
                raise ConfigError(f"{parameter.name} is {given!r}; it must be {parameter.width} numbers")
            object.__setattr__(self, parameter.name, tuple(parameter.check(value) for value in given))

    def numbers(self) -> list[float]:
        """Return all values as one row of `COLUMNS` numbers; see `microduck.randomization.parameters`."""
        return [value for p in PARAMETERS for value in spread(getattr(self, p.name), p)]

    @classmethod
    def draw(cls, randomization: Randomization, seed: int) -> Twin:
        """Return a duck drawn from ranges; equal seeds give equal ducks.

        Raises:
            ConfigError: the seed is no whole number of 0 or more.
        """
        check_whole("seed", seed, least=0)
        values = np.random.default_rng(seed).uniform(*randomization.bounds()).tolist()
        fields: dict[str, Any] = {
            p.name: tuple(values[PLACES[p.name]]) if p.components else values[PLACES[p.name].start]
            for p in PARAMETERS
        }
        return cls(**fields)
