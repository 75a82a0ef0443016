from __future__ import annotations

import io
import json
import logging
import threading
from collections import Counter
from typing import Any

import numpy as np
import pytest

from firmware_bridge.cli import display
from firmware_bridge.cli.display import StatusPrinter, live_line, summary_data, summary_table
from firmware_bridge.drive.modes import Mode
from firmware_bridge.drive.summary import StageTime, Summary, Tally, Tick
from firmware_bridge.robot.body import BodySample

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
    stages={"read": StageTime(0.0031, 0.012), "write": StageTime(0.0004, 0.0009)},
    tally=Tally(
        615,
        3,
        Counter({"BusTimeoutError": 5, "PortError": 1}),
        Counter({"target rate": 7, "deadman": 2}),
        {"left_knee"},
        1,
    ),
    commands_refused=4,
)


def tick(**changes: Any) -> Tick:
    """Return a tick of a walk that leans by 30 degrees."""
    zero = np.zeros(14)
    usual = {
        "time_s": 9.0,
        "mode": Mode.RUN,
        "reason": "asked",
        "mode_s": 3.21,
        "skill": "walk",
        "sample": BodySample(0.0, zero, zero, zero, np.zeros(3), np.array([0.5, 0.0, -0.8660254]), ()),
        "fresh": True,
        "requested": np.array([0.5, 0.0, -0.3]),
        "command": np.array([0.2, 0.0, -0.3]),
        "head": np.zeros(4),
        "limited_by": (),
        "observation": np.zeros(55),
        "action": None,
        "requested_targets": None,
        "targets": zero,
        "rate_hz": 49.987,
        "missed": 3,
        "stages": {},
        "bus_errors": 6,
    }
    return Tick(**{**usual, **changes})


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_live_line_shows_mode_rate_errors_command_and_lean() -> None:
    assert live_line(tick()) == (
        "run 3.2 s | walk +0.20 +0.00 -0.30 | lean 30 deg | 50.0 Hz, missed 3, errors 6"
    )


def test_the_live_line_names_what_limits_the_command() -> None:
    assert live_line(tick(limited_by=("command box", "slew"))).endswith("| limited by command box, slew")


def test_the_lean_of_a_duck_that_was_not_seen_is_unknown() -> None:
    assert "| lean ? deg |" in live_line(tick(sample=None))


def test_who_steers_sees_mode_command_lean_and_rate_on_a_narrow_terminal() -> None:
    line = live_line(tick(skill="walk_backward", mode_s=3599.9))[:79]
    for part in ("3599.9 s", "walk_backward +0.20 +0.00 -0.30", "lean 30 deg", "50.0 Hz"):
        assert part in line
    usual = live_line(tick(mode_s=9.9, missed=1, bus_errors=14))
    assert usual.endswith("errors 14") and len(usual) < 80


def test_a_file_gets_one_line_for_each_mode_and_no_live_line() -> None:
    stream = io.StringIO()
    with StatusPrinter(stream) as printer:
        printer.on_mode(Mode.RISE, "a")
        for _ in range(100):
            printer.on_tick(tick())
        printer.on_mode(Mode.RUN, "b")
    assert stream.getvalue() == "rise: a\nrun: b\n"


def test_a_terminal_gets_a_live_line_that_is_cleared_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(display, "REFRESH_S", 0.001)
    stream, shown = Terminal(), threading.Event()
    write = stream.write

    def watched(text: str) -> int:
        if "3.2 s" in text:
            shown.set()
        return write(text)

    monkeypatch.setattr(stream, "write", watched)
    with StatusPrinter(stream) as printer:
        printer.on_tick(tick())
        assert shown.wait(30)
    assert stream.getvalue().endswith("\r\x1b[K")


def test_what_is_told_becomes_a_line() -> None:
    stream = io.StringIO()
    with StatusPrinter(stream) as printer:
        printer.tell("left_knee is hot")
    assert stream.getvalue() == "left_knee is hot\n"


def test_what_the_bus_logs_becomes_a_line_of_its_own() -> None:
    stream = io.StringIO()
    with StatusPrinter(stream):
        logging.getLogger("firmware_bridge.wire.bus").warning("device %d is slow", 20)
        logging.getLogger("firmware_bridge.wire.bus").debug("detail")
    logging.getLogger("firmware_bridge.wire.bus").warning("too late")
    assert stream.getvalue() == "device 20 is slow\n"


def test_a_terminal_that_blocks_does_not_hold_the_loop_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(display, "CLOSE_S", 0.01)
    stream, release = Terminal(), threading.Event()
    monkeypatch.setattr(stream, "write", lambda text: release.wait(60))
    with StatusPrinter(stream) as printer:
        for _ in range(1000):
            printer.on_mode(Mode.RISE, "x")
            printer.on_tick(tick())
    release.set()


def test_a_terminal_that_is_gone_does_not_end_the_drive(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(text: str) -> int:
        raise OSError(5, "Input/output error")

    stream = Terminal()
    monkeypatch.setattr(stream, "write", gone)
    with StatusPrinter(stream) as printer:
        printer.on_mode(Mode.RISE, "x")
        printer._thread.join(30)
        printer.on_mode(Mode.RUN, "y")


def test_the_summary_names_the_end_and_every_count() -> None:
    text = summary_table(SUMMARY, 0.0517)
    for part in (
        "fallen: leaned",
        "12.34 s",
        "717, 2 missed, 1 of them while the policy drove",
        "49.980 Hz, at worst 3.1 ms late",
        "4.20 ms a tick, at worst 19.9 ms",
        "read 3.10 (12.0), write 0.40 (0.9) ms",
        "5.2 % of a core",
        "5 BusTimeoutError, 1 PortError; 3 ticks held",
        "2 deadman, 7 target rate",
        "left_knee",
        "4 refused",
    ):
        assert part in text


def test_the_summary_as_data_is_flat_and_plain() -> None:
    data = summary_data(SUMMARY, 0.05)
    assert (data["mode"], data["bus_errors"], data["alerts"]) == (
        "fallen",
        {"BusTimeoutError": 5, "PortError": 1},
        ["left_knee"],
    )
    assert data["limited"] == {"target rate": 7, "deadman": 2}
    assert data["stages"]["read"] == {"mean_s": 0.0031, "worst_s": 0.012}
    assert "tally" not in data
    assert json.loads(json.dumps(data)) == data
