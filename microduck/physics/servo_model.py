"""What the servos need of a model before it is compiled."""

from __future__ import annotations

from math import ceil

import mujoco
import numpy as np

from hardware import servo
from microduck.physics import xl330

MAX_DELAY_S = 0.04
"""Longest delay of a command that models have room for [s]."""


def make_room_for_delays(spec: mujoco.MjSpec) -> None:
    """Let every actuator remember its commands for `MAX_DELAY_S`; without a delay no motion changes."""
    samples = max([ceil(MAX_DELAY_S / spec.option.timestep - 1e-6), *(one.nsample for one in spec.actuators)])
    for actuator in spec.actuators:
        actuator.nsample = samples


def fit_motors(spec: mujoco.MjSpec) -> None:
    """Put a motor with the firmware's position control in the place of each actuator; see docs/servo.md.

    Gains of MuJoCo's `dcmotor` are in units of torque: with the back-EMF given as damping, the voltage it
    applies is that of the firmware. As in the upstream training, the stall torque of a full battery is also
    the most of a motor that is turned against its drive.
    """
    constant, volts = servo.TORQUE_CONSTANT, servo.NOMINAL_VOLTAGE
    stiffness = xl330.STIFFNESS_PER_VOLT * volts * servo.POSITION_P_GAIN
    limit = xl330.TORQUE_PER_VOLT * servo.FULL_VOLTAGE
    for actuator in spec.actuators:
        actuator.set_to_dcmotor(
            motorconst=[constant, constant],
            resistance=servo.RESISTANCE,
            controller=[stiffness, 0.0, xl330.BACK_EMF_DAMPING, 0.0, 0.0, volts],
            ctrlspec=mujoco.mjtCtrlInput.mjINPUT_POS,
        )
        actuator.forcerange = [-limit, limit]
        joint = spec.joint(actuator.target)
        joint.damping = [servo.VISCOUS_FRICTION, 0.0, 0.0]
        joint.frictionloss = xl330.REST_FRICTION
        joint.armature = servo.M6_ARMATURE
        joint.solref_friction = xl330.FRICTION_SOLREF
        joint.solimp_friction = xl330.FRICTION_SOLIMP


def past_commands(model: mujoco.MjModel) -> np.ndarray:
    """Return where MuJoCo's `history` keeps the past commands of each actuator, (14, samples)."""
    samples = model.actuator_history[0, 0]
    # Each actuator's part holds two numbers, the times, and then the commands.
    return model.actuator_historyadr[:, None] + 2 + samples + np.arange(samples)
