from __future__ import annotations

from itertools import pairwise
from math import inf, nan, pi
from pathlib import Path

import dynamixel_easy_sdk
import pytest

from firmware_bridge.wire import registers
from hardware.errors import SafetyError


@pytest.mark.parametrize(
    ("register", "raw", "value"),
    [
        (registers.PRESENT_POSITION, "00 08 00 00", 0.0),
        (registers.PRESENT_POSITION, "00 00 00 00", -pi),
        (registers.PRESENT_POSITION, "00 0C 00 00", pi / 2),
        (registers.PRESENT_POSITION, "FF FF FF FF", -pi - 0.00153398),
        (registers.PRESENT_VELOCITY, "FD 00 00 00", 6.067),
        (registers.PRESENT_VELOCITY, "FF FF FF FF", -0.02398),
        (registers.PRESENT_CURRENT, "FF FF", -0.001),
        (registers.PRESENT_INPUT_VOLTAGE, "4A 00", 7.4),
        (registers.PRESENT_TEMPERATURE, "1F", 31),
        (registers.RETURN_DELAY, "FA", 500e-6),
        (registers.MODEL_NUMBER, "B0 04", 1200),
    ],
)
def test_registers_decode_to_si_units(register: registers.Register, raw: str, value: float) -> None:
    assert register.decode(bytes.fromhex(raw)) == pytest.approx(value, rel=1e-4)


def test_a_plain_number_decodes_to_an_integer() -> None:
    assert isinstance(registers.MODEL_NUMBER.decode(b"\xb0\x04"), int)


@pytest.mark.parametrize(
    ("angle", "raw"),
    [
        (0.0, "00 08 00 00"),
        (0.0008, "01 08 00 00"),  # 0.52 counts: a truncating driver stays at 2048
        (-0.0008, "FF 07 00 00"),
        (-pi, "00 00 00 00"),
        (1.0, "8C 0A 00 00"),  # 651.9 counts
    ],
)
def test_positions_are_rounded_to_the_nearest_count(angle: float, raw: str) -> None:
    assert registers.GOAL_POSITION.encode(angle) == bytes.fromhex(raw)


@pytest.mark.parametrize("angle", [nan, inf, -inf, pi, -3.2, 1e30])
def test_an_angle_no_servo_can_reach_is_refused(angle: float) -> None:
    with pytest.raises(SafetyError, match=r"goal_position cannot be .* from -3\.14159 to 3\.14006 rad"):
        registers.GOAL_POSITION.encode(angle)


def test_a_gain_beyond_its_range_is_refused() -> None:
    with pytest.raises(
        SafetyError, match="position_p_gain cannot be 16384; give a finite value from 0 to 16383"
    ):
        registers.POSITION_P_GAIN.encode(16_384)


def test_a_read_only_register_cannot_be_encoded() -> None:
    with pytest.raises(SafetyError, match="present_position is read only"):
        registers.PRESENT_POSITION.encode(0.0)


def test_addresses_and_widths_agree_with_the_vendors_table() -> None:
    path = Path(dynamixel_easy_sdk.__file__).parent / "control_table" / "xl330_m288.model"
    lines = path.read_text().split("[control table]")[1].splitlines()
    vendor = {}
    for line in lines:
        parts = line.split("\t")
        if len(parts) == 3 and parts[0].isdigit():
            vendor[parts[2].strip().lower().replace(" ", "_")] = (int(parts[0]), int(parts[1]))
    assert {row.name: (row.address, row.width) for row in registers.TABLE}.items() <= vendor.items()


def test_rows_are_sorted_and_do_not_overlap() -> None:
    rows = registers.TABLE
    assert len(rows) > 30
    assert all(a.address + a.width <= b.address for a, b in pairwise(rows))


def test_rows_are_picked_out_of_a_block_with_gaps() -> None:
    rows = registers.block_struct(124, registers.PRESENT_CURRENT, registers.PRESENT_POSITION)
    assert rows.unpack(bytes.fromhex("00 00 FF FF FD 00 00 00 00 08 00 00")) == (-1, 2048)


def test_bus_watchdog_that_has_tripped_reads_minus_one() -> None:
    assert registers.block_struct(98, registers.BUS_WATCHDOG).unpack(b"\xff") == (-1,)
    assert registers.BUS_WATCHDOG.encode(0.2) == b"\x0a"


@pytest.mark.parametrize(
    ("value", "names"),
    [
        (0x01, ("input voltage",)),
        (0x04, ("overheating",)),
        (0x08, ("motor encoder",)),
        (0x10, ("electrical shock",)),
        (0x20, ("overload",)),
        (0x24, ("overload", "overheating")),
        (0x00, ()),
        (0x42, ("unknown bits 0x42",)),
    ],
)
def test_hardware_errors_have_the_x_series_names(value: int, names: tuple[str, ...]) -> None:
    assert registers.hardware_errors(value) == names


def test_shutdown_52_spares_input_voltage_and_53_does_not() -> None:
    assert registers.explain_shutdown(52) == (
        "trips on overload + electrical shock + overheating; does not trip on motor encoder + input voltage"
    )
    assert registers.explain_shutdown(53) == (
        "trips on overload + electrical shock + overheating + input voltage; does not trip on motor encoder"
    )
    assert registers.explain_shutdown(0).startswith("trips on nothing; ")
