"""A client of a running drive's control socket, for other programs.

    from firmware_bridge.client import Client

    with Client() as duck:                      # a drive was begun by `duck run --remote`
        duck.start()
        for _ in range(50):
            duck.command(vx=0.2, yaw=0.1)       # must be renewed within half a second
            time.sleep(0.1)
        duck.sit()

Needs the standard library only, and nothing of a robot.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from firmware_bridge.control.path import running_socket
from hardware.errors import CommandError, ControlError

MAX_LINE_BYTES = 1024 * 1024
"""Longest answer that is read; a tick takes below 4 kB."""
READ_BYTES = 64 * 1024


class Client:
    """A connection to a drive. Not for several threads at once; give each its own.

    When the connection ends, the drive forgets the command that came through it.

    Args:
        path: the control socket; None finds that of this user's drive.
        timeout_s: longest wait for an answer [s].

    Raises:
        ControlError: no drive runs there.
    """

    def __init__(self, path: Path | str | None = None, timeout_s: float = 2.0) -> None:
        place = Path(path) if path is not None else running_socket()
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(timeout_s)
        try:
            connection.connect(str(place))
        except OSError as error:
            connection.close()
            raise ControlError(
                f"no drive runs at {place} ({error.strerror or error}); begin one by `duck run`"
            ) from error
        self._take(connection)

    @classmethod
    def network(cls, host: str, port: int, token: str, timeout_s: float = 2.0) -> Self:
        """Connect to a drive that listens on the network, begun by `duck run --listen HOST:PORT`.

        Args:
            host: the robot.
            port: TCP port.
            token: the secret it was given.
            timeout_s: longest wait for an answer [s].

        Raises:
            ControlError: no drive listens there.
            CommandError: the token is wrong.
        """
        client = cls.__new__(cls)
        try:
            connection = socket.create_connection((host, port), timeout_s)
        except OSError as error:
            raise ControlError(
                f"no drive listens at {host}:{port} ({error.strerror or error}); begin one by "
                "`duck run --listen HOST:PORT`"
            ) from error
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client._take(connection)
        try:
            client._ask({"token": token})
        except (CommandError, ControlError):
            client.close()
            raise
        return client

    def command(
        self,
        vx: float = 0.0,
        vy: float = 0.0,
        yaw: float = 0.0,
        head: Sequence[float] | None = None,
        skill: str | None = None,
    ) -> None:
        """Drive for up to half a second; give the command again before that.

        Args:
            vx: speed forward [m/s].
            vy: speed to the left [m/s].
            yaw: turning to the left [rad/s].
            head: offsets of neck pitch, head pitch, head yaw and head roll [rad]; None for zero.
            skill: name of the skill, None to stay with the present one.

        Raises:
            CommandError: a value is outside the skill's box, or the drive takes its commands elsewhere.
            ControlError: the drive has ended.
        """
        request: dict[str, Any] = {"op": "command", "vx": float(vx), "vy": float(vy), "yaw": float(yaw)}
        if head is not None:
            request["head"] = [float(offset) for offset in head]
        if skill is not None:
            request["skill"] = skill
        self._ask(request)

    def skill(self, name: str) -> None:
        """Change to another skill.

        Raises:
            CommandError: no skill has that name, or the drive takes its commands elsewhere.
            ControlError: the drive has ended.
        """
        self._ask({"op": "skill", "name": name})

    def start(self) -> None:
        """Let a limp or fallen duck rise.

        Raises:
            CommandError: the drive takes its commands elsewhere.
            ControlError: the drive has ended.
        """
        self._ask({"op": "start"})

    def sit(self) -> None:
        """Sit the duck down and leave it limp; the drive goes on.

        Raises:
            ControlError: the drive has ended.
        """
        self._ask({"op": "sit"})

    def limp(self) -> None:
        """Switch torque off at once; the drive goes on.

        Raises:
            ControlError: the drive has ended.
        """
        self._ask({"op": "limp"})

    def stop(self) -> None:
        """End the drive the safe way; returns at once, see `wait`.

        Raises:
            ControlError: the drive has ended already.
        """
        self._ask({"op": "stop"})

    def status(self) -> dict[str, Any]:
        """Return `drive` (process, source of commands, skills with boxes) and `tick`, None before the first.

        `firmware_bridge.control.telemetry.tick_data` says what a tick holds.

        Raises:
            ControlError: the drive has ended.
        """
        answer = self._ask({"op": "status"})
        return {"drive": answer.get("drive"), "tick": answer.get("tick")}

    def watch(self, hz: float = 10.0) -> Iterator[dict[str, Any] | None]:
        """Give ticks until the drive ends; afterwards this connection is good for nothing else.

        Args:
            hz: how many a second, at most 50 [Hz]. One that has not changed for a second comes again.

        Yields:
            A tick, None before the drive's first.

        Raises:
            CommandError: the rate is not valid.
            ControlError: the drive does not answer.
        """
        self._ask({"op": "watch", "hz": hz})
        while (line := self._line()) is not None:
            yield line.get("tick")

    def wait(self, timeout_s: float) -> bool:
        """Wait until the drive has ended; return whether it has.

        Args:
            timeout_s: longest time to wait [s].
        """
        end = time.monotonic() + timeout_s
        try:
            while (left := end - time.monotonic()) > 0:
                self._connection.settimeout(left)
                if not self._connection.recv(READ_BYTES):
                    return True
        except TimeoutError:
            return False
        except OSError:
            return True
        return False

    def close(self) -> None:
        """Close the connection; the drive forgets the command that came through it."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _take(self, connection: socket.socket) -> None:
        self._connection, self._inbox = connection, b""

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            self._connection.sendall(json.dumps(request).encode() + b"\n")
        except OSError as error:
            raise _ended() from error
        answer = self._line()
        if answer is None:
            raise _ended()
        if answer.get("ok") is not True:
            raise CommandError(str(answer.get("error", "the drive refused without a reason")))
        return answer

    def _line(self) -> dict[str, Any] | None:
        """Return the next line, None when the drive has ended."""
        while b"\n" not in self._inbox:
            try:
                data = self._connection.recv(READ_BYTES)
            except TimeoutError as error:
                raise ControlError("the drive does not answer; see what `duck run` says") from error
            except OSError:
                data = b""
            if not data:
                return None
            self._inbox += data
            if len(self._inbox) > MAX_LINE_BYTES:
                raise ControlError(f"an answer is over {MAX_LINE_BYTES} bytes; this is no drive's socket")
        line, _, self._inbox = self._inbox.partition(b"\n")
        return _object(line)


def _ended() -> ControlError:
    return ControlError("the drive has ended; begin another by `duck run`")


def _object(line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ControlError(f"an answer is no JSON ({error}); this is no drive's socket") from error
    if not isinstance(value, dict):
        raise ControlError(f"an answer is {type(value).__name__}, not an object; this is no drive's socket")
    return value
