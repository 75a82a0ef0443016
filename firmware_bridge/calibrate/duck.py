"""A duck to calibrate: all of it there and limp at the beginning, and limp at the end, whatever happens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import numpy as np

from firmware_bridge.robot import imu
from firmware_bridge.robot.devices import ALL_SERVO_IDS, name_of
from firmware_bridge.robot.imu import BusImu, Imu
from firmware_bridge.robot.servos import Servos
from firmware_bridge.wire import registers
from firmware_bridge.wire.bus import Bus
from hardware.errors import CalibrationError, DeviceError
from hardware.joints import SERVO_IDS

_AS_IT_IS = (1.0, 0.0, 0.0, 0.0)
LEAST_W = 0.15
"""Smallest w of the board's orientation from which gravity is used. The board sends x, y and z, rounded to
half floats, and w follows from their length: the smaller it is, the more the rounding turns gravity, by up to
0.4 degrees here and by 2 at w = 0. Turning about the vertical changes w and z, and never w2 + z2."""


class RawImu(Protocol):
    """What an IMU says about its own axes, before bias and mounting."""

    def raw(self) -> tuple[np.ndarray, np.ndarray]:
        """Return angular velocity (3,) [rad/s] and unit gravity (3,).

        Raises:
            BusError: it does not answer, or has nothing that can be used.
            CalibrationError: it cannot tell gravity well in this pose.
        """
        ...


class RawBoard:
    """The IMU board on the bus, in its own axes.

    Args:
        bus: the bus.
    """

    def __init__(self, bus: Bus) -> None:
        self._bus, self._imu = bus, BusImu(bus, _AS_IT_IS)

    def raw(self) -> tuple[np.ndarray, np.ndarray]:
        """See `RawImu.raw`."""
        block = self._bus.sync_read(imu.SAMPLE_ADDRESS, imu.SAMPLE_LENGTH, [imu.BOARD_ID])[imu.BOARD_ID]
        sample = self._imu.decode(block.data)
        x, y, z = np.frombuffer(block.data[6:], "<f2").astype(np.float64)
        if z * z + self._w_squared(x, y, z) < LEAST_W**2:
            raise CalibrationError(
                "the IMU board is upside down in this pose, where it cannot tell gravity well; tip the duck "
                "by another angle. If it is so while the duck is upright, mount the board another way"
            )
        if self._w_squared(x, y, z) < LEAST_W**2:
            raise CalibrationError(
                "the IMU board cannot tell gravity well at this heading; turn the duck by a quarter about "
                "the vertical, and measure again"
            )
        return sample.angular_velocity, sample.gravity

    @staticmethod
    def _w_squared(x: float, y: float, z: float) -> float:
        return max(0.0, 1 - x * x - y * y - z * z)


@contextmanager
def limp_duck(bus: Bus) -> Iterator[None]:
    """Refuse a duck that is not whole or not limp, and leave one that is limp.

    A servo that nobody moved is only looked at, also at the end.

    Raises:
        DeviceError: a servo is missing, wrong or stiff; or, at the end, one may be stiff.
        BusError: the bus does not work.
    """
    Servos(bus).check()
    stiff = _torques(bus)[1]
    if stiff:
        raise DeviceError(
            f"torque is on at {name_of(*stiff)}; lay the duck down, end what drives it with `duck stop`, or "
            "switch its battery off and on"
        )
    try:
        yield
    finally:
        limp, stiff = _torques(bus)
        if stiff or not limp >= set(SERVO_IDS):  # one that does not say that it is limp may be stiff
            Servos(bus).limp()


def checked_imu(bus: Bus, own: Imu | None) -> RawImu:
    """Prove that the IMU is there and gives live samples, and return what says them in its own axes.

    Args:
        bus: the bus.
        own: an IMU with a link of its own; None for the board on the bus.

    Raises:
        BusError: it is not there, or gives none.
    """
    (own or BusImu(bus)).check()
    return own or RawBoard(bus)


def joint_angles(bus: Bus) -> np.ndarray:
    """Return the servos' angles in joint order, (14,) [rad]."""
    blocks = bus.sync_read(Servos.TICK_ADDRESS, Servos.TICK_LENGTH, SERVO_IDS)
    return Servos(bus).decode(blocks).position


def _torques(bus: Bus) -> tuple[set[int], set[int]]:
    """Return the ids of the servos that say that they are limp, and of those that say that they are not."""
    register = registers.TORQUE_ENABLE
    blocks = bus.sync_read_available(register.address, register.width, ALL_SERVO_IDS)
    stiff = {device for device, block in blocks.items() if register.decode(block.data)}
    return set(blocks) - stiff, stiff
