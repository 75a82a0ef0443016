"""`duck run` with a BNO055 on a serial port of its own, in place of the board on the servo bus."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from firmware_bridge.emulator.bno055 import EmulatedBno055
from firmware_bridge.emulator.bno055_uart import EmulatedBno055Uart
from firmware_bridge.emulator.duck import EmulatedDuck
from firmware_bridge.emulator.imu_chip import ImuFault
from hardware.calibration import Calibration, save_calibration

PATIENT = """
from firmware_bridge.robot.imu import polled, uart
uart.ANSWER_S, polled.MAX_AGE_S = 0.5, 1.0  # a busy machine must not look like a lost sensor
"""


@pytest.fixture
def bno055(place: Path, duck: EmulatedDuck) -> Iterator[EmulatedBno055Uart]:
    """A duck without the board, and a BNO055 that the settings name, mounted as it is built."""
    duck.unplug(200)
    save_calibration(Calibration(imu_mounting=(1.0, 0.0, 0.0, 0.0)), place / "calibration.toml")
    with EmulatedBno055Uart(EmulatedBno055()) as far, (place / "duck.toml").open("a") as settings:
        settings.write(f'\n[imu]\nkind = "bno055-uart"\nport = "{far.port}"\n')
        settings.flush()
        yield far


@pytest.mark.usefixtures("bno055")
def test_a_duck_walks_by_an_imu_of_its_own_link_and_sits_down(
    launch: Callable[..., Any], duck: EmulatedDuck, place: Path
) -> None:
    calibration = str(place / "calibration.toml")
    code, out, err = launch("--seconds", "0.3", "--calibration", calibration, patch=PATIENT).finish()
    assert code == 0, (out, err)
    assert not duck.torque.any()


def test_a_sensor_that_is_unplugged_while_driving_ends_in_a_fault_and_limp(
    launch: Callable[..., Any], duck: EmulatedDuck, bno055: EmulatedBno055Uart, place: Path
) -> None:
    run = launch("--calibration", str(place / "calibration.toml"), patch=PATIENT)
    run.wait_for("run")
    bno055.chip.fault = ImuFault.DISCONNECTED
    code, _, err = run.finish()
    assert code == 4 and "the BNO055 on" in err and "does not answer" in err
    assert not duck.torque.any()


@pytest.mark.usefixtures("bno055")
def test_without_a_calibration_file_nobody_knows_how_it_is_mounted(launch: Callable[..., Any]) -> None:
    code, _, err = launch().finish()
    assert code == 1
    assert "only a calibration file tells how an IMU of kind bno055-uart is mounted" in err
