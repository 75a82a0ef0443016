"""The servo and the IMU board of the duck's bus: what they accept, refuse, answer and do alone. No I/O.

Sources: ROBOTIS e-Manual, XL330-M288-T (factory values, access rules, error numbers, shutdown, bus watchdog,
homing offset); pollen-robotics/microduck (IMU board; gains lost with a change of the operating mode).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic

import numpy as np

from firmware_bridge.emulator.device import ACCESS_ERROR, Device
from firmware_bridge.robot import imu
from firmware_bridge.wire import registers
from firmware_bridge.wire.protocol import ALERT_BIT
from firmware_bridge.wire.registers import EEPROM_END, Register
from hardware import rotations, servo
from hardware.calibration import IMU_BOARD_MOUNTING

WATCHDOG_TRIPPED = 255
"""What the bus watchdog reads, -1 as a byte, after it stopped the servo."""
MAX_HOMING_OFFSET = 1024
"""Largest homing offset in counts, either way, that position mode heeds; it ignores one beyond."""
INPUT_VOLTAGE, OVERHEATING = 0x01, 0x04
"""Bits of the hardware error status that a servo sets from what it measures."""
_DATA_RANGE, _DATA_LENGTH, _DATA_LIMIT = 4, 5, 6
_FIRMWARE = 52
_IMU_FIRMWARE = 2
_VOLTS_MEASURED = 70
"""7.0 V, the most a servo finds no fault with; a charged pack is above, so a real duck's servos alert."""
_GYRO_NOISE_COUNTS = 1.1
"""Noise of a gyroscope sample: 2.8 mdps/sqrt(Hz), the LSM6DSV16X's, over 50 Hz, in counts of 17.5 mdps."""

_WATCHDOG = registers.BUS_WATCHDOG.address
_JUDGED_BY = tuple(
    (first.address, last.address + last.width)
    for first, last in (
        (registers.TEMPERATURE_LIMIT, registers.MIN_VOLTAGE_LIMIT),
        (registers.HARDWARE_ERROR, registers.HARDWARE_ERROR),
        (registers.PRESENT_INPUT_VOLTAGE, registers.PRESENT_TEMPERATURE),
    )
)
_ROW_AT = {row.address: row for row in registers.TABLE}
_GOALS = (registers.GOAL_PWM, registers.GOAL_CURRENT, registers.GOAL_VELOCITY, registers.GOAL_POSITION)
"""Registers that cannot be written after the bus watchdog stopped the servo."""
_LIMITED_BY = {registers.GOAL_PWM: registers.PWM_LIMIT, registers.GOAL_CURRENT: registers.CURRENT_LIMIT}

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
_GAINS: tuple[tuple[Register, int], ...] = (
    (registers.POSITION_D_GAIN, 0),
    (registers.POSITION_I_GAIN, 0),
    (registers.POSITION_P_GAIN, 400),
)
"""Gains after a restart and after a change of the operating mode."""


