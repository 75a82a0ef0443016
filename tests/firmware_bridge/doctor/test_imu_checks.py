"""The doctor and a duck whose IMU is not the board on the bus."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from firmware_bridge.doctor import imu_checks
from firmware_bridge.doctor.checks import find_deviations
from firmware_bridge.doctor.findings import Finding, Level
from firmware_bridge.doctor.imu_checks import imu_deviations
from firmware_bridge.doctor.survey import take_survey
from firmware_bridge.emulator.imu_chip import ImuFault
from firmware_bridge.robot.imu import bmi088, bno055, chip, i2c, polled
from firmware_bridge.robot.imu_config import ImuConfig
from hardware.errors import PortError
from hardware.joints import SERVO_IDS

ELSEWHERE = ImuConfig("bno055-i2c")


@pytest.fixture
def look(
    make_rig: Callable[..., Any], clock: Any, monkeypatch: pytest.MonkeyPatch
) -> tuple[Any, Callable[[], list[Finding]]]:
    """An emulated BNO055, and what the doctor finds about it; time passes by sleeping only."""

    def sleep(seconds: float) -> None:
        clock.now += seconds

    for module in (chip, polled):
        monkeypatch.setattr(module, "monotonic", clock)
    for module in (chip, polled, bno055, bmi088, i2c):
        monkeypatch.setattr(module, "sleep", sleep)
    rig = make_rig("bno055-i2c")

    @contextmanager
    def opened(config: ImuConfig, calibration: object) -> Iterator[Any]:
        yield rig.imu

    monkeypatch.setattr(imu_checks, "open_imu", opened)
    return rig.sensor, lambda: list(imu_deviations(ELSEWHERE))


def test_a_duck_with_another_imu_is_well_without_the_board(desk: Any) -> None:
    desk.unplug(200)
    assert find_deviations(take_survey(desk.open_at, required=SERVO_IDS)) == []
    assert [finding.where for finding in find_deviations(take_survey(desk.open_at))] == ["IMU board (id 200)"]


def test_a_board_that_is_not_the_ducks_imu_need_not_work(desk: Any) -> None:
    (board,) = desk.wire.at(200)
    board.started = board.knows_fast_sync_read = False
    desk.pause(1.0)
    assert find_deviations(take_survey(desk.open_at, required=SERVO_IDS)) == []


def test_the_board_on_the_bus_is_no_matter_of_this_check() -> None:
    assert list(imu_deviations(ImuConfig())) == []


def test_a_sound_imu_has_no_deviation(look: Any) -> None:
    _, findings = look
    assert findings() == []


def test_an_imu_that_does_not_answer_keeps_the_duck_from_running(look: Any) -> None:
    sensor, findings = look
    sensor.fault = ImuFault.DISCONNECTED
    (finding,) = findings()
    assert finding.level is Level.CANNOT_RUN and finding.where == "IMU bno055-i2c"
    assert "no chip answers at I2C bus 1, address 0x29" in finding.remedy


def test_a_gyroscope_that_is_not_calibrated_is_a_warning_that_says_what_to_do(look: Any) -> None:
    sensor, findings = look
    sensor.memory[bno055.CALIB_STAT] = 0b00_01_11_00
    (finding,) = findings()
    assert finding.level is Level.WARNING and "1 of 3: leave the duck still" in finding.remedy


def test_a_bus_that_is_not_there_is_told_and_not_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(config: object, calibration: object) -> Any:
        raise PortError("cannot open /dev/i2c-1; switch I2C on")

    monkeypatch.setattr(imu_checks, "open_imu", refuse)
    (finding,) = imu_deviations(ELSEWHERE)
    assert finding.remedy == "cannot open /dev/i2c-1; switch I2C on"
