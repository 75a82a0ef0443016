"""Facts of the XL330-M288 servo and the units of its registers.

Sources: ROBOTIS control table of the XL330-M288 (units, model number); Rhoban/bam, model m6 of the XL330
(motor constants, firmware gain unit); pollen-robotics/microduck (gains, shutdown mask, baud rate).
"""

from __future__ import annotations

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
"""Torque constant of model m6 [N m/A]."""


def stiffness(p_gain: float) -> float:
    """Return the position stiffness [N m/rad] that a P register value gives at about 7.35 V."""
    return STIFFNESS_AT_GAIN_200 * p_gain / POSITION_P_GAIN
