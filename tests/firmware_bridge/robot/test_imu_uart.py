"""The BNO055's serial protocol, byte for byte."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from firmware_bridge.emulator.bno055 import EmulatedBno055
from firmware_bridge.emulator.bno055_uart import EmulatedBno055Uart
from firmware_bridge.emulator.imu_chip import ImuFault
from firmware_bridge.robot.imu import ImuInvalidError, ImuSilentError, uart
from firmware_bridge.robot.imu.uart import UartLink, open_uart
from hardware.errors import PortError


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uart, "sleep", lambda seconds: None)


def test_a_read_asks_and_returns_in_the_bytes_of_the_data_sheet(scripted: Any) -> None:
    port = scripted("bb 01 a0")
    assert UartLink(port, "x").read(0x00, 1) == b"\xa0"
    assert port.sent == [bytes.fromhex("aa 01 00 01")]


def test_a_write_is_done_when_it_is_acknowledged(scripted: Any) -> None:
    port = scripted("ee 01")
    UartLink(port, "x").write(0x3D, 0x08)
    assert port.sent == [bytes.fromhex("aa 00 3d 01 08")]


def test_a_busy_chip_is_asked_again(scripted: Any) -> None:
    port = scripted("ee 07", "ee 07", "bb 02 12 34")
    assert UartLink(port, "x").read(0x14, 2) == b"\x12\x34"
    assert len(port.sent) == 3


@pytest.mark.parametrize(
    ("replies", "error", "text"),
    [
        (("", "", ""), ImuSilentError, "PS1 is high"),
        (("ee 07", "ee 07", "ee 07"), ImuInvalidError, r"error 0x07 \(bus overrun\), 3 times in a row"),
        (("ee 04", "ee 04", "ee 04"), ImuInvalidError, "no such address"),
        (("ee 01", "ee 01", "ee 01"), ImuInvalidError, "aa 01 14 02 with ee 01, which is no answer"),
        (("bb 02 12", "bb 02 12", "bb 02 12"), ImuInvalidError, "with bb 02 12, which is no answer"),
        (("bb 03 12 34", "bb", "37 ff 00"), ImuInvalidError, "with 37 ff 00, which is no answer"),
        (("bb 02 12 34 56", "ff", "bb 02 12 34 56"), ImuInvalidError, "which is no answer"),
    ],
)
def test_what_is_no_answer_three_times_is_a_named_error(
    scripted: Any, replies: tuple[str, ...], error: type[Exception], text: str
) -> None:
    port = scripted(*replies)
    with pytest.raises(error, match=text):
        UartLink(port, "x").read(0x14, 2)
    assert len(port.sent) == 3


def test_what_came_late_is_not_taken_for_the_next_answer(scripted: Any) -> None:
    port = scripted("bb 01 05")
    port.waiting = bytes.fromhex("bb 01 99")
    assert UartLink(port, "x").read(0x39, 1) == b"\x05"


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmulatedBno055Uart]:
    """An emulated chip behind a real pseudo-terminal, with patience for a busy machine."""
    monkeypatch.setattr(uart, "ANSWER_S", 5.0)
    with EmulatedBno055Uart(EmulatedBno055()) as emulated:
        yield emulated


def test_registers_are_read_and_written_over_a_real_port(far: EmulatedBno055Uart) -> None:
    link = open_uart(far.port)
    assert link.read(0x00, 1) == b"\xa0"
    link.write(0x41, 0x21)
    assert link.read(0x41, 1) == b"\x21"
    far.overruns = 2
    assert link.read(0x3B, 1) == b"\x80"
    link.close()


def test_a_port_that_is_in_use_is_refused(far: EmulatedBno055Uart) -> None:
    link = open_uart(far.port)
    with pytest.raises(PortError, match="in use"):
        open_uart(far.port)
    link.close()


def test_a_chip_that_is_unplugged_is_silent(far: EmulatedBno055Uart, monkeypatch: pytest.MonkeyPatch) -> None:
    far.chip.fault = ImuFault.DISCONNECTED
    monkeypatch.setattr(uart, "ANSWER_S", 0.01)
    link = open_uart(far.port)
    with pytest.raises(ImuSilentError, match=f"{far.port} does not answer"):
        link.read(0x00, 1)
    link.close()


def test_an_adapter_that_is_unplugged_is_a_port_error() -> None:
    near, far_end = os.openpty()
    link = open_uart(os.ttyname(far_end))
    os.close(far_end)
    os.close(near)
    with pytest.raises(PortError, match="stopped working"):
        link.read(0x00, 1)
    link.close()
