"""What every emulated sensor chip has: a motion that it feels, noise, and faults. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from time import monotonic

import numpy as np

from hardware import rotations

IDENTITY = (1.0, 0.0, 0.0, 0.0)


class ImuFault(Enum):
    """What may go wrong with a sensor."""

    DISCONNECTED = "disconnected"
    """It neither hears nor answers."""
    GARBAGE = "garbage"
    """Every answer is nonsense of the right length."""
    STUCK = "stuck"
    """Its gyroscope goes on, but what else it measures stands still."""
    FROZEN = "frozen"
    """Every measurement stands still, and it answers as if all were well."""
    WRONG_CHIP = "wrong chip"
    """Another chip is in its place."""


class EmulatedImuChip:
    """A sensor in a trunk that moves.

    Args:
        mounting: quaternion (w, x, y, z) from sensor axes to trunk axes.
        seed: seed of the noise.
        clock: time base [s].

    Attributes:
        fault: what is wrong with it, None while all is well.
        noise: where all its randomness comes from.
    """

    def __init__(
        self,
        mounting: Sequence[float] = IDENTITY,
        seed: int = 0,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.fault: ImuFault | None = None
        self.noise = np.random.default_rng(seed)
        self._clock = clock
        self._mounting = np.asarray(mounting, dtype=np.float64)
        self.set_motion(np.zeros(3), np.array(IDENTITY))

    def set_motion(self, angular_velocity: np.ndarray, quaternion: np.ndarray) -> None:
        """Set what the sensor feels.

        Args:
            angular_velocity: (3,) in the trunk frame [rad/s].
            quaternion: trunk to world (w, x, y, z).
        """
        self._rate = rotations.rotate_inverse(self._mounting, np.asarray(angular_velocity, dtype=np.float64))
        self._quaternion = rotations.multiply(np.asarray(quaternion, dtype=np.float64), self._mounting)

    def noisy(self, values: np.ndarray, per_count: float, deviation: float) -> bytes:
        """Return values as int16 counts of a unit, after adding noise of a standard deviation [counts]."""
        counts = np.rint(values / per_count + self.noise.normal(0.0, deviation, len(values)))
        return np.clip(counts, -32_768, 32_767).astype("<i2").tobytes()

    def spoilt(self, data: bytes) -> bytes:
        """Return what arrives in place of an answer."""
        return self.noise.bytes(len(data)) if self.fault is ImuFault.GARBAGE else data
