"""A duck's body as the loop sees it: four methods, the same for a real, an emulated and a test body."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple, Protocol

import numpy as np

from firmware_bridge.bus import Bus
from firmware_bridge.imu import BOARD_ID, BusImu
from firmware_bridge.port import SerialPort
from firmware_bridge.servos import Servos
from hardware import servo
from hardware.calibration import Calibration
from hardware.joints import JOINT_NAMES, SERVO_IDS

_NAMES = dict(zip(SERVO_IDS, JOINT_NAMES, strict=True))


class BodySample(NamedTuple):
    """What a body measured in one tick.

    Attributes:
        time_s: monotonic time of the reading [s].
        position: joint angles, (14,) [rad].
        velocity: joint speeds, (14,) [rad/s].
        current: servo currents, (14,) [A].
        angular_velocity: of the trunk, in the trunk frame, (3,) [rad/s].
        gravity: unit gravity in the trunk frame, (3,); upright is (0, 0, -1).
        alerts: names of the joints whose servo reports a hardware fault.
    """

    time_s: float
    position: np.ndarray
    velocity: np.ndarray
    current: np.ndarray
    angular_velocity: np.ndarray
    gravity: np.ndarray
    alerts: tuple[str, ...]


class Body(Protocol):
    """A duck that can be driven."""

    def enable(self, p_gain: int) -> None:
        """Stiffen every joint where it is: set the P register, goal := present, then torque on.

        Raises:
            BusError: a servo did not take it; some may have torque.
        """
        ...

    def read(self) -> BodySample:
        """Measure every joint and the trunk.

        Raises:
            BusError: a part did not answer in time, or its answer cannot be used.
        """
        ...

    def write(self, targets: np.ndarray) -> None:
        """Send joint targets, (14,) [rad].

        Raises:
            BusError: the port does not take them.
        """
        ...

    def limp(self) -> None:
        """Switch every torque off, trying each servo even when another fails.

        Raises:
            BusError: names the servos that may still have torque.
        """
        ...


class RealBody:
    """Servos and IMU on one bus: one read and one write a tick.

    Making one runs the whole handshake, which writes nothing.

    Args:
        bus: the bus.
        calibration: what this duck's parts deviate by.

    Raises:
        BusError: a device is missing, wrong or not ready.
    """

    def __init__(self, bus: Bus, calibration: Calibration) -> None:
        self._bus = bus
        self._servos = Servos(bus, np.array(calibration.joint_offsets))
        self._imu = BusImu(bus, calibration.imu_mounting)
        self._servos.check()
        self._imu.check()

    def enable(self, p_gain: int) -> None:
        """See `Body.enable`."""
        self._servos.enable(p_gain)

    def read(self) -> BodySample:
        """See `Body.read`."""
        # The board keeps its sample at the address of the servos' state, so one read brings both.
        blocks = self._bus.fast_sync_read(Servos.TICK_ADDRESS, Servos.TICK_LENGTH, (BOARD_ID, *SERVO_IDS))
        joints = self._servos.decode(blocks)
        trunk = self._imu.decode(blocks[BOARD_ID].data)
        return BodySample(
            time_s=time.monotonic(),
            position=joints.position,
            velocity=joints.velocity,
            current=joints.current,
            angular_velocity=trunk.angular_velocity,
            gravity=trunk.gravity,
            alerts=tuple(_NAMES[device] for device in joints.alerts),
        )

    def write(self, targets: np.ndarray) -> None:
        """See `Body.write`."""
        self._servos.write_goals(targets)

    def limp(self) -> None:
        """See `Body.limp`."""
        self._servos.limp()


@contextmanager
def open_body(port_path: str, calibration: Calibration) -> Iterator[RealBody]:
    """Open a duck's serial port, prove that the whole duck is there, and close the port at the end.

    Args:
        port_path: device, for example `/dev/ttyAMA0`.
        calibration: what this duck's parts deviate by.

    Raises:
        BusError: the port cannot be opened, or the duck is not ready; nothing was written.
    """
    with SerialPort(port_path, servo.BAUD) as port:
        yield RealBody(Bus(port, servo.BAUD), calibration)
