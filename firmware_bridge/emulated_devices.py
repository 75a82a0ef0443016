"""Devices of the duck's bus as register memories: what they accept, refuse and answer. No I/O.

Source: ROBOTIS e-Manual, XL330-M288-T (factory values, access rules, error numbers).
"""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic

import numpy as np

from firmware_bridge import imu, registers
from firmware_bridge.protocol import ALERT_BIT
from firmware_bridge.registers import EEPROM_END, Register
from hardware import rotations, servo
from hardware.calibration import IMU_BOARD_MOUNTING

MEMORY_SIZE = 256
_DATA_RANGE, _DATA_LENGTH, _DATA_LIMIT, _ACCESS = 4, 5, 6, 7
_FIRMWARE = 52
_IMU_FIRMWARE = 2
_GYRO_NOISE_COUNTS = 1.1
"""Noise of a gyroscope sample: 2.8 mdps/sqrt(Hz), the LSM6DSV16X's, over 50 Hz, in counts of 17.5 mdps."""

_ROW_AT = {row.address: row for row in registers.TABLE}

_FACTORY_EEPROM: tuple[tuple[Register, int], ...] = (
    (registers.BAUD_RATE, 1),
    (registers.RETURN_DELAY, 250),
    (registers.OPERATING_MODE, registers.POSITION_MODE),
    (registers.TEMPERATURE_LIMIT, 70),
    (registers.MAX_VOLTAGE_LIMIT, 70),
    (registers.MIN_VOLTAGE_LIMIT, 35),
    (registers.PWM_LIMIT, 885),
    (registers.CURRENT_LIMIT, 1_750),
    (registers.MAX_POSITION_LIMIT, servo.COUNTS_PER_TURN - 1),
    (registers.MIN_POSITION_LIMIT, 0),
    (registers.PWM_SLOPE, 140),
    (registers.SHUTDOWN, 53),
)
_DUCK_EEPROM: tuple[tuple[Register, int], ...] = (
    (registers.BAUD_RATE, servo.BAUD_CODES[servo.BAUD]),
    (registers.RETURN_DELAY, 0),
    (registers.PWM_SLOPE, 255),
    (registers.SHUTDOWN, servo.SHUTDOWN_MASK),
)


class Device:
    """A device with a register memory.

    Attributes:
        id: its id; a write to the id register changes it.
        knows_fast_sync_read: whether it answers instruction 0x8A, as an XL330 does from firmware 46 on.
    """

    def __init__(self, device_id: int, model: int, firmware: int) -> None:
        self.memory = bytearray(MEMORY_SIZE)
        self.knows_fast_sync_read = True
        self._born = monotonic()
        self.poke(registers.MODEL_NUMBER, model)
        self.poke(registers.FIRMWARE_VERSION, firmware)
        self.poke(registers.ID, device_id)

    @property
    def id(self) -> int:
        """Id on the bus."""
        return self.memory[registers.ID.address]

    @property
    def alert(self) -> int:
        """Alert bit of the error byte, set while the device reports a hardware error."""
        return 0

    def peek(self, register: Register) -> int:
        """Return a register's count."""
        data = self.memory[register.address : register.address + register.width]
        return int.from_bytes(data, "little", signed=register.signed)

    def poke(self, register: Register, count: int) -> None:
        """Set a register's count, past every access rule."""
        data = int(count).to_bytes(register.width, "little", signed=register.signed)
        self.memory[register.address : register.address + register.width] = data

    def read(self, address: int, length: int) -> tuple[int, bytes]:
        """Return the error number and the bytes that a read brings."""
        if address + length > MEMORY_SIZE:
            return _ACCESS, b""
        self.refresh()
        return 0, bytes(self.memory[address : address + length])

    def write(self, address: int, data: bytes) -> int:
        """Take in a write and return its error number; this device can be written nowhere."""
        return _ACCESS

    def reboot(self) -> None:
        """Start anew."""
        self._born = monotonic()

    def refresh(self) -> None:
        """Bring registers that change by themselves up to date."""


