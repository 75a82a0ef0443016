from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from firmware_bridge.cli import main
from firmware_bridge.client import Client
from firmware_bridge.commands import Event, FixedCommand
from firmware_bridge.control.server import ControlServer
from firmware_bridge.skills.manifest import Skill
from hardware.errors import ControlError

PATIENCE_S = 60.0
TICK = {"mode": "run", "skill": "walk", "reason": "the policy drives", "loop": {"rate_hz": 50.0}}


class Drive:
    """A drive without a duck: ticks, takes events, and ends when it is asked to."""

    def __init__(self, path: Path, skills: dict[str, Skill]) -> None:
        source = FixedCommand([0.0, 0.0, 0.0])
        self.path, self.events = path, list[Event]()
        self.server = ControlServer(source, "keyboard", skills, path=path, encode_tick=lambda tick: tick)  # type: ignore[arg-type,return-value]
        self.obedient, self.end = True, threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.ready = threading.Event()

    def run(self) -> None:
        with self.server:
            self.ready.set()
            number = 0
            while not self.end.wait(0.005):
                number += 1
                self.server.publish({**TICK, "number": number})  # type: ignore[arg-type]
                event = self.server.source.latest().event
                if event:
                    self.events.append(event)
                if self.obedient and event is Event.QUIT:
                    return


@pytest.fixture
def drive(tmp_path: Path, skills: dict[str, Skill]) -> Iterator[Drive]:
    drive = Drive(tmp_path / "duck.sock", skills)
    drive.thread.start()
    assert drive.ready.wait(PATIENCE_S)
    yield drive
    drive.end.set()
    drive.thread.join()


