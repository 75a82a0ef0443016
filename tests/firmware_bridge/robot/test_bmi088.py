"""The BMI088 against its data sheet, BST-BMI088-DS001, and its orientation filter against geometry."""

from __future__ import annotations

import sys
from collections.abc import Callable
from math import cos, radians, sin
from typing import Any

import numpy as np
import pytest

from firmware_bridge.emulator.bmi088 import EmulatedBmi088
from firmware_bridge.emulator.i2c import EmulatedI2cBus
from firmware_bridge.emulator.imu_chip import ImuFault
from firmware_bridge.robot.imu import ImuInvalidError, ImuNotStartedError, bmi088, chip
from firmware_bridge.robot.imu.bmi088 import Bmi088
from firmware_bridge.robot.imu.fusion import Fusion
from firmware_bridge.robot.imu.i2c import I2cLink
from hardware.errors import ConfigError, DeviceError


class Registers:
    """Holds bytes at addresses, and notes what is written."""

    name = "a test"

    def __init__(self, chip_id: int) -> None:
        self.memory = bytearray(128)
        self.memory[0x00] = chip_id
        self.written: list[tuple[int, int]] = []

    def read(self, address: int, length: int) -> bytes:
        return bytes(self.memory[address : address + length])

    def write(self, address: int, value: int) -> None:
        self.written.append((address, value))

    def close(self) -> None:
        pass


class Noted:
    """Keeps what the filter was given."""

    def __init__(self) -> None:
        self.given: list[Any] = []
        self.answer = [1.0, 0.0, 0.0, 0.0]

    def update(self, rate: Any, acceleration: Any, period_s: float) -> list[float]:
        self.given.append((rate, acceleration, period_s))
        return self.answer


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch, clock: Any) -> None:
    """Let time pass only by sleeping."""

    def sleep(seconds: float) -> None:
        clock.now += seconds

    for module in (chip, bmi088):
        monkeypatch.setattr(module, "monotonic", clock)
        monkeypatch.setattr(module, "sleep", sleep)


@pytest.fixture
def parts() -> tuple[Registers, Registers]:
    """Both sensors, ready."""
    accelerometer, gyroscope = Registers(0x1E), Registers(0x0F)
    accelerometer.memory[0x03] = gyroscope.memory[0x0A] = 0x80
    accelerometer.memory[0x12:0x18] = bytes.fromhex("0000 0000 5515")
    return accelerometer, gyroscope


def test_start_resets_powers_and_sets_both_sensors(parts: tuple[Registers, Registers], clock: Any) -> None:
    accelerometer, gyroscope = parts
    Bmi088(accelerometer, gyroscope, Noted()).start()  # type: ignore[arg-type]
    reset, active, on = (0x7E, 0xB6), (0x7C, 0x00), (0x7D, 0x04)
    assert accelerometer.written[:3] == [reset, active, on]
    assert set(accelerometer.written[3:]) == {(0x40, 0x99), (0x41, 0x01)}  # 200 Hz OSR2; +-6 g
    assert gyroscope.written[0] == (0x14, 0xB6)
    assert set(gyroscope.written[1:]) == {(0x0F, 0x01), (0x10, 0x03)}  # +-1000 deg/s; 400 Hz, 47 Hz
    assert clock.now >= 0.001 + 0.050 + 0.030


def test_counts_turn_into_g_and_radians_per_second(parts: tuple[Registers, Registers], clock: Any) -> None:
    accelerometer, gyroscope = parts
    accelerometer.memory[0x12:0x18] = np.array([5461, 0, -10923], "<i2").tobytes()  # 5460 counts a g
    gyroscope.memory[0x02:0x08] = np.array([3277, -328, 0], "<i2").tobytes()  # 32.768 counts a degree
    noted = Noted()
    driver = Bmi088(accelerometer, gyroscope, noted)  # type: ignore[arg-type]
    driver.read()
    clock.now += 0.0125
    driver.read()
    rate, acceleration, period_s = noted.given[1]
    assert acceleration == pytest.approx([1, 0, -2], abs=1e-3)
    assert rate == pytest.approx([radians(100), radians(-10), 0], abs=1e-3)
    assert period_s == pytest.approx(0.0125)


@pytest.mark.parametrize(("part", "text"), [(0, "accelerometer has 0x1e"), (1, "gyroscope has 0x0f")])
def test_another_chip_is_named_and_nothing_is_written(
    parts: tuple[Registers, Registers], part: int, text: str
) -> None:
    parts[part].memory[0x00] = 0x24
    with pytest.raises(DeviceError, match=f"id 0x24, but a BMI088's {text}"):
        Bmi088(*parts, Noted()).start()  # type: ignore[arg-type]
    assert parts[0].written == parts[1].written == []


