"""The IMU board on the servo bus (`imu_to_dxl` v2): angular velocity and gravity in the trunk frame.

Source: pollen-robotics/microduck, which reads an ST LSM6DSV16X with its on-chip game rotation (gyroscope and
accelerometer, no magnetometer) as device 200: angular rate as three int16 at +-500 deg/s, then x, y and z of
the orientation as half floats, in the same 12 bytes from address 124 that a servo keeps its state in.

Samples are used as they come. A median of three would hide single spikes, but delays every sample by a tick
that the policy never met in training.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import radians, sqrt
from struct import Struct
from time import monotonic, sleep

import numpy as np

from firmware_bridge.wire.bus import Bus
from firmware_bridge.wire.registers import Register
from hardware import rotations
from hardware.calibration import IMU_BOARD_MOUNTING
from hardware.contract import CONTROL_PERIOD_S
from hardware.errors import DeviceError, ImuError

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
FROZEN_SAMPLES = 25
"""Identical samples in a row, half a second of ticks, that show a dead chip; a live one is never so quiet."""
STUCK_TURN = 0.15
"""Turn by the gyroscope, within about `FROZEN_SAMPLES` of one orientation, that shows a dead filter [rad].
Half floats tell a turn of 0.002 rad, or of 0.09 near the heading opposite to that of power-up; the drift of a
gyroscope at rest is below 0.01 in that time."""
STUCK_SAMPLES = 5
"""Repeats of an orientation below which it is late rather than dead, also in a fast turn [1]."""
LIVE_SAMPLES = 25
"""Orientations to see before the filter counts as settled, a quarter second at its 100 Hz."""
SAMPLE_PERIOD_S = 0.01
START_TIMEOUT_S = 3.0
"""Longest wait for the orientation filter [s]; it needs well below one."""


class ImuNotStartedError(ImuError):
    """The board answers, but its orientation filter has produced nothing yet."""


class ImuInvalidError(ImuError):
    """The board sent numbers that are no orientation."""


class ImuFrozenError(ImuError):
    """The board keeps sending the same sample, or the same orientation while it turns."""


@dataclass(frozen=True)
class ImuSample:
    """One sample in the trunk frame (x forward, y left, z up).

    Attributes:
        angular_velocity: (3,) [rad/s].
        gravity: unit vector along gravity, (3,); (0, 0, -1) when upright.
    """

    angular_velocity: np.ndarray
    gravity: np.ndarray


class BusImu:
    """The IMU board on a bus.

    Args:
        bus: the bus.
        mounting: quaternion (w, x, y, z) that turns the board's vectors into the trunk frame.
    """

    def __init__(self, bus: Bus, mounting: Sequence[float] = IMU_BOARD_MOUNTING) -> None:
        self._bus = bus
        quaternion = np.asarray(mounting, dtype=np.float64)
        to_trunk = rotations.rotate(quaternion / np.linalg.norm(quaternion), np.eye(3)).T
        self._to_trunk: list[list[float]] = to_trunk.tolist()
        self._last = b""
        self._repeats = 0
        self._axis = b""
        self._still = 0
        self._turn = np.zeros(3)
        self._stuck = False

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
            block = self._bus.sync_read(SAMPLE_ADDRESS, SAMPLE_LENGTH, [BOARD_ID])[BOARD_ID]
            try:
                self.decode(block.data)
                live += 1
            except ImuNotStartedError:
                live = 0
                if monotonic() >= deadline:
                    raise ImuNotStartedError(self._diagnosis()) from None
            sleep(SAMPLE_PERIOD_S)

    def decode(self, data: bytes) -> ImuSample:
        """Return the sample that a block of 12 bytes holds.

        Raises:
            ImuNotStartedError: the orientation is all zero.
            ImuInvalidError: the orientation is not finite or too long.
            ImuFrozenError: this is the 25th identical block in a row, or a later one; or the orientation
                stands still while the gyroscope turns.
        """
        self._watch(data)
        if not any(data[6:]):
            raise ImuNotStartedError("the IMU's orientation filter has not started; keep still and wait")
        *rate, x, y, z = _SAMPLE.unpack(data)
        squared = x * x + y * y + z * z
        if not squared <= MAX_SQUARED_NORM:  # catches NaN too
            raise ImuInvalidError(
                f"the IMU sent the orientation (x, y, z) = {[x, y, z]}, which is none (finite, length "
                "at most 1); power the board off and on"
            )
        length = sqrt(max(1.0, squared))
        w = sqrt(max(0.0, 1.0 - squared))
        gravity = rotations.gravity_components(w, x / length, y / length, z / length)
        angular_velocity = self._in_trunk([count * RAD_PER_S_PER_COUNT for count in rate])
        self._watch_turn(data[6:], angular_velocity)
        return ImuSample(angular_velocity, self._in_trunk(gravity))

    def _in_trunk(self, vector: Sequence[float]) -> np.ndarray:
        x, y, z = vector
        return np.array([a * x + b * y + c * z for a, b, c in self._to_trunk])

    def _watch(self, data: bytes) -> None:
        self._repeats = self._repeats + 1 if data == self._last else 1
        self._last = data
        if self._repeats >= FROZEN_SAMPLES and any(data[6:]):
            raise ImuFrozenError(
                f"the IMU sent the same sample {self._repeats} times in a row; stop, and power it off and on"
            )

    def _watch_turn(self, axis: bytes, angular_velocity: np.ndarray) -> None:
        if axis != self._axis:
            self._axis, self._still, self._turn, self._stuck = axis, 0, np.zeros(3), False
            return
        self._still += 1
        # What turned long ago fades, so that drift does not add up.
        self._turn = self._turn * (1 - 1 / FROZEN_SAMPLES) + angular_velocity * CONTROL_PERIOD_S
        turned = bool(np.linalg.norm(self._turn) > STUCK_TURN)
        self._stuck = self._stuck or (turned and self._still >= STUCK_SAMPLES)
        if self._stuck:
            raise ImuFrozenError(
                f"the IMU's gyroscope turned by {STUCK_TURN:g} rad while its orientation stood still; stop, "
                "and power it off and on"
            )

    def _diagnosis(self) -> str:
        status = int(self._bus.read(BOARD_ID, STATUS))
        text = STATUS_TEXT.get(status, "unknown")
        return (
            f"the IMU's orientation filter did not start within {START_TIMEOUT_S:g} s; the board reports "
            f"status {status} ({text}). Keep the duck still, then power the board off and on"
        )
