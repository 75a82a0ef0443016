from __future__ import annotations

import errno
import os
from collections.abc import Iterator

import pytest

from firmware_bridge.commands import FixedCommand, LineCommands


class Pipe:
    """A line to a `LineCommands`, with a time that the test sets."""

    def __init__(self) -> None:
        self.read_end, self.write_end = os.pipe()
        self.now_s = 5.0
        self.said: list[str] = []
        self.commands = LineCommands(self.read_end, self.said.append, lambda: self.now_s)

    def send(self, text: str) -> None:
        os.write(self.write_end, text.encode())


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    pipe = Pipe()
    yield pipe
    os.close(pipe.read_end)
    if pipe.write_end >= 0:
        os.close(pipe.write_end)


def test_a_typed_command_never_ages() -> None:
    request = FixedCommand([0.2, 0.0, -0.3], "walk").latest()
    assert (request.command.tolist(), request.age_s) == ([0.2, 0.0, -0.3], 0.0)
    assert (request.skill, request.head.tolist(), request.event) == ("walk", [0.0] * 4, None)


def test_who_types_one_command_or_pipes_lines_wants_the_duck_to_rise_at_once(pipe: Pipe) -> None:
    assert not FixedCommand([0.0, 0.0, 0.0]).interactive
    assert not pipe.commands.interactive


def test_before_the_first_line_there_is_no_live_command(pipe: Pipe) -> None:
    assert pipe.commands.latest().age_s == float("inf")


def test_the_newest_line_counts_and_ages(pipe: Pipe) -> None:
    pipe.send("0.1 0 0\n0.2 -0.1 3e-1\n")
    assert pipe.commands.latest().command.tolist() == [0.2, -0.1, 0.3]
    pipe.now_s += 0.7
    assert pipe.commands.latest().age_s == pytest.approx(0.7)


def test_a_line_in_two_pieces_is_one_command(pipe: Pipe) -> None:
    pipe.send("0.1 0")
    assert pipe.commands.latest().age_s == float("inf")
    pipe.send(".2 0.3\n")
    assert pipe.commands.latest().command.tolist() == [0.1, 0.2, 0.3]


@pytest.mark.parametrize(
    "line", ["", "0.1 0.2", "0.1 0.2 0.3 0.4", "nan 0 0", "inf 0 0", "a b c", "\x00\xff 1 2"]
)
def test_a_line_that_is_no_command_is_counted_and_the_last_one_ages_on(pipe: Pipe, line: str) -> None:
    pipe.send("0.1 0.2 0.3\n")
    pipe.commands.latest()
    pipe.now_s += 0.6
    pipe.send(line + "\n")
    request = pipe.commands.latest()
    assert (request.command.tolist(), pipe.commands.refused) == ([0.1, 0.2, 0.3], 1)
    assert request.age_s == pytest.approx(0.6)


def test_a_flood_without_a_line_end_is_forgotten(pipe: Pipe) -> None:
    for _ in range(20):
        pipe.send("7" * 4000)
        pipe.commands.latest()
    assert len(pipe.commands._rest) <= 256
    pipe.send("\n0.1 0 0\n")
    assert pipe.commands.latest().command.tolist() == [0.1, 0, 0]


def test_a_sender_that_closed_the_pipe_goes_stale_without_an_error(pipe: Pipe) -> None:
    pipe.send("0.1 0 0\n")
    os.close(pipe.write_end)
    pipe.write_end = -1
    for _ in range(3):
        pipe.now_s += 1.0
        request = pipe.commands.latest()
    assert request.age_s == pytest.approx(2.0)


def test_a_terminal_that_may_not_be_read_goes_stale_and_is_told_once(
    pipe: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(descriptor: int, count: int) -> bytes:
        raise OSError(errno.EIO, "Input/output error")  # what a background process gets

    pipe.send("0.1 0 0\n")
    pipe.commands.latest()
    monkeypatch.setattr("firmware_bridge.commands.lines.os.read", read)
    pipe.send("0.2 0 0\n")
    for _ in range(3):
        pipe.now_s += 1.0
        request = pipe.commands.latest()
    assert (request.command.tolist(), request.age_s) == ([0.1, 0, 0], pytest.approx(3.0))
    (line,) = pipe.said
    assert "standard input cannot be read (Input/output error); run in the foreground, or" in line
