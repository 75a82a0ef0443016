"""Which IMU a duck has and where: the section [imu] of its settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from hardware.errors import ConfigError

BOARD: Literal["bus"] = "bus"
"""The kind that answers on the servo bus; every other one has a link of its own."""
Kind = Literal["bus", "bno055-uart", "bno055-i2c", "bmi088-i2c"]
_KEYS: Mapping[str, tuple[str, ...]] = {
    BOARD: (),
    "bno055-uart": ("port",),
    "bno055-i2c": ("i2c_bus", "address"),
    "bmi088-i2c": ("i2c_bus", "address", "gyro_address"),
}
"""The keys that say where an IMU of each kind is."""
_ADDRESSES: Mapping[str, Mapping[str, tuple[int, int]]] = {
    "bno055-i2c": {"address": (0x28, 0x29)},
    "bmi088-i2c": {"address": (0x18, 0x19), "gyro_address": (0x68, 0x69)},
}
"""The I2C addresses that each chip can be wired for (data sheets: BNO055, 4.6; BMI088, 6.2)."""


@dataclass(frozen=True)
class ImuConfig:
    """Which IMU the trunk has, and where.

    A kind other than "bus" needs a calibration file, which says how it is mounted.

    Attributes:
        kind: "bus" for the board with id 200 on the servo bus, "bno055-uart", "bno055-i2c" or "bmi088-i2c".
        port: serial port of a BNO055 on a UART, for example "/dev/ttyS0"; it is not that of the servos.
        i2c_bus: number of the I2C bus, 1 for /dev/i2c-1. Left out it is 1.
        address: I2C address of a BNO055, 0x28 or 0x29, or of a BMI088's accelerometer, 0x18 or 0x19. Left
            out it is 0x29 or 0x19.
        gyro_address: I2C address of a BMI088's gyroscope, 0x68 or 0x69. Left out it is 0x68.
    """

    kind: Kind = BOARD
    port: str | None = None
    i2c_bus: int | None = None
    address: int | None = None
    gyro_address: int | None = None

    def __post_init__(self) -> None:
        given = {
            "port": self.port,
            "i2c_bus": self.i2c_bus,
            "address": self.address,
            "gyro_address": self.gyro_address,
        }
        for key, value in given.items():
            if value is not None and key not in _KEYS[self.kind]:
                raise ConfigError(
                    f"{key} is {value!r}, but an IMU of kind {self.kind} has none; leave it out"
                )
        if "port" in _KEYS[self.kind] and self.port is None:
            raise ConfigError(f'kind {self.kind} needs its port; name one, such as "/dev/ttyS0"')
        if self.port is not None and not (self.port and self.port.isprintable()):
            raise ConfigError(f'port is {self.port!r}; name a device such as "/dev/ttyS0"')
        if self.i2c_bus is not None and self.i2c_bus < 0:
            raise ConfigError(f"i2c_bus is {self.i2c_bus}; it must be 0 or more, 1 for /dev/i2c-1")
        for key, (low, high) in _ADDRESSES.get(self.kind, {}).items():
            address = given[key]
            if address is not None and address not in (low, high):
                raise ConfigError(f"{key} is {address:#x}; the chip's is {low:#x} or {high:#x}")

    @property
    def on_bus(self) -> bool:
        """Whether the IMU is the board on the servo bus."""
        return self.kind == BOARD
