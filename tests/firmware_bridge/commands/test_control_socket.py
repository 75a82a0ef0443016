from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from firmware_bridge.client import Client
from firmware_bridge.commands import Event
from firmware_bridge.commands.remote import RemoteCommands
from firmware_bridge.control.network import Listen
from firmware_bridge.control.server import MAX_LOCAL, ControlServer
from firmware_bridge.skills.manifest import Skill
from hardware.errors import CommandError, ControlError

TOKEN = "correct-horse-battery"
PATIENCE_S = 30.0
"""Time after which a test gives up on what must come."""


def until(true: Callable[[], bool]) -> None:
    """Wait until something is true."""
    end = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < end, "it did not come true"
        time.sleep(0.002)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "duck.sock"


@pytest.fixture
def make_server(path: Path, skills: dict[str, Skill]) -> Callable[..., ControlServer]:
    def make(**options: Any) -> ControlServer:
        options.setdefault("encode_tick", lambda tick: tick)
        return ControlServer(RemoteCommands(skills, "walk"), "remote", skills, path=path, **options)

    return make


@pytest.fixture
def server(make_server: Callable[..., ControlServer]) -> Iterator[Any]:
    """A server whose ticks are data already."""
    with make_server() as server:
        yield server


@pytest.fixture
def client(path: Path, server: ControlServer) -> Iterator[Client]:
    with Client(path, PATIENCE_S) as client:
        yield client


def raw(path: Path) -> socket.socket:
    """Connect without a client's manners."""
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(PATIENCE_S)
    connection.connect(str(path))
    return connection


def read_all(connection: socket.socket) -> bytes:
    """Read until the other end closes."""
    data = b""
    try:
        while more := connection.recv(65536):
            data += more
    except ConnectionResetError:
        pass
    return data


def test_the_socket_is_for_its_user_alone(server: ControlServer, path: Path) -> None:
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_client_drives(server: ControlServer, client: Client) -> None:
    client.start()
    client.command(vx=0.2, yaw=0.1, head=[0, 0.1, 0, 0], skill="trot")
    request = server.source.latest()
    assert (request.skill, request.command.tolist()) == ("trot", [0.2, 0, 0.1])
    assert (request.head.tolist(), request.event) == ([0, 0.1, 0, 0], Event.START)
    assert request.age_s < PATIENCE_S
    client.skill("stand")
    client.sit()
    assert (server.source.latest().skill, server.source.latest().event) == ("stand", None)


def test_a_refusal_reaches_the_client_with_its_reason(server: ControlServer, client: Client) -> None:
    with pytest.raises(CommandError, match=r"vx = 9 is outside \[-0.1, 0.3\]"):
        client.command(vx=9)
    with pytest.raises(CommandError, match="NaN is no JSON number"):
        client.command(vx=float("nan"))
    assert server.source.refused == 2


def test_a_client_that_goes_takes_its_command_along(server: ControlServer, path: Path) -> None:
    with Client(path, PATIENCE_S) as client:
        client.command(vx=0.2)
        assert server.source.latest().command.tolist() == [0.2, 0, 0]
    until(lambda: server.source.latest().command.tolist() == [0, 0, 0])


def test_the_status_is_there_before_the_first_tick_and_newest_after(
    server: ControlServer, client: Client
) -> None:
    assert client.status()["tick"] is None
    for number in range(3):
        server.publish({"number": number})  # type: ignore[arg-type]
    assert client.status()["tick"] == {"number": 2}


def test_a_watcher_sees_new_ticks_and_the_end(make_server: Callable[..., ControlServer], path: Path) -> None:
    with make_server() as server:
        client = Client(path, PATIENCE_S)
        ticks = client.watch(50)
        assert next(ticks) is None
        for number in range(3):
            server.publish({"number": number})  # type: ignore[arg-type]
            assert next(ticks) == {"number": number}
    assert list(ticks) == []
    client.close()


