from __future__ import annotations

import errno
import os
import pty
import select
import subprocess
import sys
import threading
import time
import tty
from collections.abc import Iterator
from pathlib import Path

import pytest
import serial

from firmware_bridge.wire import port, port_owner
from firmware_bridge.wire.port import SerialPort
from hardware.errors import BusTimeoutError, PortError

Line = tuple[int, int, str]


@pytest.fixture
def line() -> Iterator[Line]:
    """A pseudo-terminal: its controlling end, the far end, and the far end's path."""
    near, far = pty.openpty()
    tty.setraw(far)
    yield near, far, os.ttyname(far)
    for descriptor in (near, far):
        try:
            os.close(descriptor)
        except OSError as error:
            assert error.errno == errno.EBADF  # the test closed it


def soon() -> float:
    return time.monotonic() + 10.0


def test_bytes_pass_both_ways_unchanged_at_one_megabaud(line: Line) -> None:
    everything = bytes(range(256))
    with SerialPort(line[2], 1_000_000) as opened:
        opened.write(everything)
        assert os.read(line[0], 1000) == everything
        os.write(line[0], everything)
        assert opened.read(256, soon()) == everything


def test_read_waits_for_a_reply_that_comes_in_parts(line: Line) -> None:
    with SerialPort(line[2]) as opened:
        os.write(line[0], b"abc")
        late = threading.Timer(0.05, os.write, (line[0], b"defgh"))
        late.start()
        assert opened.read(8, soon()) == b"abcdefgh"
        late.join()


