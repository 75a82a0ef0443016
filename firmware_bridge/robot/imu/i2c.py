"""A chip's registers over I2C, through the kernel's bus as the package smbus2 offers it."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from time import sleep
from typing import Any, Protocol

from firmware_bridge.robot.imu.sample import ImuInvalidError, ImuSilentError
from hardware.errors import ConfigError, PortError

TRIES = 3
"""How often something is asked. A chip that holds the clock for long, as a BNO055 may, makes a Raspberry Pi's
bus fail now and then."""
RETRY_S = 0.001
"""Wait before the next try [s]."""


class SmBus(Protocol):
    """What is used of smbus2's class `SMBus`; every method raises OSError where the bus fails."""

    def read_i2c_block_data(self, i2c_addr: int, register: int, length: int) -> list[int]:
        """Return up to 32 registers from one on."""
        ...

    def write_byte_data(self, i2c_addr: int, register: int, value: int) -> None:
        """Write one register."""
        ...

    def close(self) -> None:
        """Let go of the bus."""
        ...


class I2cLink:
    """A `Link` over I2C.

    Args:
        bus: the bus.
        number: its number, for messages.
        address: the chip's address.
    """

    def __init__(self, bus: SmBus, number: int, address: int) -> None:
        self._bus, self._address = bus, address
        self.name = f"I2C bus {number}, address {address:#04x}"

    def read(self, address: int, length: int) -> bytes:
        """See `Link.read`.

        Raises:
            ImuSilentError: the chip did not answer, three times.
            ImuInvalidError: it sent fewer bytes than asked for.
        """
        data = bytes(self._tried(lambda: self._bus.read_i2c_block_data(self._address, address, length)))
        if len(data) != length:
            raise ImuInvalidError(f"{self.name} sent {len(data)} bytes in place of {length}; check its wires")
        return data

    def write(self, address: int, value: int) -> None:
        """See `Link.write`; raises ImuSilentError as `read` does."""
        self._tried(lambda: self._bus.write_byte_data(self._address, address, value))

    def close(self) -> None:
        """Let go of the bus, also for other links on it."""
        self._bus.close()

    def _tried(self, action: Callable[[], Any]) -> Any:
        failure: OSError | None = None
        for _ in range(TRIES):
            try:
                return action()
            except OSError as error:
                failure = error
            sleep(RETRY_S)
        raise ImuSilentError(
            f"no chip answers at {self.name} ({failure}); check its supply and wires, and its address with "
            "`i2cdetect`"
        ) from failure


def open_i2c(number: int) -> SmBus:
    """Return an I2C bus.

    Raises:
        ConfigError: the package smbus2 is not installed.
        PortError: there is no such bus, or this user may not open it.
    """
    try:
        smbus2 = importlib.import_module("smbus2")
    except ImportError as error:
        raise ConfigError(
            "an IMU on I2C needs the package smbus2: install `microduck-toolkit[i2c]`"
        ) from error
    try:
        bus: SmBus = smbus2.SMBus(number)
    except PermissionError as error:
        raise PortError(
            f"no permission to open /dev/i2c-{number}; add this user to the group `i2c`"
        ) from error
    except OSError as error:
        raise PortError(
            f"cannot open /dev/i2c-{number} ({error.strerror or error}); switch I2C on, as `raspi-config` "
            "does, or name another i2c_bus in [imu]"
        ) from error
    return bus
