from __future__ import annotations

from pathlib import Path

import pytest

from firmware_bridge.doctor.facts import LatencyTimer
from firmware_bridge.doctor.latency import read_latency_timer, set_latency_timer
from hardware.errors import PortError


def timer_file(terminals: Path, text: str) -> Path:
    path = terminals / "ttyUSB0" / "device" / "latency_timer"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize(("text", "seconds"), [("16\n", 0.016), ("1\n", 0.001)])
def test_the_timer_of_an_adapter_is_read(tmp_path: Path, text: str, seconds: float) -> None:
    path = timer_file(tmp_path, text)
    timer = read_latency_timer("/dev/ttyUSB0", tmp_path)
    assert timer is not None and timer.path == path
    assert timer.value_s == pytest.approx(seconds)


def test_a_link_to_the_port_leads_to_its_timer(tmp_path: Path) -> None:
    timer_file(tmp_path, "16\n")
    link = tmp_path / "usb-FTDI-if00"
    link.symlink_to("/dev/ttyUSB0")
    assert read_latency_timer(str(link), tmp_path) is not None


def test_a_port_that_is_no_usb_adapter_has_no_timer(tmp_path: Path) -> None:
    assert read_latency_timer("/dev/ttyAMA0", tmp_path) is None


@pytest.mark.parametrize("text", ["", "soon", "-1", "1" * 40_000])
def test_a_timer_that_holds_nonsense_is_never_taken_for_a_good_one(tmp_path: Path, text: str) -> None:
    path = timer_file(tmp_path, text)
    timer = read_latency_timer("/dev/ttyUSB0", tmp_path)
    assert timer is not None and (timer == LatencyTimer(path, None) or (timer.value_s or 0.0) > 1.0)


def test_the_timer_is_set_to_one_millisecond(tmp_path: Path) -> None:
    path = timer_file(tmp_path, "16\n")
    set_latency_timer(path)
    assert path.read_text() == "1\n"


def test_a_timer_that_may_not_be_set_names_the_command_that_does(tmp_path: Path) -> None:
    with pytest.raises(PortError, match=r"echo 1 \| sudo tee "):
        set_latency_timer(tmp_path)  # writing a folder fails, for root too
