"""Registers over I2C, through what smbus2 offers."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from firmware_bridge.emulator.bno055 import EmulatedBno055
from firmware_bridge.emulator.i2c import EmulatedI2cBus
from firmware_bridge.emulator.imu_chip import ImuFault
from firmware_bridge.robot.imu import ImuInvalidError, ImuSilentError, i2c
from firmware_bridge.robot.imu.i2c import I2cLink, open_i2c
from hardware.errors import ConfigError, PortError


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(i2c, "sleep", lambda seconds: None)


@pytest.fixture
def sensor() -> EmulatedBno055:
    return EmulatedBno055()


@pytest.fixture
def bus(sensor: EmulatedBno055) -> EmulatedI2cBus:
    return EmulatedI2cBus({0x29: sensor})


def test_registers_are_read_and_written_at_the_chips_address(bus: EmulatedI2cBus) -> None:
    link = I2cLink(bus, 1, 0x29)
    link.write(0x41, 0x21)
    assert link.read(0x41, 1) == b"\x21" and link.read(0x00, 1) == b"\xa0"
    link.close()
    assert bus.closed


def test_two_transfers_that_fail_in_a_row_are_made_up_for_and_a_third_is_an_error(
    bus: EmulatedI2cBus,
) -> None:
    link = I2cLink(bus, 1, 0x29)
    bus.failures = 2
    assert link.read(0x00, 1) == b"\xa0"
    bus.failures = 3
    with pytest.raises(ImuSilentError, match=r"I2C bus 1, address 0x29 .*Input/output error"):
        link.read(0x00, 1)


def test_an_address_without_a_chip_is_named(bus: EmulatedI2cBus, sensor: EmulatedBno055) -> None:
    with pytest.raises(ImuSilentError, match=r"address 0x28 .*i2cdetect"):
        I2cLink(bus, 1, 0x28).write(0x3D, 0)
    sensor.fault = ImuFault.DISCONNECTED
    with pytest.raises(ImuSilentError, match="address 0x29"):
        I2cLink(bus, 1, 0x29).read(0x00, 1)


def test_too_few_bytes_are_no_answer(bus: EmulatedI2cBus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bus, "read_i2c_block_data", lambda address, register, length: [1, 2])
    with pytest.raises(ImuInvalidError, match="sent 2 bytes in place of 6"):
        I2cLink(bus, 1, 0x29).read(0x14, 6)


def test_without_smbus2_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "smbus2", None)
    with pytest.raises(ConfigError, match=r"microduck-toolkit\[i2c\]"):
        open_i2c(1)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (FileNotFoundError(2, "No such file or directory"), "/dev/i2c-7 .*raspi-config"),
        (PermissionError(13, "Permission denied"), "no permission to open /dev/i2c-7; .*group `i2c`"),
    ],
)
def test_a_bus_that_cannot_be_opened_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, error: OSError, text: str
) -> None:
    def refuse(number: int) -> Any:
        raise error

    monkeypatch.setitem(sys.modules, "smbus2", SimpleNamespace(SMBus=refuse))
    with pytest.raises(PortError, match=text):
        open_i2c(7)
