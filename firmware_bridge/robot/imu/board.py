"""The IMU board on the servo bus (`imu_to_dxl` v2).

Source: pollen-robotics/microduck, which reads an ST LSM6DSV16X with its on-chip game rotation (gyroscope and
accelerometer, no magnetometer) as device 200: angular rate as three int16 at +-500 deg/s, then x, y and z of
the orientation as half floats, in the same 12 bytes from address 124 that a servo keeps its state in.

Samples are used as they come. A median of three would hide single spikes, but delays every sample by a tick
that the policy never met in training.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import radians, sqrt
from struct import Struct
from time import monotonic, sleep

import numpy as np

from firmware_bridge.robot.imu.sample import (
    ImuInvalidError,
    ImuNotStartedError,
    ImuSample,
    Mounting,
    Reading,
    in_own_axes,
)
from firmware_bridge.robot.imu.watch import OrientationWatch, RepeatWatch
from firmware_bridge.wire.bus import Bus
from firmware_bridge.wire.registers import Register
from hardware.calibration import IMU_BOARD_MOUNTING
from hardware.contract import CONTROL_PERIOD_S
from hardware.errors import DeviceError

BOARD_ID = 200
MODEL_NUMBER = 10200
RAD_PER_S_PER_COUNT = radians(0.0175)
"""Gyroscope unit at +-500 deg/s: 17.5 mdps."""
SAMPLE_ADDRESS = 124
SAMPLE_LENGTH = 12
_SAMPLE = Struct("<3h3e")
"""Angular rate x, y, z, then orientation x, y, z."""
SAMPLE_COUNTER = Register("sample_counter", 136, 2)
STATUS = Register("imu_status", 138, 1)
STATUS_GOOD = 3
STATUS_TEXT = {
    0: "no sensor chip found",
    1: "sensor present, orientation filter not running",
    STATUS_GOOD: "good",
    5: "orientation filter could not be set up",
}
MAX_SQUARED_NORM = 1.02
"""Largest x2 + y2 + z2 taken for a rounding error of half floats."""
LIVE_SAMPLES = 25
"""Orientations to see before the filter counts as settled, a quarter second at its 100 Hz."""
SAMPLE_PERIOD_S = 0.01
START_TIMEOUT_S = 3.0
"""Longest wait for the orientation filter [s]; it needs well below one."""


class BusImu:
    """The IMU board on a bus; an `Imu`, whose sample the body's read of the servos brings along.

    Args:
        bus: the bus.
        mounting: quaternion (w, x, y, z) that turns the board's vectors into the trunk frame.
        gyro_bias: what its gyroscope says at rest, in the board's axes, (3,) [rad/s].
    """

    def __init__(
        self,
        bus: Bus,
        mounting: Sequence[float] = IMU_BOARD_MOUNTING,
        gyro_bias: Sequence[float] = (0.0, 0.0, 0.0),
    ) -> None:
        self._bus = bus
        self._mounting = Mounting(mounting, gyro_bias)
        self._repeats = RepeatWatch()
        self._orientation = OrientationWatch(CONTROL_PERIOD_S)

    def check(self) -> None:
        """Prove that the board is there, and wait for its orientation filter.

        Raises:
            BusTimeoutError: nothing answers as id 200.
            DeviceError: another kind of device answers.
            ImuError: the filter did not start within 3 s, or the board reports a fault.
        """
        model, _ = self._bus.ping(BOARD_ID)
        if model != MODEL_NUMBER:
            raise DeviceError(
                f"id {BOARD_ID} is model {model}, but the IMU board is {MODEL_NUMBER}; "
                f"give the device that took id {BOARD_ID} its own id"
            )
        deadline = monotonic() + START_TIMEOUT_S
        live = 0
        while live < LIVE_SAMPLES:
            try:
                self._fetch()
                live += 1
            except ImuNotStartedError:
                live = 0
                if monotonic() >= deadline:
                    raise ImuNotStartedError(self._diagnosis()) from None
            sleep(SAMPLE_PERIOD_S)

    def read(self, deadline: float) -> ImuSample:
        """Ask the board alone, and return its sample.

        Raises:
            BusTimeoutError: it does not answer by the deadline [s, time.monotonic].
            ImuError: as for `decode`.
        """
        return self._mounting.sample(self._fetch(deadline))

    def raw(self) -> tuple[np.ndarray, np.ndarray]:
        """See `Imu.raw`; asks the board alone."""
        return in_own_axes(self._fetch())

    def close(self) -> None:
        """Do nothing: the bus belongs to whoever opened it."""

    def decode(self, data: bytes) -> ImuSample:
        """Return the sample that a block of 12 bytes holds.

        Raises:
            ImuNotStartedError: the orientation is all zero.
            ImuInvalidError: the orientation is not finite or too long.
            ImuFrozenError: this is the 25th identical block in a row, or a later one; or the orientation
                stands still while the gyroscope turns.
        """
        return self._mounting.sample(self._reading(data))

    def _fetch(self, deadline: float | None = None) -> Reading:
        blocks = self._bus.sync_read(SAMPLE_ADDRESS, SAMPLE_LENGTH, [BOARD_ID], deadline)
        return self._reading(blocks[BOARD_ID].data)

    def _reading(self, data: bytes) -> Reading:
        if not any(data[6:]):
            raise ImuNotStartedError("the IMU's orientation filter has not started; keep still and wait")
        self._repeats.watch(data)
        *counts, x, y, z = _SAMPLE.unpack(data)
        squared = x * x + y * y + z * z
        if not squared <= MAX_SQUARED_NORM:  # catches NaN too
            raise ImuInvalidError(
                f"the IMU sent the orientation (x, y, z) = {[x, y, z]}, which is none (finite, length "
                "at most 1); power the board off and on"
            )
        length = sqrt(max(1.0, squared))
        w = sqrt(max(0.0, 1.0 - squared))
        rate = [count * RAD_PER_S_PER_COUNT for count in counts]
        self._orientation.watch(data[6:], rate)
        return Reading(rate, (w, x / length, y / length, z / length))

    def _diagnosis(self) -> str:
        status = int(self._bus.read(BOARD_ID, STATUS))
        text = STATUS_TEXT.get(status, "unknown")
        return (
            f"the IMU's orientation filter did not start within {START_TIMEOUT_S:g} s; the board reports "
            f"status {status} ({text}). Keep the duck still, then power the board off and on"
        )
