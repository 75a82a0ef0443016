from __future__ import annotations

import os
import select
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from firmware_bridge.commands.terminal import KeyTerminal
from hardware.errors import ConfigError


class Pair:
    """A pseudo-terminal: the user's end, and the path of the program's."""

    def __init__(self) -> None:
        self.user, self.program = os.openpty()
        self.path = os.ttyname(self.program)

    def modes(self) -> list:
        return termios.tcgetattr(self.program)

    def type(self, data: bytes) -> None:
        os.write(self.user, data)
        select.select([self.program], [], [], 10)

    def close(self) -> None:
        for descriptor in (self.user, self.program):
            if descriptor >= 0:
                os.close(descriptor)
        self.user = self.program = -1


@pytest.fixture
def pair() -> Iterator[Pair]:
    pair = Pair()
    yield pair
    pair.close()


def test_keys_come_at_once_and_are_not_shown(pair: Pair) -> None:
    terminal = KeyTerminal(pair.path)
    assert terminal.read() == b""
    pair.type(b"w\x1b[A")
    assert terminal.read() == b"w\x1b[A"
    assert select.select([pair.user], [], [], 0)[0] == []
    terminal.close()


def test_ctrl_c_stays_a_signal(pair: Pair) -> None:
    terminal = KeyTerminal(pair.path)
    assert pair.modes()[3] & termios.ISIG
    terminal.close()


def test_closing_restores_the_terminal_and_drops_what_was_typed(pair: Pair) -> None:
    before = pair.modes()
    terminal = KeyTerminal(pair.path)
    assert pair.modes() != before
    pair.type(b"rm")
    terminal.close()
    terminal.close()
    assert pair.modes() == before
    os.set_blocking(pair.program, False)
    with pytest.raises(BlockingIOError):
        os.read(pair.program, 10)


@pytest.mark.parametrize("way", ["sys.exit(3)", "raise RuntimeError", "pass"])
def test_the_terminal_is_restored_when_the_program_ends_without_closing(pair: Pair, way: str) -> None:
    before = pair.modes()
    code = (
        "import sys; from firmware_bridge.commands.terminal import KeyTerminal\n"
        f"terminal = KeyTerminal({pair.path!r})\nprint('on', flush=True)\n{way}"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "on\n"
    assert pair.modes() == before


def test_a_terminal_that_is_gone_reads_as_none_and_closes_quietly(pair: Pair) -> None:
    terminal = KeyTerminal(pair.path)
    pair.close()
    assert terminal.read() is None
    terminal.write(b"\x1b[5n")
    terminal.close()


def test_a_file_is_no_terminal(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(ConfigError, match="cannot read keys"):
        KeyTerminal(str(file))


def test_without_a_terminal_the_user_learns_what_to_do() -> None:
    with pytest.raises(ConfigError, match="ssh -t"):
        KeyTerminal("/dev/no-such-terminal")