def test_a_sensor_that_never_measures_is_named(parts: tuple[Registers, Registers], clock: Any) -> None:
    parts[1].memory[0x0A] = 0
    with pytest.raises(ImuNotStartedError, match="gyroscope on a test measured nothing for 1 s"):
        Bmi088(*parts, Noted()).start()  # type: ignore[arg-type]


def test_an_error_that_the_accelerometer_reports_is_told(parts: tuple[Registers, Registers]) -> None:
    parts[0].memory[0x02] = 0x04
    with pytest.raises(DeviceError, match="reports error 0x04"):
        Bmi088(*parts, Noted()).start()  # type: ignore[arg-type]


def test_noise_on_the_wires_is_not_a_measurement(parts: tuple[Registers, Registers]) -> None:
    driver = Bmi088(*parts, Noted())  # type: ignore[arg-type]
    parts[1].memory[0x00] = 0xFF
    with pytest.raises(ImuInvalidError, match="chip id 0xff in place of 0x0f"):
        driver.read()


def test_an_accelerometer_without_power_is_not_free_fall(parts: tuple[Registers, Registers]) -> None:
    parts[0].memory[0x12:0x18] = bytes(6)
    with pytest.raises(ImuNotStartedError, match="measures nothing"):
        Bmi088(*parts, Noted()).read()  # type: ignore[arg-type]


def test_a_filter_that_breaks_is_no_orientation(parts: tuple[Registers, Registers]) -> None:
    noted = Noted()
    noted.answer = [float("nan")] * 4
    with pytest.raises(ImuInvalidError, match="nan"):
        Bmi088(*parts, noted).read()  # type: ignore[arg-type]


def test_without_imufusion_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "imufusion", None)
    with pytest.raises(ConfigError, match=r"imufusion: install `microduck-toolkit\[i2c\]`"):
        Fusion()


Make = Callable[..., tuple[EmulatedBmi088, Bmi088]]


@pytest.fixture
def make(clock: Any) -> Make:
    """Makes an emulated BMI088 and its driver with the real filter."""
    pytest.importorskip("imufusion")

    def build(bias: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> tuple[EmulatedBmi088, Bmi088]:
        sensor = EmulatedBmi088(clock=clock)
        bus = EmulatedI2cBus({0x18: sensor.accelerometer, 0x69: sensor.gyroscope})
        return sensor, Bmi088(I2cLink(bus, 1, 0x18), I2cLink(bus, 1, 0x69), Fusion(bias))

    return build


def gravity(orientation: Any) -> np.ndarray:
    """Return down in the sensor's axes: the third row of the rotation matrix, turned round."""
    w, x, y, z = orientation
    return -np.array([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)])


@pytest.mark.parametrize("angle", [0.0, 30.0, -80.0, 180.0])
def test_down_is_known_from_the_first_reading_on(make: Make, angle: float) -> None:
    sensor, driver = make()
    half = radians(angle) / 2
    sensor.set_motion(np.zeros(3), np.array([cos(half), 0.0, sin(half), 0.0]))  # nose down
    driver.start()
    down = gravity(driver.read().orientation)
    assert down == pytest.approx([sin(radians(angle)), 0, -cos(radians(angle))], abs=0.01)


def test_a_turn_is_followed_at_once(make: Make, clock: Any) -> None:
    sensor, driver = make()
    driver.start()
    for _ in range(400):
        driver.read()
        clock.now += 0.01
    for step in range(1, 51):  # rolls to the right, 60 degrees in half a second
        angle = radians(60) * step / 50
        quaternion = np.array([cos(angle / 2), sin(angle / 2), 0.0, 0.0])
        sensor.set_motion(np.array([radians(120), 0.0, 0.0]), quaternion)
        orientation = driver.read().orientation
        clock.now += 0.01
        error = gravity(orientation) - np.array([0, -sin(angle), -cos(angle)])
        assert np.linalg.norm(error) < radians(2)


@pytest.mark.parametrize(("known", "leans"), [((0.0, 0.0, 0.0), (0.5, 2.5)), ((0.017, 0.0, 0.0), (0.0, 0.2))])
def test_a_bias_of_the_gyroscope_leans_the_result_unless_it_is_known(
    make: Make, clock: Any, known: tuple[float, float, float], leans: tuple[float, float]
) -> None:
    sensor, driver = make(known)
    sensor.set_motion(np.array([0.017, 0.0, 0.0]), np.array([1.0, 0.0, 0.0, 0.0]))  # 1 deg/s at rest
    driver.start()
    for _ in range(1500):
        down = gravity(driver.read().orientation)
        clock.now += 0.01
    lean = np.degrees(np.arccos(-down[2]))
    assert leans[0] <= lean <= leans[1]


def test_an_accelerometer_that_stands_still_is_in_the_reading(make: Make) -> None:
    sensor, driver = make()
    driver.start()
    sensor.fault = ImuFault.STUCK
    first, second = driver.read(), driver.read()
    assert first.inertial[0] != second.inertial[0] and first.inertial[1] == second.inertial[1]
