"""The serial port: bytes out, bytes in before a deadline. The seam at which tests put another wire."""

from __future__ import annotations

import errno
import logging
import os
import select
import time
from pathlib import Path
from types import TracebackType
from typing import Protocol

import serial

from firmware_bridge.wire import port_owner
from hardware import servo
from hardware.errors import BusTimeoutError, PortError

BITS_PER_BYTE = 10
"""Start bit, eight data bits, stop bit."""
WRITE_TIMEOUT_S = 0.01
"""Longest a write may block [s], half a tick. A driver's buffer takes thousands of bytes at once, so one that
is full for so long belongs to a line that stands still."""
_CHUNK = 4096
_MOST_STALE = 65_536
"""Bytes that are thrown away at a time; a line that brings more without a pause never falls silent."""
_DEVICES = Path("/dev")
_CLASSES = Path("/sys/class/tty")
_NAMES = ("ttyAMA*", "ttyS*", "ttyUSB*", "ttyACM*")
_CLOSED = -1
"""No descriptor; system calls refuse it."""

_log = logging.getLogger(__name__)


class Port(Protocol):
    """What the bus needs of a wire."""

    def write(self, data: bytes) -> None:
        """Send bytes."""

    def read(self, count: int, deadline: float) -> bytes:
        """Return what arrives, once that is `count` bytes or more, or at the deadline [s, time.monotonic]."""

    def flush_input(self) -> bytes:
        """Forget what arrived and was not read, and return it, so that it can be counted."""


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
            self._serial = serial.Serial(path, baud, timeout=0, exclusive=True)
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
            BusTimeoutError: the driver takes no more bytes.
            PortError: the device is gone.
        """
        rest = memoryview(data)
        while rest:
            try:
                sent = self._hand_over(rest)
            except (OSError, ValueError) as error:
                raise self._gone(error) from error
            if not sent:
                raise BusTimeoutError(
                    f"{self.path} took no bytes for {WRITE_TIMEOUT_S:g} s; check its adapter and cable"
                )
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

    def flush_input(self) -> bytes:
        """Forget what arrived and was not read, and return it.

        Raises:
            PortError: the device is gone.
        """
        stale = b""
        while len(stale) < _MOST_STALE and (chunk := self._take(0.0)):
            stale += chunk
        return stale

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

    def _hand_over(self, data: memoryview) -> int:
        """Return how many bytes the driver took, 0 if its buffer stays full."""
        try:
            return os.write(self._fd, data)
        except BlockingIOError:
            return os.write(self._fd, data) if select.select([], [self._fd], [], WRITE_TIMEOUT_S)[1] else 0

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
    known = ", ".join(candidates()) or "the ports that `ls /dev/tty*` shows"
    if code == errno.ENOENT:
        return f"serial port {path} does not exist; connect it, or name one of {known}"
    if code == errno.EACCES:
        return f"no permission to open {path}; add this user to the group that owns it (often `dialout`)"
    if code in (errno.EAGAIN, errno.EBUSY):
        return f"serial port {path} is in use by {port_owner.lock_owner(path)}; stop it and try again"
    return f"cannot open {path} at {baud} baud ({error}); name a serial port that supports this speed"


def candidates() -> list[str]:
    """Return the serial ports of this machine: a board's own lines, then USB adapters."""
    paths = [path for pattern in _NAMES for path in sorted(_DEVICES.glob(pattern))]
    return [str(path) for path in paths if _has_hardware(path.name)]


def _has_hardware(name: str) -> bool:
    """Return whether there is a chip behind a port; kernels also list lines of type 0 that have none."""
    try:
        return (_CLASSES / name / "type").read_text().strip() != "0"
    except OSError:
        return True  # only some of the boards' own lines have a type


def _refuse_shared(path: str) -> None:
    """Refuse what is no serial line, and one that is used without a lock, such as by a login console."""
    if os.path.exists(path) and not _is_terminal(path):
        raise PortError(f"{path} is not a serial port; name a device such as /dev/ttyUSB0 or /dev/ttyAMA0")
    users = port_owner.users_of(path)
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
