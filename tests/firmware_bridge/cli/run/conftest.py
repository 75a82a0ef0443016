"""`duck run` as a process of its own, on an emulated duck's real port."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from firmware_bridge.emulator.duck import EmulatedDuck

RUNNER = """
import os, signal, sys
from firmware_bridge.drive import poses
from firmware_bridge.robot import servos
from firmware_bridge.robot.imu import board
from firmware_bridge.wire import transport
transport.HOST_MARGIN_S, transport.ACK_MARGIN_S = 0.05, 0.2  # a busy machine must not look like a lost duck,
servos.WATCHDOG_S = 2.0  # nor like a dead program
poses.RISE_S = poses.SLOW_S = poses.SIT_S = poses.SETTLE_S = 0.06
board.SAMPLE_PERIOD_S = 0.001
{patch}
from firmware_bridge.cli import main
sys.exit(main())
"""
SETTINGS = "[limits]\nlost_s = 1.0\n[bus]\nwait_s = 0.0\n"
HANG_S = 60
"""Time after which a process that should have ended is given up [s]."""


class Run:
    """A `duck run` that has been started.

    Args:
        port: serial port.
        arguments: bundle and options.
        patch: Python that changes the program before it begins.
        options: of the process; its streams are pipes.
    """

    def __init__(self, port: str, *arguments: str, patch: str = "", **options: Any) -> None:
        streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        command = [sys.executable, "-c", RUNNER.format(patch=patch), "run", *arguments, "--port", port]
        self.process = subprocess.Popen(command, text=True, **{**streams, **options})
        self.pid = self.process.pid

    def line(self) -> str:
        """Return the next line of standard error."""
        assert self.process.stderr is not None
        return self.process.stderr.readline()

    def wait_for(self, mode: str) -> None:
        """Wait until the drive tells of a mode."""
        while line := self.line():
            if line.startswith(f"{mode}:"):
                return
        pytest.fail(f"the process ended before mode {mode}")

    def finish(self) -> tuple[int, str, str]:
        """Wait for the end; return exit code, standard output and the rest of standard error."""
        out, err = self.process.communicate(timeout=HANG_S)
        return self.process.returncode, out, err


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with patient settings, and the control socket in it."""
    (tmp_path / "duck.toml").write_text(SETTINGS)
    monkeypatch.setenv("MICRODUCK_CONFIG", str(tmp_path / "duck.toml"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def launch(duck: EmulatedDuck, bundle_folder: Path, place: Path) -> Iterator[Callable[..., Run]]:
    """Starts `duck run` on the emulated duck; ends what a failed test leaves."""
    started: list[Run] = []

    def start(*arguments: str, bundle: Path = bundle_folder, port: str = duck.port, **options: Any) -> Run:
        started.append(Run(port, str(bundle), *arguments, **options))
        return started[-1]

    yield start
    for run in started:
        run.process.kill()
        run.process.wait()


@pytest.fixture(scope="session")
def wait_until() -> Callable[[Callable[[], bool]], None]:
    """Waits until something is true."""

    def wait(true: Callable[[], bool]) -> None:
        give_up = time.monotonic() + HANG_S
        while not true():
            assert time.monotonic() < give_up
            time.sleep(0.02)

    return wait
