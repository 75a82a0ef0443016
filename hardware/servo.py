"""Facts of the XL330-M288 servo and the units of its registers.

Sources: ROBOTIS control table of the XL330-M288 (units, model number); Rhoban/bam, model m6 of the XL330
(motor constants, firmware gain unit); pollen-robotics/microduck (gains, shutdown mask, baud rate).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import pi

MODEL_NUMBER = 1200
"""Model number a ping of an XL330-M288 returns."""
MODEL_NAMES = {
    1020: "XM430-W350",
    1030: "XM430-W210",
    1190: "XL330-M077",
    1200: "XL330-M288",
    1220: "XC330-M181",
}
"""Names of models likely to be met on a desk, for messages."""
BAUD = 1_000_000
"""Baud rate of the duck's bus [1/s]."""
BAUD_CODES = {9_600: 0, 57_600: 1, 115_200: 2, 1_000_000: 3, 2_000_000: 4, 3_000_000: 5, 4_000_000: 6}
"""Value of the baud-rate register for each rate [1/s]."""

COUNTS_PER_TURN = 4096
POSITION_CENTRE = 2048
"""Count at 0 rad."""
RADIANS_PER_COUNT = 2 * pi / COUNTS_PER_TURN
RAD_PER_S_PER_COUNT = 0.229 * 2 * pi / 60
"""Velocity unit: 0.229 rpm in rad/s."""
AMPERES_PER_COUNT = 0.001
VOLTS_PER_COUNT = 0.1
SECONDS_PER_RETURN_DELAY_COUNT = 2e-6
SECONDS_PER_WATCHDOG_COUNT = 0.02

POSITION_P_GAIN = 200
"""P register of a walking duck."""
LIMP_P_GAIN = 50
"""P register of a fallen duck."""
SHUTDOWN_MASK = 52
"""Overload, electrical shock and overheating trip the servo; input voltage does not."""
STIFFNESS_AT_GAIN_200 = 0.55
"""Position stiffness at P register 200 and about 7.35 V [N m/rad]; proportional to the register."""
STALL_TORQUE = 0.96
"""Torque limit of the linearised servo [N m]."""
DAMPING = 0.053
"""Back-EMF and viscous damping of the linearised servo [N m s/rad]."""
FRICTION = 0.0048
"""Coulomb friction of the linearised servo [N m]."""
ARMATURE = 0.0018
"""Rotor inertia at the output shaft [kg m2]."""
TORQUE_CONSTANT = 0.36601349688984386
"""Torque constant of model m6 at the output shaft [N m/A, or V s/rad]."""
RESISTANCE = 2.8113923539223227
"""Resistance of the winding in model m6 [ohm]."""
M6_ARMATURE = 0.0018077432831600838
"""Rotor inertia at the output shaft in model m6 [kg m2]."""
VISCOUS_FRICTION = 0.005359668274599504
"""Viscous friction of model m6 [N m s/rad]."""
ERROR_GAIN = 0.0028773775
"""Duty cycle for each radian of position error and unit of the P register: 4096 counts a turn, gain divisor
256, PWM limit 885 (Rhoban/bam; the manual has a divisor of 128, which measurement did not confirm)."""
NOMINAL_VOLTAGE = 7.4
"""Voltage of a two-cell battery, to which the robot's controller refers its gain [V]."""
FULL_VOLTAGE = 8.4
"""Voltage of a full two-cell battery, and the highest that is simulated [V]."""
FLOOR_VOLTAGE = 6.0
"""Voltage below which the supply does not sag in the upstream training, and the lowest simulated [V]."""
P_GAIN_LIMIT = 16383
"""Largest value of the P register."""


@dataclass(frozen=True)
class GearFriction:
    """Friction of the gearbox in model m6 of Rhoban/bam, fitted to an XL330-M288 on a bench.

    "Motor" terms grow with the torque of the motor, "external" ones with that of the load. Stribeck terms,
    and squared ones, fade away as the joint gets faster.

    Attributes:
        base: friction that is always there [N m].
        stribeck: what is added near standstill [N m].
        motor: part of the motor's torque.
        external: part of the load's torque.
        motor_stribeck: part of the motor's torque near standstill.
        external_stribeck: part of the load's torque near standstill.
        motor_squared: part of the motor's squared torque, where the load drives [1/(N m)].
        external_squared: part of the load's squared torque, where the motor drives [1/(N m)].
        stribeck_speed: speed at which the Stribeck terms have fallen to 1/e [rad/s].
        stribeck_power: how sudden they fade away.
    """

    base: float = 0.004771183165566
    stribeck: float = 0.004676345799486616
    motor: float = 0.2667860954283698
    external: float = 8.515871897059342e-06
    motor_stribeck: float = 1.0722918395099123e-05
    external_stribeck: float = 0.08077928978935671
    motor_squared: float = 0.009972471242139415
    external_squared: float = 0.004902565732332559
    stribeck_speed: float = 2.890372094130307
    stribeck_power: float = 8.683259907618984


GEAR_FRICTION = GearFriction()
"""The fit of model m6."""


def stiffness(p_gain: float) -> float:
    """Return the position stiffness [N m/rad] that a P register value gives at about 7.35 V."""
    return STIFFNESS_AT_GAIN_200 * p_gain / POSITION_P_GAIN
