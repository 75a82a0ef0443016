"""Where the commands of a drive come from, and the other programs that talk to it."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from firmware_bridge.cli import main
from firmware_bridge.client import Client
from firmware_bridge.emulator.duck import EmulatedDuck

Launch: TypeAlias = Callable[..., Any]
Wait: TypeAlias = Callable[[Callable[[], Any]], None]
SOCKET = "microduck/duck.sock"
OWN_TERMINAL = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0)"


def mode_of(client: Client) -> str | None:
    tick = client.status()["tick"]
    return tick["mode"] if tick else None


def requested_of(client: Client) -> list[float]:
    return client.status()["tick"]["command"]["requested"]


def test_commands_come_from_standard_input(launch: Launch, place: Path) -> None:
    run = launch("--stdin", "--seconds", "0.5", "--report", str(place / "s.json"))
    run.process.stdin.write("0.2 0 0\nquack\n")
    run.process.stdin.flush()
    code, out, _ = run.finish()
    assert code == 0
    assert "1 refused, for they were no command" in out
    assert json.loads((place / "s.json").read_text())["commands_refused"] == 1


IN_THE_BACKGROUND = f"""
{OWN_TERMINAL}
if child := os.fork():
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
os.setpgid(0, 0)
"""


def test_a_drive_in_the_background_stands_since_its_terminal_gives_no_commands(launch: Launch) -> None:
    near, far = pty.openpty()
    os.write(near, b"0.2 0 0\n")
    run = launch("--stdin", "--seconds", "0.3", stdin=far, start_new_session=True, patch=IN_THE_BACKGROUND)
    code, out, err = run.finish()
    assert code == 0, err
    assert "no more commands: standard input cannot be read (Input/output error)" in err
    assert "stand: nobody steers" in err and "stopped: drove the time asked for" in out
    for descriptor in (near, far):
        os.close(descriptor)


def test_a_script_begins_when_the_duck_stands_and_ends_the_drive(launch: Launch, place: Path) -> None:
    (place / "walk.script").write_text("0 stand 0 0 0\n0.2 walk 0.2 0 0\n0.6 end\n")
    run = launch("--script", str(place / "walk.script"), "--report", str(place / "s.json"))
    code, out, err = run.finish()
    assert code == 0, err
    assert "stopped: told to end" in out
    assert json.loads((place / "s.json").read_text())["run_s"] == pytest.approx(0.6, abs=0.2)


def test_other_programs_start_watch_drive_and_stop_a_duck(
    launch: Launch,
    duck: EmulatedDuck,
    place: Path,
    wait_until: Wait,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = launch("--remote")
    wait_until((place / SOCKET).exists)
    with Client() as client:
        wait_until(lambda: mode_of(client) == "limp")
        assert not duck.torque.any()
        client.start()
        wait_until(lambda: mode_of(client) == "stand")
        wait_until(lambda: client.command(vx=0.2) or requested_of(client) == [0.2, 0.0, 0.0])
        assert client.status()["tick"]["power"]["voltage"] == pytest.approx(7.0)
    assert main(["status"]) == 0
    assert f"process {run.pid}, commands from: remote" in capsys.readouterr().out
    assert main(["stop"]) == 0
    assert run.finish()[0] == 0
    assert not duck.torque.any()
    assert main(["status"]) == 1
    assert "no drive runs" in capsys.readouterr().err


def test_a_second_drive_is_refused_and_told_of_the_first(
    launch: Launch, place: Path, wait_until: Wait
) -> None:
    run = launch("--remote")
    wait_until((place / SOCKET).exists)
    code, _, err = launch().finish()
    assert code == 1
    assert err.startswith(f"duck: another drive runs, process {run.pid}; end it by `duck stop`")


def test_keys_start_and_end_a_drive(launch: Launch, duck: EmulatedDuck, wait_until: Wait) -> None:
    near, far = pty.openpty()
    run = launch("--keyboard", stdin=far, start_new_session=True, patch=OWN_TERMINAL)
    wait_until(lambda: b"\x1b[5n" in os.read(near, 1000))  # it asks whether anybody is there
    os.write(near, b"\n")
    run.wait_for("run")
    os.write(near, b"q")
    code, out, _ = run.finish()
    assert code == 0 and "stopped: told to end" in out
    assert not duck.torque.any()
    for descriptor in (near, far):
        os.close(descriptor)


def test_keys_need_a_terminal(launch: Launch) -> None:
    code, _, err = launch("--keyboard", start_new_session=True).finish()
    assert code == 1
    assert err.startswith("duck: no terminal to read keys from")


def test_an_emulated_duck_can_be_driven_by_another_process(launch: Launch) -> None:
    command = [sys.executable, "-m", "firmware_bridge.cli", "emulate"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as emulator:
        assert emulator.stdout is not None
        port = emulator.stdout.readline().strip()
        code, _, err = launch("--skill", "stand", "--seconds", "0.2", port=port).finish()
        emulator.send_signal(signal.SIGINT)
        assert emulator.wait() == 0
    assert code == 0, err
