"""The Bosch BNO055: gyroscope, accelerometer and an orientation filter on one chip.

Source of every register and number: its data sheet, BST-BNO055-DS000 revision 1.8, with the section. The chip
runs in its mode IMU, which fuses gyroscope and accelerometer at 100 Hz (3.3.3); the magnetometer stays out,
since servos and floors bend the field.
"""

from __future__ import annotations

from math import radians
from struct import Struct
from time import sleep
from typing import NamedTuple

from firmware_bridge.robot.imu.chip import Link, wait_until
from firmware_bridge.robot.imu.sample import ImuInvalidError, ImuNotStartedError, Reading
from hardware.errors import DeviceError

CHIP_ID = 0xA0
REGISTER_CHIP_ID, PAGE_ID, GYRO_DATA, CALIB_STAT, SELF_TEST = 0x00, 0x07, 0x14, 0x35, 0x36
SYS_STATUS, UNIT_SEL, OPR_MODE, PWR_MODE, SYS_TRIGGER = 0x39, 0x3B, 0x3D, 0x3E, 0x3F
AXIS_MAP_CONFIG, AXIS_MAP_SIGN = 0x41, 0x42
"""Addresses on page 0 (4.2.1)."""
CONFIG_MODE, IMU_MODE = 0x00, 0x08
"""Operating modes (3.3)."""
SAMPLE = Struct("<3h6x4h")
"""Angular rate x, y, z; the Euler angles, which are not used; orientation w, x, y, z (3.6.5)."""
RAD_PER_S_PER_COUNT = radians(1 / 16)
"""Gyroscope unit with `UNITS` (3.6.5)."""
PER_COUNT = 2.0**-14
"""Quaternion unit (3.6.5)."""
MOST_COUNTS = 2000 * 16
"""Largest rate: the gyroscope's range is +-2000 deg/s in every fusion mode (3.5)."""
MAX_NORM_ERROR = 0.02
"""Largest deviation of the squared norm from 1. Rounding makes 0.0001 of it; a register map read at the wrong
place, or nonsense on the line, about 1."""
FUSING = 5
"""System status while the orientation filter runs (4.3)."""
STATUS_TEXT = {
    0: "idle, as after a restart by itself",
    1: "system error",
    2: "setting up its peripherals",
    3: "setting itself up",
    4: "testing itself",
    FUSING: "orientation filter running",
    6: "running without orientation filter",
}
ERROR_TEXT = {
    0: "no error",
    1: "a peripheral did not start",
    2: "the system did not start",
    3: "the self-test failed",
    4: "a register value out of range",
    5: "a register address out of range",
    6: "a register could not be written",
    7: "no low-power mode in this operating mode",
    8: "no such power mode of the accelerometer",
    9: "the orientation filter could not be set up",
    10: "a sensor could not be set up",
}
"""System errors (4.3)."""
STATUS_READINGS = 25
"""Readings between two looks at the system status: a quarter second."""
TESTED = {0: "accelerometer", 2: "gyroscope", 3: "microcontroller"}
"""Bits of the power-on self-test that must be set (4.3); that of the magnetometer, 1, need not."""
UNITS = 0x00
"""Rates in deg/s, angles in degrees, acceleration in m/s2 (3.6.1)."""
_SETTINGS = ((PAGE_ID, 0), (PWR_MODE, 0), (UNIT_SEL, UNITS), (AXIS_MAP_CONFIG, 0x24), (AXIS_MAP_SIGN, 0))
"""Page 0, normal power, units, and the axes as printed on the chip (3.4): the mounting turns them."""
_TO_CONFIG_S, _FROM_CONFIG_S = 0.019, 0.007
"""Times that changes of the operating mode take (table 3-6) [s]."""
START_TIMEOUT_S = 3.0
"""Longest wait for the orientation filter [s]; the data sheet gives none, and a restart takes 0.65 (1.2)."""


class Calibration(NamedTuple):
    """How well the chip knows its own sensors, each from 0, not at all, to 3 (3.10)."""

    system: int
    gyroscope: int
    accelerometer: int


