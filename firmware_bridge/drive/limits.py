"""How far a duck may go, and what its battery is: the numbers that `safety` and the loop judge by.

Sources, named in brackets: [daemon] the duck's own daemon, pollen-robotics/microduck; [manual] the ROBOTIS
e-Manual of the XL330-M288-T; [simulated] the shipped walker on the simulated duck.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hardware.errors import ConfigError

_Ranges = Mapping[str, tuple[float, float]]
_LIMITS: _Ranges = {
    "target_rate": (1.0, 100.0),
    "temperature_warn": (30.0, 70.0),
    "temperature_limit": (30.0, 70.0),
    "current": (0.1, 1.75),
    "current_s": (0.1, 10.0),
    "fall_gravity_z": (-0.9, 0.0),
    "fall_s": (0.06, 1.0),
    "lean_s": (0.5, 10.0),
    "tip_gravity_z": (-0.98, -0.5),
    "tip_predicted_z": (-0.9, 0.0),
    "tip_lookahead_s": (0.1, 0.5),
    "tip_ticks": (1, 10),
    "coast_ticks": (0, 5),
    "lost_s": (0.1, 1.0),
    "deadman_s": (0.1, 1.0),
}
_BATTERY: _Ranges = {"empty_v": (5.0, 8.4), "full_v": (5.0, 8.4)}


@dataclass(frozen=True)
class Limits:
    """Where the loop steps in.

    Attributes:
        target_rate: fastest change of a joint target [rad/s], 1.2 rad in a tick. The shipped policies ask
            for more in 1 % of their ticks; a servo, whose no-load speed is 20 rad/s, only ever sees the
            torque such a step asks for. What is more is spread over ticks [simulated].
        temperature_warn: servo temperature that is told [deg C].
        temperature_limit: servo temperature at which the duck sits down [deg C]; the servo itself goes limp
            at 70, wherever the duck is [manual].
        current: servo current that only a blocked joint takes for long [A]; 1.47 A is a stalled servo at the
            5 V it is rated for [manual].
        current_s: time above that current after which the duck sits down [s].
        fall_gravity_z: gravity's z in the trunk above which the duck leans too far, -0.5 is 60 degrees [1]
            [daemon].
        fall_s: time of leaning that far after which it has fallen [s] [daemon].
        lean_s: time of leaning beyond `tip_gravity_z` after which a duck on its feet lies on something [s];
            on its beak it leans by 28 to 52 degrees [simulated].
        tip_gravity_z: gravity's z above which a fall may be under way, -0.90 is 26 degrees [1] [daemon].
        tip_predicted_z: gravity's z that a fall under way will pass [1] [daemon].
        tip_lookahead_s: how far ahead the tipping is drawn out [s] [daemon].
        tip_ticks: samples in a row that must agree on a fall under way [1] [daemon].
        coast_ticks: missed reads in a row over which the policy runs on with the last sample [1] [daemon].
        lost_s: time without a sample after which the duck goes limp [s].
        deadman_s: age at which a command is lost and the duck stands [s] [daemon].

    Raises:
        ConfigError: a value is out of range, or the warning lies above the limit.
    """

    target_rate: float = 60.0
    temperature_warn: float = 60.0
    temperature_limit: float = 65.0
    current: float = 1.0
    current_s: float = 1.0
    fall_gravity_z: float = -0.5
    fall_s: float = 0.2
    lean_s: float = 1.0
    tip_gravity_z: float = -0.9
    tip_predicted_z: float = -0.5
    tip_lookahead_s: float = 0.3
    tip_ticks: int = 3
    coast_ticks: int = 3
    lost_s: float = 0.5
    deadman_s: float = 0.5

    def __post_init__(self) -> None:
        _check(self, _LIMITS)
        _check_order(self, "temperature_warn", "temperature_limit")
        _check_order(self, "tip_gravity_z", "tip_predicted_z")


@dataclass(frozen=True)
class Battery:
    """What feeds the servos.

    Attributes:
        rail_is_pack: whether the servos' rail is the two-cell pack itself. If so, the servos' voltage tells
            its charge, and an empty pack makes the duck sit down; the voltage of a regulated rail tells
            nothing about a battery.
        empty_v: voltage of an empty pack under load [V] [daemon].
        full_v: voltage of a full pack under load [V] [daemon].

    Raises:
        ConfigError: a value is out of range, or empty is not below full.
    """

    rail_is_pack: bool = False
    empty_v: float = 6.6
    full_v: float = 8.2

    def __post_init__(self) -> None:
        _check(self, _BATTERY)
        _check_order(self, "empty_v", "full_v")


def _check(values: object, ranges: _Ranges) -> None:
    for name, (low, high) in ranges.items():
        value = getattr(values, name)
        if not low <= value <= high:  # NaN too
            raise ConfigError(f"{name} is {value:g}; it must be in [{low:g}, {high:g}]")


def _check_order(values: object, lower: str, upper: str) -> None:
    low, high = getattr(values, lower), getattr(values, upper)
    if not low < high:
        raise ConfigError(f"{lower} is {low:g}; it must be below {upper}, which is {high:g}")
