"""The control socket: who drives or watches from another program, without ever slowing the loop.

A thread of its own answers. From the loop it takes one reference a tick, and gives it one request and a set
of at most three events. It works in passes at least `PASS_S` apart and does a bounded amount in each, so that
not even a flood keeps the interpreter from the loop for long.
"""

from __future__ import annotations

import selectors
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from firmware_bridge.commands.request import CommandSource
from firmware_bridge.control.desk import Desk, Supervised
from firmware_bridge.control.network import Listen
from firmware_bridge.control.path import SocketClaim, socket_places
from firmware_bridge.control.session import Session, encode
from firmware_bridge.control.telemetry import tick_data
from firmware_bridge.drive.summary import Tick
from firmware_bridge.skills.manifest import Skill
from hardware.errors import ControlError

PASS_S = 0.01
"""Least time between two passes [s]; a command waits no longer than that, half a tick."""
IDLE_S = 0.5
"""Longest wait for something to do [s]."""
KEEPALIVE_S = 1.0
"""Time without a new tick after which a watcher is sent the last one again [s]."""
MAX_LOCAL, MAX_NETWORK = 8, 4
"""Connections at once; apart, so that nobody on the network can keep a local `duck stop` out."""
JOIN_S = 1.0


class ControlServer:
    """Context in which other programs can watch a drive, stop it, and, if it is to be, drive it.

    Args:
        source: where the drive's commands come from; `RemoteCommands` lets other programs drive.
        name: what to call that source.
        skills: the bundle's skills by name.
        path: the socket; None takes the user's usual one.
        listen: where to listen on the network, None for nowhere.
        encode_tick: a tick as data; called by the server's thread.

    Attributes:
        source: what the loop is to take its requests from: `source`, and the stops asked for here.

    Raises:
        ControlError: another drive runs here, or the socket cannot be made.
    """

    def __init__(
        self,
        source: CommandSource,
        name: str,
        skills: Mapping[str, Skill],
        *,
        path: Path | None = None,
        listen: Listen | None = None,
        encode_tick: Callable[[Tick], dict[str, Any]] = tick_data,
    ) -> None:
        self._path, self._listen, self._encode = path or socket_places()[0], listen, encode_tick
        self._desk = Desk(source, name, skills, self._tick_data)
        self.source: CommandSource = Supervised(source, self._desk)
        self._published: Tick | None = None
        self._encoded: tuple[Tick | None, dict[str, Any] | None, bytes] = (None, None, encode({"tick": None}))
        self._sessions: list[Session] = []
        self._selector = selectors.DefaultSelector()
        self._closing = threading.Event()
        self._stack = ExitStack()
        self._thread = threading.Thread(target=self._work, name="control", daemon=True)

    def publish(self, tick: Tick) -> None:
        """Show a tick to those who watch; costs the loop one attribute."""
        self._published = tick

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(self._selector)
            stack.callback(self._close_sessions)  # after the path is free: they wait for the end
            stack.enter_context(SocketClaim(self._path))
            self._register(stack.enter_context(_local_listener(self._path)), None)
            if self._listen is not None:
                self._register(stack.enter_context(_network_listener(self._listen)), self._listen)
            sleeper, self._waker = socket.socketpair()
            stack.enter_context(sleeper)
            stack.enter_context(self._waker)
            self._selector.register(sleeper, selectors.EVENT_READ, lambda: None)
            self._stack = stack.pop_all()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        self._waker.send(b"x")
        self._thread.join(JOIN_S)
        self._stack.close()

    def _register(self, listener: socket.socket, listen: Listen | None) -> None:
        listener.setblocking(False)
        self._selector.register(listener, selectors.EVENT_READ, partial(self._accept, listener, listen))

    def _close_sessions(self) -> None:
        for session in self._sessions:
            session.connection.close()

    def _work(self) -> None:
        while not self._closing.is_set():
            for key, _ in self._selector.select(self._patience()):
                key.data()
            now = time.monotonic()
            for session in tuple(self._sessions):
                self._look_after(session, now)
            self._closing.wait(PASS_S)

    def _look_after(self, session: Session, now: float) -> None:
        self._stream(session, now)
        session.expire(now)
        self._desk.refused += session.refused
        session.refused = 0
        if session.over:
            self._end(session)

    def _patience(self) -> float:
        """Return how long there is nothing to do unless someone says something [s]."""
        now = time.monotonic()
        dues = [s.due - now for s in self._sessions if s.party is not None and s.party.period_s is not None]
        blocked = any(session.waiting for session in self._sessions)
        return max(0.0, min([*dues, 0.0 if blocked else IDLE_S]))

    def _accept(self, listener: socket.socket, listen: Listen | None) -> None:
        try:
            connection, _ = listener.accept()
        except OSError:  # it went again, or this process has no descriptors left: the next pass tries again
            return
        connection.setblocking(False)
        session = Session(connection, listen, time.monotonic())
        most = MAX_LOCAL if listen is None else MAX_NETWORK
        if sum((other.listen is None) == (listen is None) for other in self._sessions) >= most:
            session.refuse(f"{most} others are connected already; end one of them")
            connection.close()
            return
        self._sessions.append(session)
        if session.party is not None:
            self._desk.parties.append(session.party)
        self._selector.register(connection, selectors.EVENT_READ, partial(self._serve, session))

    def _serve(self, session: Session) -> None:
        for line in session.read_lines():
            if session.party is not None:
                session.send(encode(self._desk.answer(line, session.party)))
            elif session.admit(line) and session.party is not None:
                self._desk.parties.append(session.party)
            else:
                return

    def _stream(self, session: Session, now: float) -> None:
        if session.waiting:
            session.send(b"")
        period = session.party.period_s if session.party is not None else None
        if period is None or now < session.due:
            return
        line = self._newest()[2]
        if line is session.last and now - session.sent < KEEPALIVE_S:
            return
        session.send(line)
        session.last, session.sent = line, now
        session.due = max(session.due + period, now + period / 2)  # late ones do not come in bursts

    def _end(self, session: Session) -> None:
        self._selector.unregister(session.connection)
        session.connection.close()
        self._sessions.remove(session)
        if session.party is not None:
            self._desk.leave(session.party)

    def _newest(self) -> tuple[Tick | None, dict[str, Any] | None, bytes]:
        """Return the newest tick, as data, and as a line; turned into these once, for all who watch."""
        tick = self._published
        if tick is not None and tick is not self._encoded[0]:
            data = self._encode(tick)
            self._encoded = (tick, data, encode({"tick": data}))
        return self._encoded

    def _tick_data(self) -> dict[str, Any] | None:
        return self._newest()[1]


def _local_listener(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(str(path))
        path.chmod(0o600)  # before it listens, so nobody else ever gets in
        listener.listen()
    except OSError as error:
        listener.close()
        reason = error.strerror or str(error)
        raise ControlError(f"cannot listen at {path}: {reason}; choose another --socket") from error
    return listener


def _network_listener(listen: Listen) -> socket.socket:
    try:
        family = socket.getaddrinfo(listen.host, listen.port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((listen.host, listen.port), family=family)
    except OSError as error:
        place = f"{listen.host}:{listen.port}"
        raise ControlError(
            f"cannot listen at {place}: {error.strerror}; name an address of this machine and a free port"
        ) from error
