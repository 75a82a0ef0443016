"""The service and the udev rule say what the runtime needs."""

from __future__ import annotations

import shlex
import shutil
import signal
import subprocess
from configparser import ConfigParser
from pathlib import Path

import pytest

from firmware_bridge.cli import _parser
from firmware_bridge.cli.exits import EXIT_ERROR, EXIT_FALLEN, EXIT_FAULT, EXIT_OK, EXIT_SIGNAL
from firmware_bridge.config import MOST_WAIT_S
from firmware_bridge.drive.deciding import SIT_MOST_S
from firmware_bridge.drive.realtime import PRIORITY

ROOT = Path(__file__).parents[2]
UNIT = ROOT / "hardware" / "pi" / "microduck@.service"
RULES = ROOT / "hardware" / "pi" / "99-microduck.rules"
USAGE_ERROR = 2
LIMP_S = 0.5
"""Longest time until all servos read back as limp [s], see docs/safety.md."""


@pytest.fixture(scope="module")
def service() -> dict[str, str]:
    """The section [Service]."""
    unit = ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read(UNIT)
    return dict(unit["Service"])


def codes(text: str) -> set[int]:
    return {int(code) for code in text.split()}


def test_service_starts_limp_and_waits_for_power_as_long_as_the_settings_allow(
    service: dict[str, str],
) -> None:
    program, *words = shlex.split(service["ExecStart"])
    assert program == "/usr/local/bin/duck"
    options = _parser(words).parse_args(words)
    assert options.remote and options.wait == MOST_WAIT_S
    assert options.command is None and options.script is None


def test_service_is_not_root_and_may_open_ports_and_gamepads(service: dict[str, str]) -> None:
    assert service["User"] == "%i"
    assert {"dialout", "input"} <= set(service["SupplementaryGroups"].split())


def test_service_starts_again_after_refusals_and_crashes_only(service: dict[str, str]) -> None:
    ended = codes(service["SuccessExitStatus"]) | {EXIT_OK}
    for_a_human = codes(service["RestartPreventExitStatus"])
    assert service["Restart"] == "on-failure"
    assert {EXIT_SIGNAL + signal.SIGTERM, EXIT_SIGNAL + signal.SIGINT, EXIT_SIGNAL + signal.SIGHUP} <= ended
    assert for_a_human == {EXIT_FALLEN, EXIT_FAULT, USAGE_ERROR}
    assert EXIT_ERROR not in ended | for_a_human


def test_stopping_the_service_leaves_time_to_sit_down(service: dict[str, str]) -> None:
    assert service["KillSignal"] == "SIGTERM"
    assert int(service["TimeoutStopSec"]) > SIT_MOST_S + LIMP_S


def test_service_may_have_the_priority_that_realtime_asks_for(service: dict[str, str]) -> None:
    assert int(service["LimitRTPRIO"]) >= PRIORITY
    assert service["LimitMEMLOCK"] == "infinity"


def test_systemd_finds_no_fault_in_the_service() -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    done = subprocess.run(
        ["systemd-analyze", "verify", UNIT],
        capture_output=True,
        text=True,
        check=False,
        env={"SYSTEMD_LOG_LEVEL": "warning"},
    )
    said = [line for line in done.stderr.splitlines() if "/usr/local/bin/duck" not in line]
    if any("bus" in line.lower() or "root directory" in line.lower() for line in said):
        pytest.skip(f"systemd-analyze does not work here: {said[0]}")
    assert said == []


def test_the_rule_of_the_doctors_page_is_the_one_that_is_installed() -> None:
    rule = next(line for line in RULES.read_text().splitlines() if "latency_timer" in line)
    assert rule in (ROOT / "docs" / "doctor.md").read_text(encoding="utf-8")