class EmulatedServo(Device):
    """An XL330-M288 set up for the duck.

    Args:
        device_id: its id.
        factory: keep the settings it leaves the factory with.
        clock: time base [s].
    """

    def __init__(self, device_id: int, factory: bool = False, clock: Callable[[], float] = monotonic) -> None:
        super().__init__(device_id, servo.MODEL_NUMBER, _FIRMWARE, clock)
        self._judged = b""
        for register, count in _FACTORY_EEPROM + (() if factory else _DUCK_EEPROM):
            self.poke(register, count)
        self.poke(registers.PRESENT_POSITION, servo.POSITION_CENTRE)
        self.poke(registers.PRESENT_INPUT_VOLTAGE, _VOLTS_MEASURED)
        self.poke(registers.PRESENT_TEMPERATURE, 30)
        self._reset_ram()

    @property
    def alert(self) -> int:
        """Alert bit, set while the hardware error status is not zero."""
        return ALERT_BIT if self.memory[registers.HARDWARE_ERROR.address] else 0

    @property
    def torque(self) -> bool:
        """Whether its motor is driven: torque is on, the bus watchdog has not tripped, and there is power."""
        self.refresh()
        return self.powered and self._torque_enabled and not self._stopped

    @property
    def offset(self) -> int:
        """Counts that the homing offset adds to the real position."""
        count = self.peek(registers.HOMING_OFFSET)
        return count if abs(count) <= MAX_HOMING_OFFSET else 0

    def trip(self, bits: int) -> None:
        """Report a hardware error, and switch torque off if the shutdown mask holds it."""
        self.poke(registers.HARDWARE_ERROR, bits)
        self._stay_limp_if_tripped()

    def poke(self, register: Register, count: int) -> None:
        """See `Device.poke`; a new homing offset shows in the present position."""
        if register is not registers.HOMING_OFFSET:
            super().poke(register, count)
            return
        before = self.offset
        super().poke(register, count)
        self._shift(before)

    def hear(self) -> None:
        """See `Device.hear`; the bus watchdog has its chance first."""
        self.refresh()
        super().hear()

    def write(self, address: int, data: bytes) -> int:
        """See `Device.write`. A write to the EEPROM makes the servo deaf for `eeprom_write_s`."""
        stored = address < EEPROM_END
        if stored and self._torque_enabled:
            return ACCESS_ERROR
        rows = self._rows(address, len(data))
        if isinstance(rows, int):
            return rows
        for row in rows:
            start = row.address - address
            error = self._value_error(row, data[start : start + row.width])
            if error:
                return error
        before = self.offset
        self.memory[address : address + len(data)] = data
        self._shift(before)
        if registers.OPERATING_MODE in rows:
            self._reset_gains()
        if stored:
            self.eeprom_writes += 1
            self._deaf_until = self._clock() + self.eeprom_write_s
        self._stay_limp_if_tripped()
        return 0

    def reboot(self, ago_s: float = 0.0) -> None:
        """Start anew: torque off, errors cleared, RAM registers at their factory values, goal = present."""
        super().reboot(ago_s)
        self._reset_ram()

    def refresh(self) -> None:
        """Advance the millisecond clock, let the bus watchdog trip, and report what is out of its limits.

        A hardware error stays until the next restart.
        """
        super().refresh()
        now = self._clock()
        self.poke(registers.REALTIME_TICK, int((now - self._born) * 1000) % 32_768)
        limit = self.memory[_WATCHDOG] * servo.SECONDS_PER_WATCHDOG_COUNT
        armed = self._torque_enabled and limit > 0 and not self._stopped
        if armed and now - self._heard > limit:
            self._stop()
        if (state := self._judged_by()) != self._judged:
            known = self.memory[registers.HARDWARE_ERROR.address]
            if errors := self._measured_errors() & ~known:
                self.trip(known | errors)
            self._judged = self._judged_by() if errors else state

    @property
    def _torque_enabled(self) -> bool:
        return bool(self.memory[registers.TORQUE_ENABLE.address])

    @property
    def _stopped(self) -> bool:
        return self.memory[_WATCHDOG] == WATCHDOG_TRIPPED

    def _reset_ram(self) -> None:
        start, end = EEPROM_END, registers.GOAL_POSITION.address
        self.memory[start:end] = bytes(end - start)
        self._reset_gains()
        self.poke(registers.GOAL_PWM, self.peek(registers.PWM_LIMIT))
        self.poke(registers.GOAL_CURRENT, self.peek(registers.CURRENT_LIMIT))
        self._hold_present()

    def _reset_gains(self) -> None:
        for register, count in _GAINS:
            self.poke(register, count)

    def _hold_present(self) -> None:
        self.poke(registers.GOAL_POSITION, self.peek(registers.PRESENT_POSITION))

    def _shift(self, before: int) -> None:
        """Move the present position by what the homing offset changed."""
        if self.offset != before:
            self.poke(
                registers.PRESENT_POSITION, self.peek(registers.PRESENT_POSITION) + self.offset - before
            )

    def _stop(self) -> None:
        """Do what the manual says of a bus watchdog that has tripped."""
        self.memory[_WATCHDOG] = WATCHDOG_TRIPPED
        self.poke(registers.PROFILE_ACCELERATION, 0)
        self.poke(registers.PROFILE_VELOCITY, 0)
        self._hold_present()

    def _judged_by(self) -> bytes:
        """Return the bytes that errors follow from; they are worked out only when one of these changes."""
        return b"".join(self.memory[first:end] for first, end in _JUDGED_BY)

    def _measured_errors(self) -> int:
        hot = self.peek(registers.PRESENT_TEMPERATURE) > self.peek(registers.TEMPERATURE_LIMIT)
        lowest, highest = (self.peek(r) for r in (registers.MIN_VOLTAGE_LIMIT, registers.MAX_VOLTAGE_LIMIT))
        fed = lowest <= self.peek(registers.PRESENT_INPUT_VOLTAGE) <= highest
        return OVERHEATING * hot | INPUT_VOLTAGE * (not fed)

    def _stay_limp_if_tripped(self) -> None:
        if self.peek(registers.HARDWARE_ERROR) & self.peek(registers.SHUTDOWN):
            self.poke(registers.TORQUE_ENABLE, 0)

    @staticmethod
    def _rows(address: int, length: int) -> list[Register] | int:
        """Return the rows that a write covers, or the error number of one that it must not."""
        rows: list[Register] = []
        start, end = address, address + length
        while start < end:
            row = _ROW_AT.get(start)
            if row is None or row.limits is None:
                return ACCESS_ERROR
            if start + row.width > end:
                return _DATA_LENGTH
            rows.append(row)
            start += row.width
        return rows

    def _value_error(self, row: Register, data: bytes) -> int:
        """Return the error number of a value that a row does not take, else 0."""
        count = int.from_bytes(data, "little", signed=row.signed)
        low, high = row.limits or (0, 0)
        if self._stopped and (row in _GOALS or (row is registers.BUS_WATCHDOG and count)):
            return _DATA_RANGE
        if row is registers.GOAL_POSITION:
            low, high = (self.peek(r) for r in (registers.MIN_POSITION_LIMIT, registers.MAX_POSITION_LIMIT))
            return 0 if low <= count <= high else _DATA_LIMIT
        if row in _LIMITED_BY and low <= count <= high:
            return 0 if abs(count) <= self.peek(_LIMITED_BY[row]) else _DATA_LIMIT
        return 0 if low <= count <= high else _DATA_RANGE


