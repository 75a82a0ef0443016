"""The Bosch BMI088: a gyroscope and an accelerometer with an I2C address each, and no filter of its own.

Source of every register and number: its data sheet, BST-BMI088-DS001 revision 1.3, with the section.
"""

from __future__ import annotations

from math import radians, sqrt
from struct import Struct
from time import monotonic, sleep

from firmware_bridge.robot.imu.chip import Link, wait_until
from firmware_bridge.robot.imu.fusion import Fusion
from firmware_bridge.robot.imu.sample import ImuInvalidError, ImuNotStartedError, Reading
from hardware.errors import DeviceError

CHIP_ID = 0x00
ACCELEROMETER_ID, GYROSCOPE_ID = 0x1E, 0x0F
"""Registers of the chip ids and what they hold (5.3.1, 5.5.1)."""
RESET_COMMAND = 0xB6
ACC_ERROR, ACC_STATUS, ACC_DATA, ACC_CONF, ACC_RANGE = 0x02, 0x03, 0x12, 0x40, 0x41
ACC_PWR_CONF, ACC_PWR_CTRL, ACC_SOFTRESET = 0x7C, 0x7D, 0x7E
GYRO_DATA, GYRO_STATUS, GYRO_RANGE, GYRO_BANDWIDTH, GYRO_SOFTRESET = 0x02, 0x0A, 0x0F, 0x10, 0x14
READY = 0x80
"""Bit of either status register that says that a new measurement is there (5.3.3, 5.5.3)."""
TRIPLE = Struct("<3h")
"""x, y, z of either sensor (5.3.4, 5.5.2)."""
ACC_BLOCK, GYRO_BLOCK = ACC_DATA + TRIPLE.size, GYRO_DATA + TRIPLE.size
"""Bytes of a reading, which begins at the chip id: I2C has no checksum, and noise on the wires would pass for
a measurement but for that."""
ACC_RANGE_6_G, G_PER_COUNT = 0x01, 6 / 32_768
"""+-6 g: a foot that strikes is felt in the trunk with two or three (5.3)."""
GYRO_RANGE_1000, RAD_PER_S_PER_COUNT = 0x01, radians(1000 / 32_768)
"""+-1000 deg/s, 17 rad/s, twice what a duck that falls reaches (5.5)."""
ACC_200_HZ_OSR2 = 0x99
"""200 Hz, filtered to 38 Hz, below half of the 100 Hz at which it is read (5.3, 4.4)."""
GYRO_400_HZ_47_HZ = 0x03
"""400 Hz, filtered to 47 Hz, for the same reason (5.5)."""
ACC_RESET_S, GYRO_RESET_S, ACC_POWER_S = 0.001, 0.030, 0.050
"""Waits after a soft reset of either sensor and after the accelerometer's power (4.8, 5.5, 3) [s]."""
READY_TIMEOUT_S = 1.0
"""Longest wait for the first measurement [s]; it needs a few hundredths."""