def test_read_sleeps_while_the_wire_carries_the_rest(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    def arrive_meanwhile(seconds: float) -> None:
        slept.append(seconds)
        os.write(line[0], b"defgh")

    monkeypatch.setattr(port.time, "sleep", arrive_meanwhile)
    with SerialPort(line[2], 1_000_000) as opened:
        os.write(line[0], b"abc")
        assert opened.read(8, soon()) == b"abcdefgh"
    assert slept == [pytest.approx(50e-6)]  # five bytes of ten bits at 1 Mbaud


def test_read_returns_what_came_when_the_deadline_passes(line: Line) -> None:
    with SerialPort(line[2]) as opened:
        os.write(line[0], b"abc")
        start = time.monotonic()
        assert opened.read(8, start + 0.05) == b"abc"
        assert time.monotonic() >= start + 0.05


def test_read_after_the_deadline_still_takes_what_is_there(line: Line) -> None:
    with SerialPort(line[2]) as opened:
        os.write(line[0], b"abc")
        select.select([opened._fd], [], [], 10)
        assert opened.read(8, time.monotonic() - 1) == b"abc"


def test_silence_costs_one_system_call_and_a_burst_one_more(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    real = select.select
    monkeypatch.setattr(port.select, "select", lambda *args: calls.append(args) or real(*args))
    with SerialPort(line[2]) as opened:
        assert opened.read(8, time.monotonic() + 0.1) == b""
        assert len(calls) == 1
        os.write(line[0], bytes(300))
        assert len(opened.read(300, soon())) == 300
        assert len(calls) == 2


def test_flush_forgets_old_bytes_only(line: Line) -> None:
    with SerialPort(line[2]) as opened:
        os.write(line[0], b"old")
        select.select([opened._fd], [], [], 10)
        assert opened.flush_input() == b"old"
        os.write(line[0], b"new")
        assert opened.read(3, soon()) == b"new"
        assert opened.flush_input() == b""


def test_flush_of_a_line_that_never_falls_silent_ends(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SerialPort, "_take", lambda port, wait: bytes(1000))
    with SerialPort(line[2]) as opened:
        assert len(opened.flush_input()) < 70_000


def test_driver_that_takes_no_bytes_does_not_hold_the_tick(line: Line) -> None:
    with SerialPort(line[2]) as opened, pytest.raises(BusTimeoutError, match=r"took no bytes for 0\.01 s"):
        for _ in range(1000):
            opened.write(bytes(4096))  # nobody reads the other end


def test_absent_port_is_named() -> None:
    with pytest.raises(PortError, match=r"/dev/ttyNoDuck does not exist; connect it, or name one of"):
        SerialPort("/dev/ttyNoDuck")


def test_a_file_is_no_port(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a port")
    with pytest.raises(PortError, match=r"file is not a serial port; name a device such as /dev/ttyUSB0"):
        SerialPort(str(tmp_path / "file"))


def test_port_without_permission_tells_the_group(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise serial.SerialException(errno.EACCES, "could not open port")

    monkeypatch.setattr(serial, "Serial", refuse)
    with pytest.raises(PortError, match=r"no permission to open /dev/pts/\d+; .*dialout"):
        SerialPort(line[2])


def test_speed_that_no_driver_has_is_named(line: Line) -> None:
    with pytest.raises(PortError, match="at -5 baud"):
        SerialPort(line[2], -5)


HOLD = """
import sys
from firmware_bridge.wire.port import SerialPort
with SerialPort(sys.argv[1]):
    print("open", flush=True)
    sys.stdin.read()
"""


def test_port_held_by_another_process_names_that_process(line: Line) -> None:
    command = [sys.executable, "-c", HOLD, line[2]]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        with pytest.raises(PortError, match=rf"{line[2]} is in use by process {holder.pid} \(.+\); stop it"):
            SerialPort(line[2])
        holder.communicate()
    SerialPort(line[2]).close()


def test_a_console_that_takes_no_lock_is_found_by_its_open_file(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(port_owner, "PSEUDO_TERMINALS", "/nowhere/")
    command = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=line[1]) as console:
        with pytest.raises(PortError, match=rf"in use by process {console.pid} "):
            SerialPort(line[2])
        console.communicate()
    assert port_owner.users_of(line[2]) == []


LOGIN = """
import os, sys
os.setsid()
os.close(os.open(sys.argv[1], os.O_RDWR))  # a session's first terminal becomes its own, open or not
print("in", flush=True)
sys.stdin.read()
"""


def test_a_login_is_found_by_its_terminal_even_if_its_files_cannot_be_seen(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(port_owner, "PSEUDO_TERMINALS", "/nowhere/")
    command = [sys.executable, "-c", LOGIN, line[2]]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as login:
        assert login.stdout is not None
        assert login.stdout.readline() == "in\n"
        (user,) = port_owner.users_of(line[2])
        assert user.startswith(f"process {login.pid} (")
        login.communicate()


def test_the_kernels_console_is_refused_with_the_way_out(
    line: Line, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(port_owner, "PSEUDO_TERMINALS", "/nowhere/")
    monkeypatch.setattr(port_owner, "_PROC", tmp_path)
    device = os.stat(line[2]).st_rdev
    number = f"{os.major(device)}:{os.minor(device)}"
    (tmp_path / "consoles").write_text(f"tty0    -WU (EC p  )    4:7\nttyAMA0  -W- (E  p a)  {number}\n")
    with pytest.raises(
        PortError, match=r"in use by the kernel's console \(take `console=\d+` off its command"
    ):
        SerialPort(line[2])
    (tmp_path / "consoles").write_text("tty0    -WU (EC p  )    4:7\n")
    SerialPort(line[2]).close()


def test_candidates_are_the_ports_with_hardware_behind_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    names = ("ttyAMA0", "ttyS0", "ttyS2", "ttyUSB1", "ttyUSB0", "ttyACM0", "tty1", "ptmx")
    for name in names:
        (tmp_path / name).touch()
    for name, kind in (("ttyS0", "0"), ("ttyS2", "4")):
        (tmp_path / "class" / name).mkdir(parents=True)
        (tmp_path / "class" / name / "type").write_text(f"{kind}\n")
    monkeypatch.setattr(port, "_DEVICES", tmp_path)
    monkeypatch.setattr(port, "_CLASSES", tmp_path / "class")
    found = [Path(path).name for path in port.candidates()]
    assert found == ["ttyAMA0", "ttyS2", "ttyUSB0", "ttyUSB1", "ttyACM0"]


def test_other_end_closing_is_reported_not_taken_for_silence(line: Line) -> None:
    with SerialPort(line[2]) as opened:
        os.close(line[0])
        with pytest.raises(PortError, match="stopped working"):
            opened.read(1, soon())
        with pytest.raises(PortError, match="stopped working"):
            opened.write(b"x")


def test_closed_port_refuses_every_call(line: Line) -> None:
    opened = SerialPort(line[2])
    opened.close()
    opened.close()
    with pytest.raises(PortError):
        opened.write(b"x")
    with pytest.raises(PortError):
        opened.read(1, soon())
    with pytest.raises(PortError):
        opened.flush_input()