class EmulatedImuBoard(Device):
    """The IMU board: a new noisy sample of the trunk's motion every 10 ms.

    Args:
        mounting: quaternion (w, x, y, z) from board axes to trunk axes.
        seed: seed of the noise.
        clock: time base [s].
        gyro_bias: what the gyroscope says at rest, about the board's axes, (3,) [rad/s].

    Attributes:
        started: whether the orientation filter runs.
        frozen: whether the sensor has stopped making new samples.
        stuck: whether the orientation has stopped while the gyroscope goes on.
    """

    def __init__(
        self,
        mounting: Sequence[float] = IMU_BOARD_MOUNTING,
        seed: int = 0,
        clock: Callable[[], float] = monotonic,
        gyro_bias: Sequence[float] = (0.0, 0.0, 0.0),
    ) -> None:
        super().__init__(imu.BOARD_ID, imu.MODEL_NUMBER, _IMU_FIRMWARE, clock)
        self.started = True
        self.frozen = False
        self.stuck = False
        self._mounting = np.asarray(mounting, dtype=np.float64)
        self._bias = np.asarray(gyro_bias, dtype=np.float64)
        self._noise = np.random.default_rng(seed)
        self._samples = -1
        self._said = bytes(6)
        self.set_motion(np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]))

    def set_motion(self, angular_velocity: np.ndarray, quaternion: np.ndarray) -> None:
        """Set what the sensor feels.

        Args:
            angular_velocity: (3,) in the trunk frame [rad/s].
            quaternion: trunk to world (w, x, y, z).
        """
        rate = rotations.rotate_inverse(self._mounting, np.asarray(angular_velocity, dtype=np.float64))
        self._rate = (rate + self._bias) / imu.RAD_PER_S_PER_COUNT
        board = rotations.multiply(np.asarray(quaternion, dtype=np.float64), self._mounting)
        # The receiver takes w for positive, and a quaternion and its negative are one orientation.
        self._axis = (-board[1:] if board[0] < 0 else board[1:]).astype("<f2").tobytes()

    def reboot(self, ago_s: float = 0.0) -> None:
        """Start anew, with the sample counter at zero."""
        super().reboot(ago_s)
        self._samples = -1

    def refresh(self) -> None:
        """Make a new sample if one is due."""
        super().refresh()
        samples = int((self._clock() - self._born) / imu.SAMPLE_PERIOD_S)
        if samples == self._samples or self.frozen:
            return
        self._samples = samples
        self.poke(imu.SAMPLE_COUNTER, samples % 65_536)
        self.poke(imu.STATUS, imu.STATUS_GOOD if self.started else 1)
        noisy = np.rint(self._rate + self._noise.normal(0.0, _GYRO_NOISE_COUNTS, 3))
        rate = np.clip(noisy, -32_768, 32_767).astype("<i2").tobytes()
        if not self.stuck:
            self._said = self._axis
        axis = self._said if self.started else bytes(6)
        self.memory[imu.SAMPLE_ADDRESS : imu.SAMPLE_ADDRESS + imu.SAMPLE_LENGTH] = rate + axis
