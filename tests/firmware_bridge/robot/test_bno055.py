"""The BNO055 against its data sheet, BST-BNO055-DS000."""

from __future__ import annotations

from collections.abc import Callable
from math import radians
from typing import Any

import numpy as np
import pytest

from firmware_bridge.emulator.bno055 import EmulatedBno055
from firmware_bridge.robot.imu import ImuInvalidError, ImuNotStartedError, bno055, chip
from firmware_bridge.robot.imu.bno055 import Bno055
from hardware.errors import DeviceError


class Registers:
    """Holds bytes at addresses, and notes what is written."""

    name = "a test"

    def __init__(self) -> None:
        self.memory = bytearray(128)
        self.memory[0x00] = 0xA0  # chip id
        self.memory[0x36] = 0x0F  # self-test passed
        self.memory[0x39] = 5  # system status: fusion running
        self.written: list[tuple[int, int]] = []
        self.closed = False

    def sample(self, text: str) -> None:
        self.memory[0x14 : 0x14 + 20] = bytes.fromhex(text)

    def read(self, address: int, length: int) -> bytes:
        return bytes(self.memory[address : address + length])

    def write(self, address: int, value: int) -> None:
        self.written.append((address, value))

    def close(self) -> None:
        self.closed = True


UPRIGHT = "0000 0000 0000  0000 0000 0000  0040 0000 0000 0000"


@pytest.fixture
def registers() -> Registers:
    return Registers()


@pytest.fixture
def driver(registers: Registers) -> Bno055:
    registers.sample(UPRIGHT)
    return Bno055(registers)


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch, clock: Any) -> None:
    """Let time pass only by sleeping."""

    def sleep(seconds: float) -> None:
        clock.now += seconds

    monkeypatch.setattr(chip, "monotonic", clock)
    for module in (chip, bno055):
        monkeypatch.setattr(module, "sleep", sleep)


def test_rates_are_in_sixteenths_of_a_degree_per_second(driver: Bno055, registers: Registers) -> None:
    # 1600, -16 and 1 counts; the Euler angles between are not read.
    registers.sample("4006 f0ff 0100  ffff ffff ffff  0040 0000 0000 0000")
    assert driver.read().rate == pytest.approx([radians(100), radians(-1), radians(1 / 16)])


def test_a_quaternion_is_w_x_y_z_in_units_of_two_to_the_minus_14(
    driver: Bno055, registers: Registers
) -> None:
    # A quarter turn about y: 11585 = 2^14 / sqrt(2).
    registers.sample("0000 0000 0000  0000 0000 0000  412d 0000 412d 0000")
    assert driver.read().orientation == pytest.approx([0.5**0.5, 0, 0.5**0.5, 0], abs=1e-4)


def test_start_sets_units_axes_and_the_mode_without_magnetometer_from_configuration_mode(
    driver: Bno055, registers: Registers, clock: Any
) -> None:
    driver.start()
    assert registers.written[0] == (0x3D, 0x00)
    assert registers.written[-1] == (0x3D, 0x08)
    assert set(registers.written[1:-1]) == {(0x07, 0), (0x3E, 0), (0x3B, 0), (0x41, 0x24), (0x42, 0)}
    assert clock.now >= 0.019 + 0.007  # the times that changes of the mode take


def test_another_chip_is_named_by_its_id_and_nothing_is_written_to_it(
    driver: Bno055, registers: Registers
) -> None:
    registers.memory[0x00] = 0xD1
    with pytest.raises(DeviceError, match="has id 0xd1, but a BNO055 has 0xa0"):
        driver.start()
    assert registers.written == []


@pytest.mark.parametrize(("bits", "part"), [(0b1011, "gyroscope"), (0b1110, "accelerometer")])
def test_a_part_that_failed_the_self_test_is_named(
    driver: Bno055, registers: Registers, bits: int, part: str
) -> None:
    registers.memory[0x36] = bits
    with pytest.raises(DeviceError, match=f"failed its own test of {part};"):
        driver.start()


def test_the_self_test_of_the_magnetometer_does_not_matter(driver: Bno055, registers: Registers) -> None:
    registers.memory[0x36] = 0b1101
    driver.start()


def test_a_filter_that_does_not_start_is_diagnosed(driver: Bno055, registers: Registers, clock: Any) -> None:
    registers.memory[0x39:0x3B] = bytes((1, 9))
    text = r"status 1 \(system error\), error 9 \(the orientation filter could not be set up\)"
    with pytest.raises(ImuNotStartedError, match=text):
        driver.start()
    assert clock.now == pytest.approx(3.03, abs=0.02)


def test_an_orientation_of_zeros_is_none(driver: Bno055, registers: Registers) -> None:
    registers.sample("0100 0200 0300  0000 0000 0000  0000 0000 0000 0000")
    with pytest.raises(ImuNotStartedError, match="gives no orientation"):
        driver.read()


@pytest.mark.parametrize(
    "sample",
    [
        "0000 0000 0000  0000 0000 0000  0050 0000 0000 0000",  # norm 1.25
        "0000 0000 0000  0000 0000 0000  0030 0000 0000 0000",  # norm 0.75
        "017d 0000 0000  0000 0000 0000  0040 0000 0000 0000",  # 32001 counts, above 2000 deg/s
    ],
)
def test_numbers_that_are_no_orientation_or_rate_are_refused(
    driver: Bno055, registers: Registers, sample: str
) -> None:
    registers.sample(sample)
    with pytest.raises(ImuInvalidError, match="which are none"):
        driver.read()


def test_a_filter_that_stops_is_noticed_within_a_quarter_second_and_until_it_runs_again(
    driver: Bno055, registers: Registers
) -> None:
    driver.read()
    registers.memory[0x39] = 6
    for _ in range(24):
        driver.read()
    for _ in range(3):
        with pytest.raises(ImuNotStartedError, match="running without orientation filter"):
            driver.read()
    registers.memory[0x39] = 5
    driver.read()


def test_calibration_levels_come_from_their_bits_and_a_gyroscope_below_3_wants_rest(
    driver: Bno055, registers: Registers
) -> None:
    registers.memory[0x35] = 0b01_10_11_00
    assert driver.calibration() == (1, 2, 3)
    assert driver.advice() is not None and "2 of 3" in str(driver.advice())
    registers.memory[0x35] = 0b00_11_00_00
    assert driver.advice() is None


def test_closing_lets_go_of_the_link(driver: Bno055, registers: Registers) -> None:
    driver.close()
    assert registers.closed


def test_the_emulated_chip_heeds_settings_in_configuration_mode_only_and_needs_time_to_start(
    clock: Callable[[], float],
) -> None:
    emulated = EmulatedBno055(clock=clock)
    emulated.write(0x3D, 0x08)
    emulated.write(0x3B, 0x02)
    assert emulated.read(0x3B, 1) == b"\x80" and emulated.read(0x20, 8) == bytes(8)
    clock.now = 0.2  # type: ignore[attr-defined]
    assert emulated.read(0x20, 8) == bytes.fromhex("0040 0000 0000 0000")
    assert emulated.read(0x39, 1) == b"\x05"
    emulated.set_motion(np.array([0.0, 0.0, 1.0]), np.array([1.0, 0, 0, 0]))
    clock.now = 0.3  # type: ignore[attr-defined]
    counts = int.from_bytes(emulated.read(0x18, 2), "little", signed=True)
    assert counts == pytest.approx(917, abs=10)  # 1 rad/s is 57.3 deg/s, times 16; noise 1.6
