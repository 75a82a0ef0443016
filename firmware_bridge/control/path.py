"""Where the control socket of a drive lies, and who owns it. Light: `duck stop` needs nothing else."""

from __future__ import annotations

import fcntl
import os
import stat
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from hardware.errors import ControlError

NAME = "duck.sock"
_PID_BYTES = 20


def socket_places() -> tuple[Path, ...]:
    """Return where this user's socket may lie, the usual place first.

    A drive that a service started may have no session, and so another first place than the user's shell.
    """
    places = [Path(tempfile.gettempdir()) / f"microduck-{os.getuid()}" / NAME]
    session = os.environ.get("XDG_RUNTIME_DIR")
    if session and os.path.isdir(session):
        places.insert(0, Path(session) / "microduck" / NAME)
    return tuple(places)


def running_socket() -> Path:
    """Return the socket to connect to: the first that exists, or else the usual one."""
    places = socket_places()
    return next((path for path in places if path.exists()), places[0])


class SocketClaim:
    """Context in which this process owns a socket's path; what a dead one left there is removed.

    Ownership is a lock on a file beside the socket, which the kernel releases however a process ends.

    Args:
        path: the socket.

    Raises:
        ControlError: another drive owns it, the folder is not this user's own, or something else lies there.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, path.with_name(f"{path.name}.lock")

    def __enter__(self) -> Self:
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            self._descriptor = os.open(self._lock, flags, 0o600)
        except OSError as error:
            raise ControlError(
                f"cannot make the control socket {self._path}: {error.strerror}; choose another --socket"
            ) from error
        try:
            self._own()
        except ControlError:
            os.close(self._descriptor)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._path.unlink(missing_ok=True)
        os.close(self._descriptor)  # the lock's file stays: to remove it would part two who wait for it

    def _own(self) -> None:
        _refuse_others_folder(self._path)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            pid = os.pread(self._descriptor, _PID_BYTES, 0).decode("ascii", "replace").strip() or "unknown"
            raise ControlError(
                f"another drive runs, process {pid}; end it by `duck stop`, or give this one another --socket"
            ) from error
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)
        self._remove_leftover()

    def _remove_leftover(self) -> None:
        try:
            mode = self._path.lstat().st_mode
        except FileNotFoundError:
            return
        if not stat.S_ISSOCK(mode):
            raise ControlError(f"{self._path} is no socket; remove it, or choose another --socket")
        self._path.unlink()


def _refuse_others_folder(path: Path) -> None:
    """Refuse a folder in which another user could put a socket of their own."""
    found = path.parent.stat()
    shared = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if shared or found.st_uid not in (os.getuid(), 0):
        raise ControlError(
            f"others may write to the folder {path.parent}; make it your own and give it mode 0700, "
            "or choose another --socket"
        )
