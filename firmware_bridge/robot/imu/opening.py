"""From the settings to an IMU that can be read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from firmware_bridge.robot.imu.bmi088 import Bmi088
from firmware_bridge.robot.imu.bno055 import Bno055
from firmware_bridge.robot.imu.chip import Chip
from firmware_bridge.robot.imu.fusion import Fusion
from firmware_bridge.robot.imu.i2c import I2cLink, open_i2c
from firmware_bridge.robot.imu.polled import PolledImu
from firmware_bridge.robot.imu.sample import Mounting
from firmware_bridge.robot.imu.uart import open_uart
from firmware_bridge.robot.imu_config import ImuConfig
from hardware.calibration import Calibration

I2C_BUS = 1
"""Number of a Raspberry Pi's I2C bus on its pins 3 and 5."""
BNO055_ADDRESS = 0x29
"""I2C address of a BNO055 whose pin COM3 is high; 0x28 where it is low (data sheet, 4.6)."""
ACCELEROMETER_ADDRESS, GYROSCOPE_ADDRESS = 0x19, 0x68
"""I2C addresses of a BMI088 with SDO1 high and SDO2 low, as the duck's earlier runtime has it; 0x18 and 0x69
are the other two (data sheet, 6.2)."""


@contextmanager
def open_imu(config: ImuConfig, calibration: Calibration) -> Iterator[PolledImu | None]:
    """Open an IMU with a link of its own, and let go of it at the end; None where it is on the servo bus.

    The IMU is still to be checked, as `RealBody` does.

    Args:
        config: which IMU, and where.
        calibration: how it is mounted, and its gyroscope's bias.

    Raises:
        ConfigError: a package that it needs is not installed.
        PortError: its port or bus does not work.
    """
    if config.on_bus:
        yield None
        return
    chip = _chip(config, calibration)
    imu = PolledImu(chip, Mounting(calibration.imu_mounting, calibration.gyro_bias))
    try:
        yield imu
    finally:
        imu.close()


def _chip(config: ImuConfig, calibration: Calibration) -> Chip:
    if config.kind == "bno055-uart":
        return Bno055(open_uart(config.port or ""))
    number = I2C_BUS if config.i2c_bus is None else config.i2c_bus
    if config.kind == "bno055-i2c":
        return Bno055(I2cLink(open_i2c(number), number, config.address or BNO055_ADDRESS))
    fusion = Fusion(calibration.gyro_bias)
    bus = open_i2c(number)
    return Bmi088(
        I2cLink(bus, number, config.address or ACCELEROMETER_ADDRESS),
        I2cLink(bus, number, config.gyro_address or GYROSCOPE_ADDRESS),
        fusion,
    )