class Bmi088:
    """A BMI088, a `Chip`.

    Args:
        accelerometer: link to the one sensor's registers.
        gyroscope: link to the other's.
        fusion: the orientation filter.
    """

    def __init__(self, accelerometer: Link, gyroscope: Link, fusion: Fusion) -> None:
        self._accelerometer, self._gyroscope, self._fusion = accelerometer, gyroscope, fusion
        self._last_s: float | None = None

    def start(self) -> None:
        """See `Chip.start`.

        Raises:
            DeviceError: one of both is another chip, or the accelerometer reports an error.
            ImuNotStartedError: one of both measures nothing within 1 s.
            BusError: one of both does not answer.
        """
        _identify(self._accelerometer, ACCELEROMETER_ID, "accelerometer")
        _identify(self._gyroscope, GYROSCOPE_ID, "gyroscope")
        self._start_accelerometer()
        self._start_gyroscope()
        _await_data(self._accelerometer, ACC_STATUS, "accelerometer")
        _await_data(self._gyroscope, GYRO_STATUS, "gyroscope")
        (error,) = self._accelerometer.read(ACC_ERROR, 1)
        if error:
            raise DeviceError(
                f"the BMI088's accelerometer on {self._accelerometer.name} reports error {error:#04x} in "
                "place of 0; power it off and on, and replace it if that stays"
            )

    def read(self) -> Reading:
        """See `Chip.read`.

        Raises:
            ImuNotStartedError: the accelerometer says zero, as one without power does.
            ImuInvalidError: what came is not of these chips, or the filter gives no orientation.
            BusError: one of both sensors does not answer.
        """
        now = monotonic()
        felt = _measurement(self._accelerometer, ACC_BLOCK, ACCELEROMETER_ID)
        turned = _measurement(self._gyroscope, GYRO_BLOCK, GYROSCOPE_ID)
        if not any(felt):
            raise ImuNotStartedError(
                f"the BMI088's accelerometer on {self._accelerometer.name} measures nothing, as after a "
                "restart by itself; check its supply, and begin the drive again"
            )
        rate = [count * RAD_PER_S_PER_COUNT for count in TRIPLE.unpack(turned)]
        acceleration = [count * G_PER_COUNT for count in TRIPLE.unpack(felt)]
        period_s = 0.0 if self._last_s is None else now - self._last_s
        self._last_s = now
        orientation = self._fusion.update(rate, acceleration, period_s)
        norm = sqrt(sum(part * part for part in orientation))
        if not abs(norm - 1) < 1e-3:  # catches NaN too
            raise ImuInvalidError(
                f"the orientation filter made {orientation} of the BMI088's rate {rate} rad/s and "
                f"acceleration {acceleration} g; begin the drive again"
            )
        return Reading(rate, orientation, (turned, felt))

    def advice(self) -> str | None:
        """See `Chip.advice`; there is nothing that the user could do."""
        return None

    def close(self) -> None:
        """See `Chip.close`."""
        self._accelerometer.close()
        self._gyroscope.close()

    def _start_accelerometer(self) -> None:
        link = self._accelerometer
        link.write(ACC_SOFTRESET, RESET_COMMAND)
        sleep(ACC_RESET_S)
        link.write(ACC_PWR_CONF, 0x00)  # active; it starts suspended
        link.write(ACC_PWR_CTRL, 0x04)  # on
        sleep(ACC_POWER_S)
        link.write(ACC_CONF, ACC_200_HZ_OSR2)
        link.write(ACC_RANGE, ACC_RANGE_6_G)

    def _start_gyroscope(self) -> None:
        link = self._gyroscope
        link.write(GYRO_SOFTRESET, RESET_COMMAND)
        sleep(GYRO_RESET_S)
        link.write(GYRO_RANGE, GYRO_RANGE_1000)
        link.write(GYRO_BANDWIDTH, GYRO_400_HZ_47_HZ)


def _identify(link: Link, expected: int, part: str) -> None:
    (chip,) = link.read(CHIP_ID, 1)
    if chip != expected:
        raise DeviceError(
            f"the chip on {link.name} has id {chip:#04x}, but a BMI088's {part} has {expected:#04x}; name "
            "the right address or gyro_address in [imu]"
        )


def _measurement(link: Link, length: int, expected: int) -> bytes:
    """Return the six bytes at the end of a block that begins with the chip id."""
    block = link.read(CHIP_ID, length)
    if block[CHIP_ID] != expected:
        raise ImuInvalidError(
            f"{link.name} sent chip id {block[CHIP_ID]:#04x} in place of {expected:#04x}; check its wires"
        )
    return block[-TRIPLE.size :]


def _await_data(link: Link, status: int, part: str) -> None:
    if not wait_until(lambda: bool(link.read(status, 1)[0] & READY), READY_TIMEOUT_S):
        raise ImuNotStartedError(
            f"the BMI088's {part} on {link.name} measured nothing for {READY_TIMEOUT_S:g} s; power it off "
            "and on"
        )
