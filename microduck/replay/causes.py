"""Causes: what may make a robot differ from the simulated duck, as properties of a twin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import degrees, exp, log

from hardware.joints import JOINT_NAMES
from microduck.randomization.parameters import BY_NAME, PLACES

_LEAST_FACTOR = 0.05
"""Where factors end: a quarter of a quarter is no servo any more, and 0 has no logarithm."""


@dataclass(frozen=True)
class Cause:
    """One property of a duck.

    Attributes:
        name: in a few words.
        parameter: the field of `Twin`.
        component: which of its values.
        tried: values that are tried first, besides the duck's own: factors of it or differences from it.
        is_factor: whether values are compared by their ratio.
        worth: least difference from the duck's own value that is called a cause; less is fitted as well.
        unit: of the shown value.
        shown: factor from the value to the one that is shown.
    """

    name: str
    parameter: str
    component: int
    tried: tuple[float, ...]
    is_factor: bool
    worth: float
    unit: str
    shown: float = 1.0

    @property
    def column(self) -> int:
        """Place among the values of a duck."""
        return PLACES[self.parameter].start + self.component

    def first(self, value: float) -> list[float]:
        """Return the values to try first for a duck that has `value`."""
        wanted = [value * change if self.is_factor else value + change for change in self.tried]
        return [each for each in map(self.limited, wanted) if each != value]

    def limited(self, value: float) -> float:
        """Return the nearest value that a duck may have."""
        parameter = BY_NAME[self.parameter]
        least = max(parameter.least, _LEAST_FACTOR) if self.is_factor else parameter.least
        return min(max(value, least), parameter.most)

    def scale(self, value: float) -> float:
        """Return where a value lies on the scale on which the gap bends evenly."""
        return log(value) if self.is_factor else value

    def value(self, place: float) -> float:
        """Return the value at a place of that scale."""
        return exp(place) if self.is_factor else place

    def is_worth_it(self, value: float, own: float) -> bool:
        """Return whether a value differs enough from the duck's own to be called a cause."""
        if self.is_factor:
            return abs(log(value / own)) >= log(1 + self.worth)
        return abs(value - own) >= self.worth

    def say(self, value: float) -> str:
        """Return a value as people read it."""
        number = f"{value * self.shown:.3g}"
        if self.is_factor:
            return "the model's" if number == "1" else f"{number} times the model's"
        return f"{number} {self.unit}"


def _offset(place: int, joint: str) -> Cause:
    # Two ranges of training, `encoder_offset` reaches 0.015 rad: no policy was ever asked to bear more.
    return Cause(f"encoder offset of {joint}", "encoder_offset", place, (-0.04, 0.04), False, 0.02, "rad")


def _mounting(place: int, name: str) -> Cause:
    # As above: training tilts an IMU by up to 0.035 rad about each axis.
    tried, shown = (-0.06, 0.06), degrees(1.0)
    return Cause(f"IMU mounted with a {name}", "imu_mounting", place, tried, False, 0.035, "deg", shown)


def _age(place: int, parameter: str, name: str) -> Cause:
    return Cause(name, parameter, place, (0.5, 1.0, -0.5), False, 0.4, "control periods")


CAUSES: tuple[Cause, ...] = (
    # The robot's loop is allowed for, but not where in a read a servo measures, nor how long a target waits
    # in an adapter, which may take a few milliseconds; a servo's own loop takes one.
    Cause(
        "delay of the servos",
        "delay",
        0,
        (0.005, 0.01, 0.02, 0.03, 0.04, -0.005, -0.01),
        False,
        0.008,
        "ms",
        1e3,
    ),
    # The torque constants of fitted XL330s differ by 7 %.
    Cause("position gain of the servos", "p_gain_scale", 0, (0.4, 0.6, 0.8, 1.25, 1.6), True, 0.1, ""),
    # Training varies it by 10 %; it shows in joints that hardly move, so that less than half is a guess.
    Cause("friction of the servos", "servo_friction_scale", 0, (0.2, 0.5, 1.5, 2.5, 4.0), True, 0.5, ""),
    *(_offset(place, joint) for place, joint in enumerate(JOINT_NAMES)),
    _mounting(0, "roll"),
    _mounting(1, "pitch"),
    # Training varies both by a whole period.
    _age(0, "joint_velocity_lateness", "age of the joint speeds"),
    _age(0, "imu_lateness", "age of the IMU's values"),
)
"""What is tried on both kinds of servo."""
SUPPLY = Cause("voltage of the supply", "voltage", 0, (-1.4, -0.7, 0.5, 1.0), False, 0.4, "V")
"""What only a servo with a motor has; a range of training reaches 0.9 V."""


def causes_for(actuator: str) -> Sequence[Cause]:
    """Return what is tried on servos of a kind."""
    return (*CAUSES, SUPPLY) if actuator == "xl330" else CAUSES


TRIED_FIRST = 1 + sum(len(cause.tried) for cause in CAUSES)
"""Ducks of a first sweep, at most, without the supply's."""
