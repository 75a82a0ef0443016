"""A virtual duck whose physics is stepped by hand, on a bus without bytes."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from hardware.joints import JOINT_NAMES, STAND
from microduck.virtual_body import STEP_S, VirtualBody
from microduck.virtual_duck import VirtualDuck

ON, OFF = np.ones(14, bool), np.zeros(14, bool)
GAIN = np.full(14, 200)
HEAD_YAW = JOINT_NAMES.index("head_yaw")


@dataclass
class Desk:
    """A bus without bytes: what a client would have written, and what the duck last reported."""

    torque: np.ndarray = field(default_factory=OFF.copy)
    goals: np.ndarray = field(default_factory=STAND.copy)
    p_gains: np.ndarray = field(default_factory=GAIN.copy)
    state: dict = field(default_factory=dict)
    imu: tuple = ()

    def set_state(self, position, velocity=None, current=None, voltage=None, temperature=None):
        given = {
            "position": position,
            "velocity": velocity,
            "current": current,
            "voltage": voltage,
            "temperature": temperature,
        }
        self.state |= {name: np.copy(value) for name, value in given.items() if value is not None}

    def first_step(self):
        """Tell the duck to leave STAND, as a policy's first step does."""
        self.goals = STAND.copy()
        self.goals[HEAD_YAW] += 0.05

    def set_imu(self, angular_velocity, quaternion):
        self.imu = (angular_velocity.copy(), quaternion.copy())


@pytest.fixture
def desk():
    return Desk()


@pytest.fixture
def said():
    return []


@pytest.fixture
def body():
    return VirtualBody()


@pytest.fixture
def duck(desk, body, said):
    return VirtualDuck(desk, body, said.append)


@pytest.fixture
def steps():
    """Lets a duck live for a time."""

    def run(duck, seconds):
        for _ in range(round(seconds / STEP_S)):
            duck.step()

    return run


@pytest.fixture
def stand_up(steps):
    """Gives torque, with the goals at STAND, until the joints are there."""

    def rise(duck, desk):
        desk.torque, desk.goals = ON.copy(), STAND.copy()
        steps(duck, 1.5)

    return rise
