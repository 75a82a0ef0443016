"""What a bus hears of a simulated body: the truth, or what a twin's sensors make of it."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from hardware import rotations
from hardware.contract import CONTROL_PERIOD_S
from hardware.joints import STAND
from microduck.randomization.parameters import named
from microduck.randomization.sensing import Sensing, quaternion
from microduck.randomization.twin import Twin
from microduck.virtual_body import STEP_S, VirtualBody

_PERIOD_STEPS = round(CONTROL_PERIOD_S / STEP_S)


class Reading(NamedTuple):
    """What the servos and the IMU measure.

    Attributes:
        position: joint angles, (14,) [rad].
        velocity: joint speeds, (14,) [rad/s].
        current: of each servo, (14,) [A].
        voltage: at the servos [V].
        angular_velocity: of the IMU in its axes, which are the trunk's if it is mounted well, (3,) [rad/s].
        orientation: quaternion (w, x, y, z) that turns those axes' vectors into the world.
    """

    position: np.ndarray
    velocity: np.ndarray
    current: np.ndarray
    voltage: float
    angular_velocity: np.ndarray
    orientation: np.ndarray


class BodySenses:
    """Perfect sensors.

    Args:
        body: what they measure.
    """

    def __init__(self, body: VirtualBody) -> None:
        self._body = body

    def read(self) -> Reading:
        """Return what is measured now; to be called once in every physics step."""
        body = self._body
        return Reading(
            body.position, body.velocity, body.current, body.voltage, body.angular_velocity, body.orientation
        )

    def goals(self, shown: np.ndarray) -> np.ndarray:
        """Return the joint angles at which the encoders show `shown`, (14,) [rad]."""
        return shown


class TwinSenses(BodySenses):
    """A twin's sensors, by the same lines as in training; see `Sensing`.

    Args:
        body: what they measure.
        twin: whose they are.
        seed: of the noise.
    """

    def __init__(self, body: VirtualBody, twin: Twin, seed: int = 0) -> None:
        super().__init__(body)
        self._offset, row = np.array(twin.encoder_offset), torch.tensor([0])
        self._mounting = quaternion(torch.tensor(twin.imu_mounting, dtype=torch.float64)).numpy()
        self._sensing = Sensing(1, torch.Generator().manual_seed(seed))
        self._sensing.write(row, named(torch.tensor([twin.numbers()])))
        self._sensing.begin(row, self._truth())
        self._past = deque([self._sensing.before] * _PERIOD_STEPS, maxlen=_PERIOD_STEPS)

    def read(self) -> Reading:
        """Return what is measured now; to be called once in every physics step."""
        self._sensing.before = self._past[0]  # a control period ago
        told = {
            name: value[0].double().numpy() for name, value in self._sensing.measure(self._truth()).items()
        }
        self._past.append(self._sensing.before)
        return Reading(
            told["joint_error"] + STAND,
            told["joint_velocity"],
            self._body.current,
            self._body.voltage,
            told["angular_velocity"],
            self._tilted(told["projected_gravity"]),
        )

    def goals(self, shown: np.ndarray) -> np.ndarray:
        """Return the joint angles at which the encoders show `shown`, (14,) [rad]."""
        return shown - self._offset

    def _truth(self) -> dict[str, Tensor]:
        body = self._body
        signals = {
            "angular_velocity": body.angular_velocity,
            "projected_gravity": rotations.projected_gravity(body.orientation),
            "joint_velocity": body.velocity,
            "joint_error": body.position - STAND,
        }
        return {name: torch.tensor(value[None], dtype=torch.float32) for name, value in signals.items()}

    def _tilted(self, gravity: np.ndarray) -> np.ndarray:
        """Return the IMU's orientation, tilted just so that gravity lies along `gravity` (3,) in its axes."""
        mounted = rotations.multiply(self._body.orientation, self._mounting)
        true = rotations.projected_gravity(mounted)
        shortest = np.concatenate([[1.0 + gravity @ true], np.cross(gravity, true)])
        tilted: np.ndarray = rotations.multiply(mounted, shortest / np.linalg.norm(shortest))
        return tilted
