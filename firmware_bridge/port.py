"""The serial port: bytes out, bytes in before a deadline. The seam at which tests put another wire."""

from __future__ import annotations

import errno
import logging
import os
import select
import termios
import time
from pathlib import Path
from types import TracebackType
from typing import Protocol

import serial

from hardware import servo
from hardware.errors import PortError

BITS_PER_BYTE = 10
"""Start bit, eight data bits, stop bit."""
WRITE_TIMEOUT_S = 0.5
"""Longest a write may block [s]; the longest packet takes 3 ms at 1 Mbaud, so only a dead driver does."""
PSEUDO_TERMINALS = "/dev/pts/"
_CHUNK = 4096
_CLOSED = -1
"""No descriptor; system calls refuse it."""

_log = logging.getLogger(__name__)


class Port(Protocol):
    """What the bus needs of a wire."""

    def write(self, data: bytes) -> None:
        """Send bytes."""

    def read(self, count: int, deadline: float) -> bytes:
        """Return what arrives, once that is `count` bytes or more, or at the deadline [s, time.monotonic]."""

    def flush_input(self) -> None:
        """Forget what arrived and was not read."""


class SerialPort:
    """A serial device, opened for this process alone.

    Args:
        path: device, for example `/dev/ttyAMA0`.
        baud: speed [1/s].

    Raises:
        PortError: the device is absent, forbidden, in use, or does not take this speed.
    """

    def __init__(self, path: str, baud: int = servo.BAUD) -> None:
        self.path = path
        self._byte_time = BITS_PER_BYTE / baud
        _refuse_shared(path)
        try:
            self._serial = serial.Serial(path, baud, timeout=0, write_timeout=WRITE_TIMEOUT_S, exclusive=True)
        except (serial.SerialException, ValueError) as error:
            raise PortError(_explain(path, baud, error)) from error
        self._fd: int = self._serial.fileno()
        try:
            # USB adapters then hand over bytes after 1 ms; by default they collect them for up to 16 ms.
            self._serial.set_low_latency_mode(True)
        except (ValueError, OSError):
            _log.debug("%s has no low-latency switch", path)

    def write(self, data: bytes) -> None:
        """Send bytes.

        Raises:
            PortError: the device is gone or its driver takes no more bytes.
        """
        rest = memoryview(data)
        while rest:
            try:
                ready = select.select([], [self._fd], [], WRITE_TIMEOUT_S)[1]
                sent = os.write(self._fd, rest) if ready else 0
            except (OSError, ValueError) as error:
                raise self._gone(error) from error
            if not sent:
                raise self._gone(f"it took no bytes for {WRITE_TIMEOUT_S:g} s")
            rest = rest[sent:]

    def read(self, count: int, deadline: float) -> bytes:
        """Return what arrives, once that is `count` bytes or more, or at the deadline.

        Sleeps while the wire carries the missing bytes, so that a reply costs a few system calls and not one
        for each handful of bytes.

        Args:
            count: bytes wanted.
            deadline: latest return [s, on the clock of time.monotonic].

        Raises:
            PortError: the device is gone.
        """
        received = bytearray()
        while (missing := count - len(received)) > 0:
            if received:
                time.sleep(max(0.0, min(missing * self._byte_time, deadline - time.monotonic())))
            wait = deadline - time.monotonic()
            chunk = self._take(max(0.0, wait))
            received += chunk
            if not chunk or wait <= 0:
                break
        return bytes(received)

    def flush_input(self) -> None:
        """Forget what arrived and was not read.

        Raises:
            PortError: the device is gone.
        """
        try:
            termios.tcflush(self._fd, termios.TCIFLUSH)
        except (termios.error, ValueError) as error:
            raise self._gone(error) from error

    def close(self) -> None:
        """Give the device back."""
        self._serial.close()
        self._fd = _CLOSED

    def __enter__(self) -> SerialPort:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _take(self, wait: float) -> bytes:
        """Return what is there or comes first within `wait` [s]; empty when nothing comes."""
        try:
            if not select.select([self._fd], [], [], wait)[0]:
                return b""
            data = os.read(self._fd, _CHUNK)
        except (OSError, ValueError) as error:
            raise self._gone(error) from error
        if not data:
            raise self._gone("its other end closed")
        return data

    def _gone(self, reason: object) -> PortError:
        return PortError(f"{self.path} stopped working ({reason}); check the cable and open it again")


def _explain(path: str, baud: int, error: Exception) -> str:
    code = error.errno if isinstance(error, OSError) else None
    if code == errno.ENOENT:
        return f"serial port {path} does not exist; connect it, or name one of {_candidates()}"
    if code == errno.EACCES:
        return f"no permission to open {path}; add this user to the group that owns it (often `dialout`)"
    if code in (errno.EAGAIN, errno.EBUSY):
        return f"serial port {path} is in use by {_lock_owner(path)}; stop it and try again"
    return f"cannot open {path} at {baud} baud ({error}); name a serial port that supports this speed"


def _candidates() -> str:
    found = sorted(
        str(path) for kind in ("ttyAMA*", "ttyUSB*", "ttyACM*") for path in Path("/dev").glob(kind)
    )
    return ", ".join(found) or "the ports that `ls /dev/tty*` shows"


def _refuse_shared(path: str) -> None:
    """Refuse a port that another process has open without a lock, such as a login console."""
    if os.path.realpath(path).startswith(PSEUDO_TERMINALS):
        return  # whoever made a pseudo-terminal keeps both of its ends open
    if os.path.exists(path) and not _is_terminal(path):
        raise PortError(f"{path} is not a serial port; name a device such as /dev/ttyUSB0 or /dev/ttyAMA0")
    users = users_of(path)
    if users:
        raise PortError(f"serial port {path} is in use by {', '.join(users)}; stop it and try again")


def _is_terminal(path: str) -> bool:
    """Return whether a device is a serial line; one that may not be opened is left to the real attempt."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError:
        return True
    try:
        return os.isatty(descriptor)
    finally:
        os.close(descriptor)


def users_of(path: str) -> list[str]:
    """Return `process PID (name)` for each other process that has the device open, as far as /proc shows."""
    device = os.path.realpath(path)
    users = []
    for process in Path("/proc").glob("[0-9]*"):
        if int(process.name) == os.getpid():
            continue
        try:
            if any(os.path.realpath(link) == device for link in (process / "fd").iterdir()):
                users.append(_process_name(int(process.name)))
        except OSError:
            continue  # it ended, or belongs to another user
    return users


def _lock_owner(path: str) -> str:
    """Name the process that holds the lock on a device, from the inode in /proc/locks."""
    try:
        inode = str(os.stat(path).st_ino)
        lines = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    except OSError:
        return "another program"
    owners = [int(f[4]) for f in lines if len(f) > 5 and f[1] == "FLOCK" and f[5].split(":")[-1] == inode]
    return _process_name(owners[0]) if owners else "another program"


def _process_name(pid: int) -> str:
    try:
        return f"process {pid} ({Path(f'/proc/{pid}/comm').read_text().strip()})"
    except OSError:
        return f"process {pid}"
