"""The XL330's torque law: model m6 of Rhoban/bam. For numpy arrays and torch tensors alike.

The firmware makes a duty cycle of the position error, which is a part of the supply's voltage, and what the
back-EMF leaves of that drives a current and so a torque. That much is MuJoCo's `dcmotor`. This module has its
numbers, and the two things that depend on the load: the supply's voltage and the gearbox's friction.
"""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace

from hardware.servo import ERROR_GAIN, FLOOR_VOLTAGE, GEAR_FRICTION, RESISTANCE, TORQUE_CONSTANT

Array = Any
"""A numpy array or a torch tensor."""

TORQUE_PER_VOLT = TORQUE_CONSTANT / RESISTANCE
"""Torque of the stalled motor [N m/V]."""
BACK_EMF_DAMPING = TORQUE_CONSTANT**2 / RESISTANCE
"""Torque that the shorted motor takes from its motion [N m s/rad]."""
STIFFNESS_PER_VOLT = TORQUE_PER_VOLT * ERROR_GAIN
"""Position stiffness for each volt of supply and unit of the P register [N m/rad/V]."""
REST_FRICTION = GEAR_FRICTION.base + GEAR_FRICTION.stribeck
"""Friction of a servo that neither moves nor carries anything [N m]."""

FRICTION_SOLREF = (-5e4, -200.0)
FRICTION_SOLIMP = (0.95, 0.99, 0.001, 0.5, 2.0)
"""How hard the solver makes friction hold: a joint it holds against 0.1 N m creeps by 0.015 rad/s. Five times
harder, as in the upstream training, takes a fifth more solver iterations; see docs/servo.md."""
_HELD_DAMPING = -FRICTION_SOLREF[1] / FRICTION_SOLIMP[1]
_HELD_SOFTNESS = (1 - FRICTION_SOLIMP[0]) / FRICTION_SOLIMP[0]


def supply_voltage(voltage: Array, sag: Array, draw: Array) -> Array:
    """Return what a loaded battery gives [V]; all arrays are alike.

    Args:
        voltage: of the battery without load [V].
        sag: what it loses for each newton metre [V/(N m)].
        draw: torques of all motors together, signs left out [N m].
    """
    return array_namespace(draw).clip(voltage - sag * draw, FLOOR_VOLTAGE, None)


def friction_level(motor: Array, external: Array, speed: Array) -> Array:
    """Return the most that friction can hold, or takes from a moving joint [N m]; all arrays are alike.

    Args:
        motor: torque of the motor [N m].
        external: torque of everything else but friction on the joint, at rest [N m].
        speed: of the joint [rad/s].
    """
    xp, gear = array_namespace(motor), GEAR_FRICTION
    slow = xp.exp(-((xp.abs(speed) / gear.stribeck_speed) ** gear.stribeck_power))
    driving = xp.abs(motor) > xp.abs(external)
    squared = xp.where(
        driving, gear.external_squared * external * external, gear.motor_squared * motor * motor
    )
    carried = xp.abs(gear.external * external - gear.motor * motor)
    carried_slowly = xp.abs(gear.external_stribeck * external - gear.motor_stribeck * motor)
    return gear.base + carried + slow * (gear.stribeck + carried_slowly + squared)


def friction_torque(acceleration: Array, speed: Array, level: Array, inverse_inertia: Array) -> Array:
    """Return the torque of MuJoCo's dry friction with the hardness above [N m]; all arrays are alike.

    The solver's result shows it as part of all constraints only, so it is computed again, by MuJoCo's law.

    Args:
        acceleration: of the joint, as the solver found it [rad/s2].
        speed: at which it was found [rad/s].
        level: most that friction could hold [N m].
        inverse_inertia: MuJoCo's `dof_invweight0` of the joint [1/(kg m2)].
    """
    xp = array_namespace(speed)
    wanted = -(acceleration + _HELD_DAMPING * speed) / (_HELD_SOFTNESS * inverse_inertia)
    return xp.minimum(xp.maximum(wanted, -level), level)
