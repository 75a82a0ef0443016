"""An I2C bus with chips on it, behind the interface of smbus2's class `SMBus`."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from typing import Protocol

_MOST_BYTES = 32
"""Longest read of the kernel's block transfer."""


class I2cChip(Protocol):
    """A chip at one address."""

    def hears(self) -> bool:
        """Return whether a request reaches it."""
        ...

    def read(self, address: int, length: int) -> bytes:
        """Return registers from an address on."""
        ...

    def write(self, address: int, value: int) -> None:
        """Write one register."""
        ...

    def spoilt(self, data: bytes) -> bytes:
        """Return what arrives in place of an answer."""
        ...


class EmulatedI2cBus:
    """An I2C bus.

    Args:
        chips: the chips, by address.

    Attributes:
        closed: whether the host has let go of it.
        failures: how many transfers will still fail, as where a chip holds the clock for too long.
    """

    def __init__(self, chips: Mapping[int, I2cChip]) -> None:
        self._chips = chips
        self.closed = False
        self.failures = 0

    def read_i2c_block_data(self, i2c_addr: int, register: int, length: int) -> list[int]:
        """Return up to 32 registers from one on.

        Raises:
            OSError: no chip answers at that address.
            ValueError: more bytes than the kernel reads at once.
        """
        if not 0 < length <= _MOST_BYTES:
            raise ValueError(f"a block is of 1 to {_MOST_BYTES} bytes, not {length}")
        chip = self._chip(i2c_addr)
        return list(chip.spoilt(chip.read(register, length)))

    def write_byte_data(self, i2c_addr: int, register: int, value: int) -> None:
        """Write one register.

        Raises:
            OSError: no chip answers at that address.
        """
        self._chip(i2c_addr).write(register, value)

    def close(self) -> None:
        """Let go of the bus."""
        self.closed = True

    def _chip(self, address: int) -> I2cChip:
        if self.failures:
            self.failures -= 1
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        chip = self._chips.get(address)
        if chip is None or not chip.hears():
            raise OSError(errno.EREMOTEIO, os.strerror(errno.EREMOTEIO))
        return chip
