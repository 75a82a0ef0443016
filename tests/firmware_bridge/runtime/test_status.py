from __future__ import annotations

import io
import json
import logging
import threading

import numpy as np
import pytest

from firmware_bridge.body import BodySample
from firmware_bridge.cli import status
from firmware_bridge.cli.status import StatusPrinter, live_line, summary_data, summary_table
from firmware_bridge.clock import Ticker
from firmware_bridge.modes import Mode
from firmware_bridge.summary import Summary, Tally, Tick

SUMMARY = Summary(
    mode=Mode.FALLEN,
    reason="leaned",
    run_s=12.34,
    ticks=717,
    missed=2,
    rate_hz=49.98,
    worst_lateness_s=0.0031,
    mean_work_s=0.0042,
    worst_work_s=0.0199,
    tally=Tally(615, 3, {"BusTimeoutError": 5, "PortError": 1}, 7, 0, {"left_knee"}),
    commands_refused=4,
)


def tick(alerts: tuple[str, ...] = (), tilt_z: float = -0.8660254) -> Tick:
    zero = np.zeros(14)
    sample = BodySample(0.0, zero, zero, zero, np.zeros(3), np.array([0.5, 0.0, tilt_z]), alerts)
    return Tick(Mode.RUN, 3.21, sample, True, np.array([0.2, 0.0, -0.3]), np.zeros(55), zero, 6)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_live_line_shows_mode_rate_errors_command_and_lean() -> None:
    line = live_line(tick(), Ticker())
    assert line == ("run 3.2 s | 0.00 Hz | missed 0 | bus errors 6 | command +0.20 +0.00 -0.30 | lean 30 deg")


def test_a_file_gets_one_line_for_each_mode_and_no_live_line() -> None:
    stream = io.StringIO()
    with StatusPrinter(stream, Ticker()) as printer:
        printer.on_mode(Mode.RISE, "a")
        for _ in range(100):
            printer.on_tick(tick())
        printer.on_mode(Mode.RUN, "b")
    assert stream.getvalue() == "rise: a\nrun: b\n"


def test_a_terminal_gets_a_live_line_that_is_cleared_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "REFRESH_S", 0.001)
    stream, shown = Terminal(), threading.Event()
    write = stream.write

    def watched(text: str) -> int:
        if "3.2 s" in text:
            shown.set()
        return write(text)

    monkeypatch.setattr(stream, "write", watched)
    with StatusPrinter(stream, Ticker()) as printer:
        printer.on_tick(tick())
        assert shown.wait(30)
    assert stream.getvalue().endswith("\r\x1b[K")


def test_a_servos_fault_is_announced_once() -> None:
    stream = io.StringIO()
    with StatusPrinter(stream, Ticker()) as printer:
        for alerts in ((), ("left_knee",), ("left_knee",), (), ("left_knee", "head_yaw")):
            printer.on_tick(tick(alerts))
    assert stream.getvalue().count("left_knee: the servo reports a hardware fault") == 1
    assert stream.getvalue().count("head_yaw") == 1


def test_what_the_bus_logs_becomes_a_line_of_its_own() -> None:
    stream = io.StringIO()
    with StatusPrinter(stream, Ticker()):
        logging.getLogger("firmware_bridge.bus").warning("device %d is slow", 20)
        logging.getLogger("firmware_bridge.bus").debug("detail")
    logging.getLogger("firmware_bridge.bus").warning("too late")
    assert stream.getvalue() == "device 20 is slow\n"


def test_a_terminal_that_blocks_does_not_hold_the_loop_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "CLOSE_S", 0.01)
    stream, release = Terminal(), threading.Event()
    monkeypatch.setattr(stream, "write", lambda text: release.wait(60))
    with StatusPrinter(stream, Ticker()) as printer:
        for _ in range(1000):
            printer.on_mode(Mode.RISE, "x")
            printer.on_tick(tick())
    release.set()


def test_a_terminal_that_is_gone_does_not_end_the_drive(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(text: str) -> int:
        raise OSError(5, "Input/output error")

    stream = Terminal()
    monkeypatch.setattr(stream, "write", gone)
    with StatusPrinter(stream, Ticker()) as printer:
        printer.on_mode(Mode.RISE, "x")
        printer._thread.join(30)
        printer.on_mode(Mode.RUN, "y")


def test_the_summary_names_the_end_and_every_count() -> None:
    text = summary_table(SUMMARY, 0.0517)
    for part in (
        "fallen: leaned",
        "12.34 s",
        "717, 2 missed",
        "49.980 Hz, at worst 3.1 ms late",
        "4.20 ms a tick, at worst 19.9 ms",
        "5.2 % of a core",
        "5 BusTimeoutError, 1 PortError; 3 ticks held",
        "7 targets slowed, 0 out of range",
        "left_knee",
        "4 lines were no command",
    ):
        assert part in text


def test_the_summary_as_data_is_flat_and_plain() -> None:
    data = summary_data(SUMMARY, 0.05)
    assert (data["mode"], data["bus_errors"], data["alerts"]) == (
        "fallen",
        {"BusTimeoutError": 5, "PortError": 1},
        ["left_knee"],
    )
    assert json.loads(json.dumps(data)) == data
