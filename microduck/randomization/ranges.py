"""Randomization: by how much ducks may differ, as data, each range with its reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from hardware.errors import ConfigError
from microduck.randomization.parameters import BY_NAME, PARAMETERS, Parameter, is_number, spread

if TYPE_CHECKING:
    from microduck.randomization.twin import Twin

Ends = float | tuple[float, ...]
"""An end of a range: one number for all components of a parameter, or one for each."""
Range = tuple[Ends, Ends]
"""Lowest and highest value."""
MAX_PUSH = 5.0
"""Hardest push that is taken [m/s]."""
_NO_RANGES = {"push_interval", "nominal_share"}
"""Fields that have no nominal value."""


@dataclass(frozen=True)
class Randomization:
    """Ranges that each duck's properties are drawn from, uniformly, at each of its resets.

    The defaults are the full ranges. "Upstream's" are the numbers of the training of
    pollen-robotics/microduck_rl, whose policies walk on real ducks; the others are estimates.

    Attributes:
        sole_friction: of both soles. Rubber on floors from dusty wood to carpet; upstream's.
        trunk_mass_scale: of mass and inertia together. Batteries and prints differ by grams; upstream's.
        trunk_com: along each axis [m]. Battery and cables lie where the builder put them; the third of four
            stages of upstream's curriculum.
        head_com: of each part of neck and head, along each axis [m]. Less moves there than in the trunk; the
            second of three stages of upstream's.
        armature_scale: of all servos. Six fitted models of the XL330 differ by 6 %; upstream's.
        servo_friction_scale: of all servos. Grease, wear and warmth; upstream's.
        voltage: of the battery without load [V]. Two lithium cells, from nearly empty to full; upstream's.
        sag: voltage lost for the torque of all servos [V/(N m)]. Cells and cables resist; upstream's.
        delay: from a command to the servo's answer [s]. Bus and firmware take 15 to 30 ms; upstream's.
        p_gain_scale: of all servos. The torque constants of the six models differ by 7 %.
        encoder_offset: of each joint [rad]. Zeroed by eye, to about a degree; upstream's. It moves what is
            measured and, the other way, where the servo goes.
        imu_mounting: rotation vector, each component [rad]. What a calibration leaves, two degrees; upstream
            turns by up to six about any axis, for ducks that nobody calibrates.
        gyro_bias: each axis [rad/s]. What the sensor's own estimate leaves, a third of a degree a second.
        gyro_noise: half the width of uniform noise [rad/s]; upstream's.
        gravity_noise: the same, of each component of the direction; upstream's.
        joint_position_noise: the same [rad], less than a count of the encoder; upstream's.
        joint_velocity_noise: the same [rad/s], ten counts of the register; upstream's.
        imu_lateness: age of gyro and gravity [control periods]. The board answers with its last sample;
            upstream's.
        joint_velocity_lateness: age of joint velocities [control periods]. The firmware averages over the
            period before; upstream's.
        push_speed: most that a push adds to the base's velocity, along x and along y [m/s]; upstream's.
        push_interval: time between two pushes [s]; upstream's.
        nominal_share: part of all draws that bring the nominal duck, unpushed. Where every duck answers
            15 ms late, a policy forgets the one that answers at once.

    Raises:
        ConfigError: a range is no pair of numbers, is upside down, or reaches beyond what is possible.
    """

    sole_friction: Range = (0.7, 1.3)
    trunk_mass_scale: Range = (0.95, 1.05)
    trunk_com: Range = (-0.01, 0.01)
    head_com: Range = (-0.005, 0.005)
    armature_scale: Range = (0.9, 1.1)
    servo_friction_scale: Range = (0.9, 1.1)
    voltage: Range = (6.5, 8.2)
    sag: Range = (0.0, 0.2)
    delay: Range = (0.015, 0.03)
    p_gain_scale: Range = (0.95, 1.05)
    encoder_offset: Range = (-0.015, 0.015)
    imu_mounting: Range = (-0.035, 0.035)
    gyro_bias: Range = (-0.005, 0.005)
    gyro_noise: Range = (0.03, 0.03)
    gravity_noise: Range = (0.01, 0.01)
    joint_position_noise: Range = (0.001, 0.001)
    joint_velocity_noise: Range = (0.25, 0.25)
    imu_lateness: Range = (0.0, 1.0)
    joint_velocity_lateness: Range = (1.0, 1.0)
    push_speed: float = 0.3
    push_interval: tuple[float, float] = (3.0, 6.0)
    nominal_share: float = 0.0

    def __post_init__(self) -> None:
        for parameter in PARAMETERS:
            low, high = _pair(parameter.name, getattr(self, parameter.name))
            ends = _ends(parameter, low), _ends(parameter, high)
            if any(a > b for a, b in zip(*(spread(end, parameter) for end in ends), strict=True)):
                raise ConfigError(f"{parameter.name} is {(low, high)}; give the lower end first")
            object.__setattr__(self, parameter.name, ends)
        if not (is_number(self.push_speed) and 0 <= self.push_speed <= MAX_PUSH):
            raise ConfigError(f"push_speed is {self.push_speed!r}; it must be in [0, {MAX_PUSH:g}] m/s")
        if not (is_number(self.nominal_share) and 0 <= self.nominal_share <= 1):
            raise ConfigError(f"nominal_share is {self.nominal_share!r}; it must be in [0, 1]")
        low, high = _pair("push_interval", self.push_interval)
        if not (is_number(low) and is_number(high) and 0 < low <= high):
            raise ConfigError(
                f"push_interval is {(low, high)}; it must be two times above 0, lower first [s]"
            )
        object.__setattr__(self, "push_interval", (float(low), float(high)))

    @classmethod
    def full(cls) -> Randomization:
        """Return the full ranges."""
        return cls()

    @classmethod
    def off(cls) -> Randomization:
        """Return ranges that hold nothing but the nominal duck: a start for ranges of one's own."""
        return cls().without(*BY_NAME, "push_speed")

    @classmethod
    def of(cls, twin: Twin) -> Randomization:
        """Return ranges that hold nothing but one duck, without pushes."""
        ranges: dict[str, Any] = {name: (getattr(twin, name),) * 2 for name in BY_NAME}
        return cls(push_speed=0.0, **ranges)

    def without(self, *names: str) -> Randomization:
        """Return these ranges with some of them nominal.

        Args:
            names: fields; `push_speed` for no pushes.

        Raises:
            ConfigError: there is no such field.
        """
        known = [field.name for field in fields(self) if field.name not in _NO_RANGES]
        unknown = sorted(set(names) - set(known))
        if unknown:
            raise ConfigError(f"there is no range {unknown[0]!r}; choose from {known}")
        changes = {name: (BY_NAME[name].nominal,) * 2 for name in names if name in BY_NAME}
        given: dict[str, Any] = {**changes, **({"push_speed": 0.0} if "push_speed" in names else {})}
        return replace(self, **given)

    def scaled(self, strength: float) -> Randomization:
        """Return ranges shrunk towards the nominal duck, for a curriculum.

        Args:
            strength: 0 for the nominal duck, 1 for these ranges; pushes get weaker and stay as frequent.

        Raises:
            ConfigError: the strength is not in [0, 1].
        """
        check_strength(strength)
        shrunk: dict[str, Any] = {
            p.name: tuple(_towards(p, end, strength) for end in getattr(self, p.name)) for p in PARAMETERS
        }
        return replace(self, push_speed=strength * self.push_speed, **shrunk)

    def changes(self, name: str) -> bool:
        """Return whether a parameter may take another value than its nominal one."""
        parameter = BY_NAME[name]
        return any(
            value != parameter.nominal for end in getattr(self, name) for value in spread(end, parameter)
        )

    def bounds(self) -> tuple[list[float], list[float]]:
        """Return the lower and the upper ends of all parameters, `COLUMNS` numbers each."""
        low, high = (
            [value for p in PARAMETERS for value in spread(getattr(self, p.name)[side], p)] for side in (0, 1)
        )
        return low, high


def check_strength(strength: Any) -> None:
    """Refuse what is no number in [0, 1].

    Raises:
        ConfigError: names the value.
    """
    if not (is_number(strength) and 0 <= strength <= 1):
        raise ConfigError(f"strength is {strength!r}; it must be in [0, 1]: 0 for nominal ducks, 1 for all")


def _towards(parameter: Parameter, end: Ends, strength: float) -> Ends:
    nominal = (1 - strength) * parameter.nominal
    values = [nominal + strength * value for value in spread(end, parameter)]
    return tuple(values) if isinstance(end, tuple) else values[0]


def _pair(name: str, value: Any) -> tuple[Any, Any]:
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise ConfigError(f"{name} is {value!r}; give a pair: lowest and highest value")
    low, high = value
    return low, high


def _ends(parameter: Parameter, end: Any) -> Ends:
    """Return one end of a range as floats, checked."""
    several = isinstance(end, Sequence) and not isinstance(end, str)
    if not several:
        return parameter.check(end)
    if len(end) != parameter.width:
        raise ConfigError(
            f"{parameter.name} has an end of {len(end)} numbers; give one for all, or {parameter.width}"
        )
    return tuple(parameter.check(value) for value in end)