def test_a_watcher_gets_no_more_than_it_asked_for_whatever_others_do(
    server: ControlServer, path: Path
) -> None:
    done = threading.Event()

    def drive() -> None:
        with Client(path, PATIENCE_S) as other:
            number = 0
            while not done.wait(0.005):
                number += 1
                server.publish({"number": number})  # type: ignore[arg-type]
                other.status()

    thread = threading.Thread(target=drive)
    thread.start()
    with Client(path, PATIENCE_S) as client:
        began = time.monotonic()
        ticks = [tick for tick, _ in zip(client.watch(5), range(5), strict=False)]
        took = time.monotonic() - began
    done.set()
    thread.join()
    assert took >= 3 / 5  # the first comes at once
    assert len({tick["number"] for tick in ticks if tick}) >= 4


def test_a_loop_that_stands_still_is_shown_again(
    server: ControlServer, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("firmware_bridge.control.server.KEEPALIVE_S", 0.02)
    server.publish({"number": 1})  # type: ignore[arg-type]
    ticks = client.watch(50)
    assert [next(ticks) for _ in range(3)] == [{"number": 1}] * 3


def test_of_a_flood_the_newest_command_counts_and_nothing_queues(server: ControlServer, path: Path) -> None:
    with raw(path) as flood:
        lines = [json.dumps({"op": "command", "vx": number / 1e6}) for number in range(30_000)]
        flood.sendall("\n".join(lines).encode() + b'\n{"op": "command", "vx": 0.3}\n')
        until(lambda: server.source.latest().command.tolist() == [0.3, 0, 0])
    assert server.source.refused >= 1


def test_while_one_floods_another_is_heard(server: ControlServer, path: Path) -> None:
    ended = threading.Event()

    def flood() -> None:
        with raw(path) as connection:
            while not ended.is_set():
                try:
                    connection.sendall(b'{"op": "command", "vx": 0.1}\n' * 1000)
                except OSError:
                    return

    thread = threading.Thread(target=flood)
    thread.start()
    until(lambda: server.source.latest().command[0] == 0.1)
    with Client(path, PATIENCE_S) as client:
        client.stop()
    assert server.source.latest().event is Event.QUIT
    ended.set()
    thread.join()


def test_a_line_without_end_is_refused_and_its_sender_dropped(server: ControlServer, path: Path) -> None:
    with raw(path) as hostile:
        hostile.sendall(b"7" * 5000)
        assert b"a line is longer than 4096 bytes" in read_all(hostile)
    until(lambda: server.source.refused == 1)


def test_garbage_is_answered_and_the_connection_goes_on(server: ControlServer, path: Path) -> None:
    with raw(path) as hostile:
        hostile.sendall(b'\xff\xfe\x00garbage\n{"op": "limp"}\n')
        hostile.shutdown(socket.SHUT_WR)
        replies = [json.loads(line) for line in read_all(hostile).splitlines()]
    assert [reply["ok"] for reply in replies] == [False, True]
    assert server.source.latest().event is Event.LIMP


def test_a_reader_too_slow_for_its_ticks_is_dropped(
    make_server: Callable[..., ControlServer], path: Path
) -> None:
    with (
        make_server(encode_tick=lambda tick: {"number": tick, "much": "x" * 50_000}) as server,
        raw(path) as slow,
    ):
        slow.sendall(b'{"op": "watch", "hz": 50}\n')
        with Client(path, PATIENCE_S) as client:
            number = 0

            def gone() -> bool:
                nonlocal number
                number += 1
                server.publish(number)  # type: ignore[arg-type]
                return client.status()["drive"]["clients"] == 1

            until(gone)
        assert len(read_all(slow)) < 2_000_000


def test_one_connection_too_many_is_told_so(server: ControlServer, path: Path) -> None:
    clients = [Client(path, PATIENCE_S) for _ in range(MAX_LOCAL)]
    assert clients[-1].status()["drive"]["clients"] == MAX_LOCAL
    with raw(path) as extra:
        assert b"8 others are connected already" in read_all(extra)
    clients.pop().close()
    until(lambda: clients[0].status()["drive"]["clients"] == MAX_LOCAL - 1)
    clients.append(Client(path, PATIENCE_S))
    assert clients[-1].status()["drive"]["clients"] == MAX_LOCAL
    for client in clients:
        client.close()


def test_a_second_drive_is_refused_and_the_first_goes_on(
    make_server: Callable[..., ControlServer], server: ControlServer, client: Client
) -> None:
    with pytest.raises(ControlError, match="another drive runs, process"):
        make_server().__enter__()
    assert client.status()["tick"] is None


def test_a_path_too_long_for_a_socket_is_refused(skills: dict[str, Skill], tmp_path: Path) -> None:
    path = tmp_path / ("long" * 40)
    with pytest.raises(ControlError, match="cannot listen at"):
        ControlServer(RemoteCommands(skills, "walk"), "remote", skills, path=path).__enter__()


def test_after_the_end_a_client_learns_that_the_drive_has_ended(
    make_server: Callable[..., ControlServer], path: Path
) -> None:
    with make_server():
        client = Client(path, PATIENCE_S)
        assert not client.wait(0.01)
    assert client.wait(PATIENCE_S)
    with pytest.raises(ControlError, match="the drive has ended"):
        client.status()
    client.close()
    assert not path.exists()
    with pytest.raises(ControlError, match=r"no drive runs at .*begin one by `duck run`"):
        Client(path)


@pytest.fixture
def listen() -> Listen:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return Listen("127.0.0.1", free.getsockname()[1], TOKEN)


def test_with_the_token_a_client_drives_over_the_network(
    make_server: Callable[..., ControlServer], listen: Listen
) -> None:
    with make_server(listen=listen) as server:
        with Client.network(listen.host, listen.port, TOKEN, PATIENCE_S) as client:
            client.command(vx=0.2)
            assert server.source.latest().command.tolist() == [0.2, 0, 0]
        until(lambda: server.source.latest().command.tolist() == [0, 0, 0])


def test_without_the_token_nothing_is_carried_out(
    make_server: Callable[..., ControlServer], listen: Listen
) -> None:
    with make_server(listen=listen) as server:
        with pytest.raises(CommandError, match="the first line must be"):
            Client.network(listen.host, listen.port, "a wrong one, sorry", PATIENCE_S)
        with socket.create_connection((listen.host, listen.port), PATIENCE_S) as hostile:
            hostile.sendall(b'{"op": "stop"}\n{"op": "stop"}\n')
            replies = read_all(hostile).splitlines()
        assert [json.loads(line)["ok"] for line in replies] == [False]
        assert server.source.latest().event is None
        assert server.source.refused == 2


def test_who_does_not_bring_its_token_is_dropped_and_keeps_nobody_out(
    make_server: Callable[..., ControlServer], listen: Listen, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("firmware_bridge.control.session.TOKEN_S", 0.2)
    with make_server(listen=listen):
        idle = [socket.create_connection((listen.host, listen.port), PATIENCE_S) for _ in range(20)]
        with Client(path, PATIENCE_S) as local:
            local.stop()
        for connection in idle:
            read_all(connection)
            connection.close()


def test_without_listen_there_is_no_network(server: ControlServer, listen: Listen) -> None:
    with pytest.raises(ControlError, match="no drive listens at"):
        Client.network(listen.host, listen.port, TOKEN)


def test_an_address_of_another_machine_is_refused(
    make_server: Callable[..., ControlServer], path: Path
) -> None:
    with pytest.raises(ControlError, match=r"cannot listen at 192.0.2.1:9870.*address of this machine"):
        make_server(listen=Listen("192.0.2.1", 9870, TOKEN)).__enter__()
    assert not path.exists()