def test_stop_waits_until_the_drive_has_ended(drive: Drive, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stop", "--socket", str(drive.path)]) == 0
    drive.thread.join(PATIENCE_S)
    assert drive.events == [Event.QUIT]
    assert capsys.readouterr().out == f"the drive, process {os.getpid()}, has ended\n"


def test_stop_limp_switches_torque_off_before_the_end(drive: Drive) -> None:
    assert main(["stop", "--limp", "--socket", str(drive.path)]) == 0
    assert drive.events == [Event.LIMP, Event.QUIT]


def test_stop_tells_of_a_drive_that_does_not_end(
    drive: Drive, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("firmware_bridge.cli.stop.WAIT_S", 0.05)
    drive.obedient = False
    assert main(["stop", "--socket", str(drive.path)]) == 1
    error = capsys.readouterr().err
    assert "has not ended in 0.05 s; switch the servos' power off" in error
    assert f"`kill {os.getpid()}`" in error


@pytest.mark.parametrize("command", ["stop", "status", "monitor"])
def test_without_a_drive_the_exit_code_is_1_and_the_user_learns_why(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "--socket", str(tmp_path / "none.sock")]) == 1
    error = capsys.readouterr().err
    assert "none.sock" in error
    assert "begin one by `duck run`" in error


def test_status_is_for_people_and_as_json_for_programs(
    drive: Drive, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status", "--socket", str(drive.path)]) == 0
    assert f"process {os.getpid()}, commands from: keyboard" in capsys.readouterr().out
    assert main(["status", "--json", "--socket", str(drive.path)]) == 0
    status = json.loads(capsys.readouterr().out)
    assert (status["drive"]["source"], status["drive"]["skills"]["walk"]["high"]) == (
        "keyboard",
        [0.3, 0.0, 0.5],
    )


def test_monitor_as_json_prints_a_tick_a_line_until_the_drive_ends(
    drive: Drive, capsys: pytest.CaptureFixture[str]
) -> None:
    threading.Timer(0.2, drive.end.set).start()
    assert main(["monitor", "--json", "--hz", "50", "--socket", str(drive.path)]) == 0
    ticks = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert ticks
    assert {tick["mode"] for tick in ticks} == {"run"}
    numbers = [tick["number"] for tick in ticks]
    assert numbers == sorted(set(numbers))


def test_a_connection_over_the_network_needs_a_token_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--connect", "127.0.0.1:9870"]) == 1
    assert "--connect needs --token FILE" in capsys.readouterr().err


@pytest.mark.parametrize(
    "answer",
    [b"garbage\n", b"[1]\n", b"\xff\xff\n", b"7" * 1_100_000, b'{"ok": true}\n[', b'{"ok": false}\n'],
)
def test_a_socket_that_is_no_drives_is_told_without_a_traceback(
    answer: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "other.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def play() -> None:
            connection, _ = listener.accept()
            with connection, contextlib.suppress(OSError):
                connection.recv(1000)
                connection.sendall(answer)
                connection.recv(1000)

        thread = threading.Thread(target=play)
        thread.start()
        code = main(["status", "--socket", str(path)])
        thread.join()
    output = capsys.readouterr()
    assert "Traceback" not in output.err
    assert code == (0 if answer.startswith(b'{"ok": true') else 1)


def test_a_drive_that_says_nothing_is_told(tmp_path: Path) -> None:
    path = tmp_path / "silent.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        with Client(path, timeout_s=0.05) as client, pytest.raises(ControlError, match="does not answer"):
            client.status()


ON_A_TERMINAL = (
    "import fcntl, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"
    "from firmware_bridge.cli import main; sys.exit(main(sys.argv[1:]))"
)


class Screen:
    """`duck monitor` on a terminal of its own."""

    def __init__(self, path: Path) -> None:
        self.user, self.program = os.openpty()
        termios.tcsetwinsize(self.program, (24, 80))
        self.before = termios.tcgetattr(self.program)
        self.process = subprocess.Popen(
            [sys.executable, "-c", ON_A_TERMINAL, "monitor", "--hz", "50", "--socket", str(path)],
            stdin=self.program,
            stdout=self.program,
            stderr=self.program,
            start_new_session=True,
        )
        self.seen = b""
        os.set_blocking(self.user, False)

    def until(self, part: bytes, seen: bytes = b"") -> bytes:
        """Read the screen until `part` has come, and return what came, after `seen`."""
        end = time.monotonic() + PATIENCE_S
        while part not in seen:
            assert time.monotonic() < end, seen[-500:]
            with contextlib.suppress(BlockingIOError):
                seen += os.read(self.user, 65536)
            time.sleep(0.01)
        return seen

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.user)
        os.close(self.program)


@pytest.fixture
def screen(drive: Drive) -> Iterator[Screen]:
    screen = Screen(drive.path)
    yield screen
    screen.close()


def drain(screen: Screen) -> int:
    """Keep the screen read until the monitor has ended, and return its exit code."""
    end = time.monotonic() + PATIENCE_S
    while screen.process.poll() is None:
        assert time.monotonic() < end
        with contextlib.suppress(BlockingIOError):
            screen.seen += os.read(screen.user, 65536)
        time.sleep(0.01)
    with contextlib.suppress(BlockingIOError):
        screen.seen += os.read(screen.user, 65536)
    return screen.process.returncode


@pytest.mark.parametrize(
    ("how", "code"), [("q", 0), ("ctrl-c", 128 + signal.SIGINT), ("kill", 128 + signal.SIGTERM), ("end", 0)]
)
def test_the_monitor_leaves_the_terminal_as_it_was(screen: Screen, drive: Drive, how: str, code: int) -> None:
    screen.until(b"run for")
    if how == "kill":
        screen.process.terminate()
    elif how == "end":
        drive.end.set()
    else:
        os.write(screen.user, {"q": b"q", "ctrl-c": b"\x03"}[how])
    assert drain(screen) == code
    assert screen.seen.rstrip().endswith(b"the drive has ended" if how == "end" else b"\x1b[?25h\x1b[?1049l")
    assert termios.tcgetattr(screen.program) == screen.before


def test_the_monitor_follows_the_size_of_its_terminal(screen: Screen) -> None:
    screen.until(b"commands from: keyboard")
    termios.tcsetwinsize(screen.program, (5, 20))
    after = screen.until(b"\x1b[2J").partition(b"\x1b[2J\x1b[H")[2]
    frame = screen.until(b"\x1b[J", after).partition(b"\x1b[J")[0]
    lines = [line.replace(b"\x1b[K", b"") for line in frame.split(b"\r\n")]
    assert len(lines) <= 5
    assert max(map(len, lines)) <= 20
    os.write(screen.user, b"q")
    assert drain(screen) == 0


def test_the_monitor_draws_on_a_terminal_that_does_not_know_its_size(screen: Screen) -> None:
    screen.until(b"commands from: keyboard")
    termios.tcsetwinsize(screen.program, (5, 20))
    screen.until(b"\x1b[2J")
    termios.tcsetwinsize(screen.program, (0, 0))
    after = screen.until(b"\x1b[2J").partition(b"\x1b[2J\x1b[H")[2]
    assert b"applied" in screen.until(b"\x1b[J", after)
    os.write(screen.user, b"q")
    assert drain(screen) == 0


def test_the_monitor_without_a_terminal_points_at_json(drive: Drive, capsys: Any) -> None:
    assert main(["monitor", "--socket", str(drive.path)]) == 1
    assert "add --json" in capsys.readouterr().err
