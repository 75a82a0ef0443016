"""What every IMU gives and raises, and the one rotation of its mounting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from hardware import rotations
from hardware.calibration import IMU_BOARD_MOUNTING
from hardware.errors import ImuError


class ImuNotStartedError(ImuError):
    """The sensor answers, but gives no orientation: its filter has not started, or has stopped."""


class ImuInvalidError(ImuError):
    """The sensor sent what is no answer, or numbers that are no orientation."""


class ImuFrozenError(ImuError):
    """The sensor keeps sending the same sample, or the same orientation while it turns."""


class ImuSilentError(ImuError):
    """The sensor does not answer."""


class ImuStaleError(ImuError):
    """The newest sample is too old to act on."""


@dataclass(frozen=True)
class ImuSample:
    """One sample in the trunk frame (x forward, y left, z up).

    Attributes:
        angular_velocity: (3,) [rad/s].
        gravity: unit vector along gravity, (3,); (0, 0, -1) when upright.
    """

    angular_velocity: np.ndarray
    gravity: np.ndarray


class Reading(NamedTuple):
    """One reading in the sensor's own axes, before its bias is taken off.

    Attributes:
        rate: angular velocity, three numbers [rad/s].
        orientation: unit quaternion (w, x, y, z), sensor to world.
        inertial: the bytes of each inertial sensor in it. Noise changes them at every reading while the
            sensor lives, also at rest, where the orientation may well repeat.
    """

    rate: Sequence[float]
    orientation: Sequence[float]
    inertial: tuple[bytes, ...] = ()


class Imu(Protocol):
    """Something that feels how the trunk turns and where down is."""

    def check(self) -> None:
        """Prove that the right sensor is there and gives live samples; once, before anything else.

        Raises:
            BusError: it is absent or another one, or gives no live sample within a few seconds.
        """
        ...

    def read(self, deadline: float) -> ImuSample:
        """Return the newest sample, and never wait beyond the deadline [s, time.monotonic].

        Raises:
            BusError: there is none that may be acted on; an `ImuError` where the sensor is at fault.
        """
        ...

    def raw(self) -> tuple[np.ndarray, np.ndarray]:
        """Return angular velocity, (3,) [rad/s], and unit gravity, (3,), in the sensor's own axes.

        The gyroscope's bias is still in. For calibration; raises what `read` does.
        """
        ...

    def close(self) -> None:
        """Let go of the sensor."""
        ...


class Mounting:
    """How an IMU sits in the trunk: its gyroscope's bias is taken off, then one rotation turns all it says.

    Args:
        quaternion: turns the sensor's vectors into the trunk frame (w, x, y, z).
        gyro_bias: what the gyroscope says at rest, in the sensor's axes, (3,) [rad/s].
    """

    def __init__(
        self, quaternion: Sequence[float] = IMU_BOARD_MOUNTING, gyro_bias: Sequence[float] = (0.0, 0.0, 0.0)
    ) -> None:
        array = np.asarray(quaternion, dtype=np.float64)
        to_trunk = rotations.rotate(array / np.linalg.norm(array), np.eye(3)).T
        self._to_trunk: list[list[float]] = to_trunk.tolist()
        self._bias = tuple(gyro_bias)

    def sample(self, reading: Reading) -> ImuSample:
        """Return a reading in the trunk frame."""
        rate = [value - bias for value, bias in zip(reading.rate, self._bias, strict=True)]
        return ImuSample(
            self._in_trunk(rate), self._in_trunk(rotations.gravity_components(*reading.orientation))
        )

    def _in_trunk(self, vector: Sequence[float]) -> np.ndarray:
        x, y, z = vector
        return np.array([a * x + b * y + c * z for a, b, c in self._to_trunk])


def in_own_axes(reading: Reading) -> tuple[np.ndarray, np.ndarray]:
    """Return the angular velocity and the unit gravity of a reading, (3,) each, as `Imu.raw` does."""
    return np.array(reading.rate), np.array(rotations.gravity_components(*reading.orientation))