class EmulatedServo(Device):
    """An XL330-M288 set up for the duck.

    Args:
        device_id: its id.
        factory: keep the settings it leaves the factory with.
    """

    def __init__(self, device_id: int, factory: bool = False) -> None:
        super().__init__(device_id, servo.MODEL_NUMBER, _FIRMWARE)
        for register, count in _FACTORY_EEPROM + (() if factory else _DUCK_EEPROM):
            self.poke(register, count)
        self.poke(registers.PRESENT_POSITION, servo.POSITION_CENTRE)
        self.poke(registers.PRESENT_INPUT_VOLTAGE, 74)
        self.poke(registers.PRESENT_TEMPERATURE, 30)
        self.reboot()

    @property
    def alert(self) -> int:
        """Alert bit, set while the hardware error status is not zero."""
        return ALERT_BIT if self.memory[registers.HARDWARE_ERROR.address] else 0

    @property
    def torque(self) -> bool:
        """Whether torque is on."""
        return bool(self.memory[registers.TORQUE_ENABLE.address])

    def trip(self, bits: int) -> None:
        """Report a hardware error, and switch torque off if the shutdown mask holds it."""
        self.poke(registers.HARDWARE_ERROR, bits)
        if self._tripped():
            self.poke(registers.TORQUE_ENABLE, 0)

    def write(self, address: int, data: bytes) -> int:
        """Take in a write and return its error number, 0 when accepted."""
        if address < EEPROM_END and self.torque:
            return _ACCESS
        start, end = address, address + len(data)
        while start < end:
            row = _ROW_AT.get(start)
            if row is None or row.limits is None:
                return _ACCESS
            if start + row.width > end:
                return _DATA_LENGTH
            error = self._range_error(row, data[start - address : start - address + row.width])
            if error:
                return error
            start += row.width
        self.memory[address:end] = data
        if self._tripped():
            self.poke(registers.TORQUE_ENABLE, 0)
        return 0

    def reboot(self) -> None:
        """Start anew: torque off, errors cleared, RAM registers at their factory values, goal = present."""
        super().reboot()
        self.memory[EEPROM_END : registers.GOAL_POSITION.address] = bytes(
            registers.GOAL_POSITION.address - EEPROM_END
        )
        self.poke(registers.POSITION_P_GAIN, 400)
        self.poke(registers.GOAL_PWM, self.peek(registers.PWM_LIMIT))
        self.poke(registers.GOAL_CURRENT, self.peek(registers.CURRENT_LIMIT))
        self.poke(registers.GOAL_POSITION, self.peek(registers.PRESENT_POSITION))

    def refresh(self) -> None:
        """Advance the servo's millisecond clock."""
        self.poke(registers.REALTIME_TICK, int((monotonic() - self._born) * 1000) % 32_768)

    def _tripped(self) -> bool:
        return bool(self.peek(registers.HARDWARE_ERROR) & self.peek(registers.SHUTDOWN))

    def _range_error(self, row: Register, data: bytes) -> int:
        count = int.from_bytes(data, "little", signed=row.signed)
        if row is registers.GOAL_POSITION:
            low, high = (self.peek(r) for r in (registers.MIN_POSITION_LIMIT, registers.MAX_POSITION_LIMIT))
            return 0 if low <= count <= high else _DATA_LIMIT
        low, high = row.limits or (0, 0)
        return 0 if low <= count <= high else _DATA_RANGE


class EmulatedImuBoard(Device):
    """The IMU board: a new noisy sample of the trunk's motion every 10 ms.

    Args:
        mounting: quaternion (w, x, y, z) from board axes to trunk axes.
        seed: seed of the noise.

    Attributes:
        started: whether the orientation filter runs.
        frozen: whether the sensor has stopped making new samples.
    """

    def __init__(self, mounting: Sequence[float] = IMU_BOARD_MOUNTING, seed: int = 0) -> None:
        super().__init__(imu.BOARD_ID, imu.MODEL_NUMBER, _IMU_FIRMWARE)
        self.started = True
        self.frozen = False
        self._mounting = np.asarray(mounting, dtype=np.float64)
        self._noise = np.random.default_rng(seed)
        self._samples = -1
        self.set_motion(np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]))

    def set_motion(self, angular_velocity: np.ndarray, quaternion: np.ndarray) -> None:
        """Set what the sensor feels.

        Args:
            angular_velocity: (3,) in the trunk frame [rad/s].
            quaternion: trunk to world (w, x, y, z).
        """
        rate = rotations.rotate_inverse(self._mounting, np.asarray(angular_velocity, dtype=np.float64))
        self._rate = rate / imu.RAD_PER_S_PER_COUNT
        board = rotations.multiply(np.asarray(quaternion, dtype=np.float64), self._mounting)
        # The receiver takes w for positive, and a quaternion and its negative are one orientation.
        self._axis = (-board[1:] if board[0] < 0 else board[1:]).astype("<f2").tobytes()

    def refresh(self) -> None:
        """Make a new sample if one is due."""
        samples = int((monotonic() - self._born) / imu.SAMPLE_PERIOD_S)
        if samples == self._samples or self.frozen:
            return
        self._samples = samples
        self.poke(imu.SAMPLE_COUNTER, samples % 65_536)
        self.poke(imu.STATUS, imu.STATUS_GOOD if self.started else 1)
        noisy = np.rint(self._rate + self._noise.normal(0.0, _GYRO_NOISE_COUNTS, 3))
        rate = np.clip(noisy, -32_768, 32_767).astype("<i2").tobytes()
        axis = self._axis if self.started else bytes(6)
        self.memory[imu.SAMPLE_ADDRESS : imu.SAMPLE_ADDRESS + imu.SAMPLE_LENGTH] = rate + axis