class Bno055:
    """A BNO055, a `Chip`.

    Args:
        link: to its registers.
    """

    def __init__(self, link: Link) -> None:
        self._link = link
        self._until_status = 0

    def start(self) -> None:
        """See `Chip.start`; a chip that learned its gyroscope's bias keeps it, since it is not restarted.

        Raises:
            DeviceError: it is no BNO055, or its self-test failed.
            ImuNotStartedError: its orientation filter does not run after 3 s.
            BusError: it does not answer.
        """
        self._identify()
        self._link.write(OPR_MODE, CONFIG_MODE)
        sleep(_TO_CONFIG_S)
        for register, value in _SETTINGS:
            self._link.write(register, value)
        self._link.write(OPR_MODE, IMU_MODE)
        sleep(_FROM_CONFIG_S)
        if not wait_until(lambda: self._status()[0] == FUSING, START_TIMEOUT_S):
            raise ImuNotStartedError(self._diagnosis())

    def read(self) -> Reading:
        """See `Chip.read`.

        Raises:
            ImuNotStartedError: the orientation is all zero, or the chip says that its filter does not run.
            ImuInvalidError: the numbers are no orientation or rate.
            BusError: it does not answer.
        """
        if self._until_status == 0 and self._status()[0] != FUSING:
            raise ImuNotStartedError(self._diagnosis())
        self._until_status = (self._until_status or STATUS_READINGS) - 1
        data = self._link.read(GYRO_DATA, SAMPLE.size)
        *counts, w, x, y, z = SAMPLE.unpack(data)
        if not (w or x or y or z):
            raise ImuNotStartedError(self._diagnosis())
        orientation = (w * PER_COUNT, x * PER_COUNT, y * PER_COUNT, z * PER_COUNT)
        norm = sum(part * part for part in orientation)
        if abs(norm - 1) > MAX_NORM_ERROR or max(map(abs, counts)) > MOST_COUNTS:
            raise ImuInvalidError(
                f"the BNO055 on {self._link.name} sent the rates {counts} and the orientation (w, x, y, z) = "
                f"{orientation}, which are none (at most {MOST_COUNTS} counts, norm 1); check its cable"
            )
        return Reading([count * RAD_PER_S_PER_COUNT for count in counts], orientation, (data[:6],))

    def calibration(self) -> Calibration:
        """Return how well the chip knows its own sensors."""
        (levels,) = self._link.read(CALIB_STAT, 1)
        return Calibration(levels >> 6, levels >> 4 & 3, levels >> 2 & 3)

    def advice(self) -> str | None:
        """See `Chip.advice`."""
        level = self.calibration().gyroscope
        if level == 3:
            return None
        return f"its gyroscope is calibrated {level} of 3: leave the duck still for a few seconds"

    def close(self) -> None:
        """See `Chip.close`; the chip fuses on, and keeps what it learned."""
        self._link.close()

    def _identify(self) -> None:
        (chip,) = self._link.read(REGISTER_CHIP_ID, 1)
        if chip != CHIP_ID:
            raise DeviceError(
                f"the chip on {self._link.name} has id {chip:#04x}, but a BNO055 has {CHIP_ID:#04x}; name "
                "the right kind, port or address in [imu]"
            )
        (passed,) = self._link.read(SELF_TEST, 1)
        failed = [part for bit, part in TESTED.items() if not passed >> bit & 1]
        if failed:
            raise DeviceError(
                f"the BNO055 on {self._link.name} failed its own test of {', '.join(failed)}; power it off "
                "and on, and replace it if it fails again"
            )

    def _status(self) -> tuple[int, int]:
        """Return system status and system error."""
        status, error = self._link.read(SYS_STATUS, 2)
        if status not in STATUS_TEXT:
            raise ImuInvalidError(
                f"the BNO055 on {self._link.name} sent status {status}, and {max(STATUS_TEXT)} is the "
                "largest; check its cable"
            )
        return status, error

    def _diagnosis(self) -> str:
        status, error = self._status()
        return (
            f"the BNO055 on {self._link.name} gives no orientation: status {status} "
            f"({STATUS_TEXT[status]}), error {error} ({ERROR_TEXT.get(error, 'unknown')}). "
            "Check its supply, and begin the drive again"
        )
