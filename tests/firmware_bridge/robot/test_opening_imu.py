"""From the section [imu] to a driver that is opened and closed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from firmware_bridge.emulator.bmi088 import EmulatedBmi088
from firmware_bridge.emulator.bno055 import EmulatedBno055
from firmware_bridge.emulator.bno055_uart import EmulatedBno055Uart
from firmware_bridge.emulator.i2c import EmulatedI2cBus
from firmware_bridge.robot.imu import opening, uart
from firmware_bridge.robot.imu.opening import open_imu
from firmware_bridge.robot.imu.uart import open_uart
from firmware_bridge.robot.imu_config import ImuConfig
from hardware.calibration import Calibration
from hardware.errors import BusError, PortError


@pytest.fixture
def buses(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[int, EmulatedI2cBus]]:
    """I2C buses 1 and 3, with a BNO055 and a BMI088 at each chip's two addresses."""

    def full() -> EmulatedI2cBus:
        parts = {0x28: EmulatedBno055(), 0x29: EmulatedBno055()}
        first, second = EmulatedBmi088(), EmulatedBmi088()
        return EmulatedI2cBus(
            {
                **parts,
                0x18: first.accelerometer,
                0x19: second.accelerometer,
                0x68: second.gyroscope,
                0x69: first.gyroscope,
            }
        )

    made = {1: full(), 3: full()}
    monkeypatch.setattr(opening, "open_i2c", made.__getitem__)
    yield made


def test_the_board_on_the_servo_bus_needs_no_link_of_its_own() -> None:
    with open_imu(ImuConfig(), Calibration()) as imu:
        assert imu is None


def test_a_bno055_on_a_uart_is_opened_at_its_port_and_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uart, "ANSWER_S", 5.0)
    with EmulatedBno055Uart(EmulatedBno055()) as far:
        with open_imu(ImuConfig("bno055-uart", port=far.port), Calibration()) as imu:
            assert imu is not None
            imu.check()
            with pytest.raises(PortError, match="in use"):
                open_uart(far.port)
        open_uart(far.port).close()


@pytest.mark.parametrize(
    ("config", "number"),
    [
        (ImuConfig("bno055-i2c"), 1),
        (ImuConfig("bno055-i2c", i2c_bus=3, address=0x28), 3),
        (ImuConfig("bmi088-i2c"), 1),
        (ImuConfig("bmi088-i2c", i2c_bus=3, address=0x18, gyro_address=0x69), 3),
    ],
)
def test_chips_on_i2c_are_found_at_their_usual_and_their_other_addresses(
    buses: dict[int, EmulatedI2cBus], config: ImuConfig, number: int
) -> None:
    if config.kind == "bmi088-i2c":
        pytest.importorskip("imufusion")
    with open_imu(config, Calibration()) as imu:
        assert imu is not None
        imu.check()
    assert [number for number, bus in buses.items() if bus.closed] == [number]


def test_an_error_meanwhile_closes_the_link_too(buses: dict[int, Any]) -> None:
    with pytest.raises(BusError), open_imu(ImuConfig("bno055-i2c"), Calibration()):
        raise BusError("the servos are not ready")
    assert buses[1].closed
