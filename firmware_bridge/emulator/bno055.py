"""A BNO055: its register map, its operating modes and its orientation filter. No I/O.

Source: BST-BNO055-DS000 revision 1.8. Addresses and units are those of the driver, which the tests hold
against the data sheet.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import radians
from time import monotonic

import numpy as np

from firmware_bridge.emulator.imu_chip import IDENTITY, EmulatedImuChip, ImuFault
from firmware_bridge.robot.imu import bno055

_SIZE = 0x80
_SAMPLE_PERIOD_S = 0.01
_START_S = 0.1
"""Time from the change to a fusion mode to the first orientation [s]; the data sheet gives none."""
_RESET_S = 0.65
"""Time that it hears nothing after a reset [s] (1.2)."""
_NOISE_COUNTS = 1.6
"""Noise of the gyroscope: 0.014 deg/s/sqrt(Hz) over 32 Hz and half as much again (1.1), in 1/16 deg/s."""
_RESET_BIT, _RADIANS_BIT = 0x20, 0x02
_IDLE, _WITHOUT_FUSION = 0, 6
_SELF_TEST_PASSED = 0x0F
_CALIBRATED = 0b00111100
"""Gyroscope and accelerometer 3 of 3; without the magnetometer the system stays at 0."""
_IN_CONFIG_ONLY = (bno055.UNIT_SEL, bno055.AXIS_MAP_CONFIG, bno055.AXIS_MAP_SIGN)
_OTHER_CHIP = 0x55
_FUSION_MODES = range(0x08, 0x0D)


class EmulatedBno055(EmulatedImuChip):
    """A BNO055; see `EmulatedImuChip`.

    Attributes:
        memory: its registers on page 0.
        starts: whether its filter comes up in a fusion mode.
    """

    def __init__(
        self,
        mounting: Sequence[float] = IDENTITY,
        seed: int = 0,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        super().__init__(mounting, seed, clock)
        self.memory = bytearray(_SIZE)
        self.starts = True
        self._deaf_until = -1.0
        self._reset()

    def restart(self) -> None:
        """Lose its supply for a moment."""
        self._reset()
        self._deaf_until = self._clock() + _RESET_S

    def hears(self) -> bool:
        """Return whether a request reaches it."""
        return self.fault is not ImuFault.DISCONNECTED and self._clock() >= self._deaf_until

    def read(self, address: int, length: int) -> bytes:
        """Return registers from an address on."""
        self._refresh()
        data = bytearray(self.memory[address : address + length])
        if self.fault is ImuFault.WRONG_CHIP and address == bno055.REGISTER_CHIP_ID and data:
            data[0] = _OTHER_CHIP
        return bytes(data)

    def write(self, address: int, value: int) -> None:
        """Write one register."""
        if address == bno055.SYS_TRIGGER and value & _RESET_BIT:
            self.restart()
            return
        if address in _IN_CONFIG_ONLY and self._mode != bno055.CONFIG_MODE:
            return
        self.memory[address] = value
        if address == bno055.OPR_MODE:
            self._since, self._samples = self._clock(), -1
            self.memory[bno055.SYS_STATUS] = _IDLE if value == bno055.CONFIG_MODE else _WITHOUT_FUSION
            self._measured(bytes(bno055.SAMPLE.size))

    @property
    def _mode(self) -> int:
        return self.memory[bno055.OPR_MODE]

    def _reset(self) -> None:
        self.memory[:] = bytes(_SIZE)
        self.memory[bno055.REGISTER_CHIP_ID] = bno055.CHIP_ID
        self.memory[bno055.SELF_TEST] = _SELF_TEST_PASSED
        self.memory[bno055.UNIT_SEL] = 0x80
        self.memory[bno055.OPR_MODE] = bno055.CONFIG_MODE
        self.memory[bno055.CALIB_STAT] = _CALIBRATED
        self._since, self._samples = self._clock(), -1

    def _refresh(self) -> None:
        """Make a new sample if one is due."""
        samples = int((self._clock() - self._since) / _SAMPLE_PERIOD_S)
        if self._mode not in _FUSION_MODES or samples == self._samples or self.fault is ImuFault.FROZEN:
            return
        self._samples = samples
        radians_asked = self.memory[bno055.UNIT_SEL] & _RADIANS_BIT
        rate = self.noisy(self._rate, 1 / 900 if radians_asked else radians(1 / 16), _NOISE_COUNTS)
        orientation = bytes(self.memory[bno055.GYRO_DATA + 12 : bno055.GYRO_DATA + 20])
        if self.fault is not ImuFault.STUCK:
            orientation = self._fused()
        self._measured(rate + bytes(6) + orientation)

    def _fused(self) -> bytes:
        if not self.starts or self._clock() - self._since < _START_S:
            return bytes(8)
        self.memory[bno055.SYS_STATUS] = bno055.FUSING
        return np.rint(self._quaternion / bno055.PER_COUNT).astype("<i2").tobytes()

    def _measured(self, sample: bytes) -> None:
        self.memory[bno055.GYRO_DATA : bno055.GYRO_DATA + len(sample)] = sample
