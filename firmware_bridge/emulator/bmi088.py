"""A BMI088: accelerometer and gyroscope, each with registers of its own, in one trunk. No I/O.

Source: BST-BMI088-DS001 revision 1.3. Addresses are those of the driver, which the tests hold against the
data sheet.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import radians
from time import monotonic

from firmware_bridge.emulator.imu_chip import IDENTITY, EmulatedImuChip, ImuFault
from firmware_bridge.robot.imu import bmi088
from hardware import rotations

_SIZE = 0x80
_POWER_S = 0.05
_GYROSCOPE_RESET_S = 0.03
_RANGE_G = {0: 3.0, 1: 6.0, 2: 12.0, 3: 24.0}
_RANGE_DPS = {0: 2000.0, 1: 1000.0, 2: 500.0, 3: 250.0, 4: 125.0}
_ACC_NOISE_G, _GYRO_NOISE_DPS = 1.3e-3, 0.12
"""Noise: 0.16 mg/sqrt(Hz) over 38 Hz and half as much again, 0.014 deg/s/sqrt(Hz) over 47 Hz and so (1)."""
_SUSPENDED = 0x03
_OTHER_CHIP = 0x55


class EmulatedBmi088(EmulatedImuChip):
    """A BMI088; see `EmulatedImuChip`.

    Attributes:
        accelerometer: what answers at the one address.
        gyroscope: what answers at the other.
    """

    def __init__(
        self,
        mounting: Sequence[float] = IDENTITY,
        seed: int = 0,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        super().__init__(mounting, seed, clock)
        self.accelerometer = _Accelerometer(self, clock)
        self.gyroscope = _Gyroscope(self, clock)

    def restart(self) -> None:
        """Lose its supply for a moment."""
        self.accelerometer.reset()
        self.gyroscope.reset()

    def felt(self, range_g: float) -> bytes:
        """Return what the accelerometer measures at rest: the support of the trunk, against gravity."""
        support = -rotations.projected_gravity(self._quaternion)
        per_count = range_g / 32_768
        return self.noisy(support, per_count, _ACC_NOISE_G / per_count)

    def turned(self, range_dps: float) -> bytes:
        """Return what the gyroscope measures."""
        per_count = radians(range_dps / 32_768)
        return self.noisy(self._rate, per_count, radians(_GYRO_NOISE_DPS) / per_count)


class _Part:
    """One of the two sensors."""

    def __init__(self, whole: EmulatedBmi088, clock: Callable[[], float]) -> None:
        self._whole, self._clock = whole, clock
        self.memory = bytearray(_SIZE)
        self.reset()

    def reset(self) -> None:
        """Start anew."""
        self.memory[:] = bytes(_SIZE)
        self._since = self._clock()

    def hears(self) -> bool:
        """Return whether a request reaches it."""
        return self._whole.fault is not ImuFault.DISCONNECTED

    def spoilt(self, data: bytes) -> bytes:
        """Return what arrives in place of an answer."""
        return self._whole.spoilt(data)

    def _answer(self, address: int, length: int) -> bytes:
        data = bytearray(self.memory[address : address + length])
        if self._whole.fault is ImuFault.WRONG_CHIP and address == bmi088.CHIP_ID:
            data[0] = _OTHER_CHIP
        return bytes(data)

    def _keep(self, address: int, data: bytes) -> None:
        self.memory[address : address + len(data)] = data


class _Accelerometer(_Part):
    """The accelerometer, which is suspended after a reset."""

    def reset(self) -> None:
        """See `_Part.reset`."""
        super().reset()
        self.memory[bmi088.CHIP_ID] = bmi088.ACCELEROMETER_ID
        self.memory[bmi088.ACC_PWR_CONF] = _SUSPENDED
        self.memory[bmi088.ACC_RANGE] = 1

    def read(self, address: int, length: int) -> bytes:
        """Return registers from an address on."""
        still = self._whole.fault in (ImuFault.FROZEN, ImuFault.STUCK)
        if self._on and not still:
            self.memory[bmi088.ACC_STATUS] = bmi088.READY
            self._keep(bmi088.ACC_DATA, self._whole.felt(_RANGE_G[self.memory[bmi088.ACC_RANGE]]))
        return self._answer(address, length)

    def write(self, address: int, value: int) -> None:
        """Write one register."""
        if address == bmi088.ACC_SOFTRESET and value == bmi088.RESET_COMMAND:
            self.reset()
            return
        self.memory[address] = value
        if address == bmi088.ACC_PWR_CTRL:
            self._since = self._clock()

    @property
    def _on(self) -> bool:
        active = self.memory[bmi088.ACC_PWR_CONF] != _SUSPENDED
        powered = self.memory[bmi088.ACC_PWR_CTRL] == 0x04
        return active and powered and self._clock() - self._since >= _POWER_S


class _Gyroscope(_Part):
    """The gyroscope, which measures by itself after a reset."""

    def reset(self) -> None:
        """See `_Part.reset`."""
        super().reset()
        self.memory[bmi088.CHIP_ID] = bmi088.GYROSCOPE_ID

    def read(self, address: int, length: int) -> bytes:
        """Return registers from an address on."""
        started = self._clock() - self._since >= _GYROSCOPE_RESET_S
        if started and self._whole.fault is not ImuFault.FROZEN:
            self.memory[bmi088.GYRO_STATUS] = bmi088.READY
            self._keep(bmi088.GYRO_DATA, self._whole.turned(_RANGE_DPS[self.memory[bmi088.GYRO_RANGE]]))
        return self._answer(address, length)

    def write(self, address: int, value: int) -> None:
        """Write one register."""
        if address == bmi088.GYRO_SOFTRESET and value == bmi088.RESET_COMMAND:
            self.reset()
            return
        self.memory[address] = value
