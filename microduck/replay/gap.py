"""The gap between a recorded and a simulated duck, as numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch import Tensor

from hardware.joints import JOINT_NAMES
from microduck.replay.windows import PAST, Windows

_POSITION, _VELOCITY, _RATE, _GRAVITY = slice(0, 14), slice(14, 28), slice(28, 31), slice(31, 34)


@dataclass(frozen=True)
class JointGap:
    """How one joint of the robot moves otherwise than the simulator's: robot minus simulation.

    Attributes:
        joint: its name.
        rms: of the angle's gap [rad].
        p95: 95th percentile of its size [rad].
        bias: its mean [rad].
        velocity_rms: of the speed's gap [rad/s].
        delay: by which the robot's angle follows later [s]; 0 where the joint does not move.
        robot_error: RMS of the robot's angle against the target a period before [rad].
        simulated_error: the same of the simulator's [rad].
    """

    joint: str
    rms: float
    p95: float
    bias: float
    velocity_rms: float
    delay: float
    robot_error: float
    simulated_error: float


@dataclass(frozen=True)
class Gap:
    """How the robot differs from a simulated duck: robot minus simulation.

    Attributes:
        joints: in joint order.
        position_rms: over all joints [rad].
        position_p95: 95th percentile of its size [rad].
        velocity_rms: over all joints [rad/s].
        delay: by which the robot's joints follow later, all together [s].
        turn_rate_rms: of the trunk, over its axes [rad/s].
        gravity_rms: of its direction in the trunk, an angle [rad]. It and the turn rate are compared before
            the trunk is led back, in every control period.
        gravity_p95: 95th percentile of that angle [rad].
    """

    joints: tuple[JointGap, ...]
    position_rms: float
    position_p95: float
    velocity_rms: float
    delay: float
    turn_rate_rms: float
    gravity_rms: float
    gravity_p95: float


def measure(windows: Windows, told: Tensor) -> Gap:
    """Return the gap to one simulated duck.

    Args:
        windows: of the log.
        told: what the duck measured, (w, LENGTH, WIDTH).
    """
    counted = windows.counted.numpy()
    robot, duck = windows.measured.numpy()[counted], told.double().numpy()[counted]
    before = windows.targets[:, PAST - 1 : -1].numpy()[counted]
    gap = robot - duck
    angle = np.linalg.norm(gap[:, _GRAVITY], axis=1)  # of unit vectors that nearly agree
    position, velocity = gap[:, _POSITION], gap[:, _VELOCITY]
    joints = tuple(
        JointGap(
            joint=name,
            rms=_rms(position[:, i]),
            p95=_p95(position[:, i]),
            bias=float(position[:, i].mean()),
            velocity_rms=_rms(velocity[:, i]),
            delay=_delay(position[:, i], duck[:, 14 + i]),
            robot_error=_rms(robot[:, i] - before[:, i]),
            simulated_error=_rms(duck[:, i] - before[:, i]),
        )
        for i, name in enumerate(JOINT_NAMES)
    )
    return Gap(
        joints=joints,
        position_rms=_rms(position),
        position_p95=_p95(position),
        velocity_rms=_rms(velocity),
        delay=_delay(position, duck[:, _VELOCITY]),
        turn_rate_rms=_rms(gap[:, _RATE]),
        gravity_rms=_rms(angle),
        gravity_p95=_p95(angle),
    )


def _rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2)))


def _p95(values: np.ndarray) -> float:
    return float(np.percentile(np.abs(values), 95))


def _delay(gap: np.ndarray, speed: np.ndarray) -> float:
    """Return the time shift of the simulated angle that explains most of the gap [s]: to the first order."""
    moved = float((speed**2).sum())
    return -float((gap * speed).sum()) / moved if moved > 0 else 0.0
