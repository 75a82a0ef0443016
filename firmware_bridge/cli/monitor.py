"""`duck monitor`: a running drive, live."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, TextIO

from firmware_bridge.cli.connect import add_connection, connected
from firmware_bridge.cli.exits import EXIT_OK, EXIT_SIGNAL
from firmware_bridge.cli.parsing import Commands, add_command, positive_number

if TYPE_CHECKING:
    from firmware_bridge.client import Client

SCREEN_HZ, JSON_HZ = 10.0, 50.0
"""Usual rates of the screen and of the lines [Hz]."""
_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"  # second screen and no cursor, and back
_HOME, _CLEAR, _END_LINE, _END_SCREEN = "\x1b[H", "\x1b[2J", "\x1b[K", "\x1b[J"


def add(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(commands, "monitor", monitor_command, "watch a running drive; q or Ctrl-C ends it")
    parser.add_argument(
        "--hz",
        type=positive_number,
        metavar="N",
        help=f"looks a second, at most 50; without it {SCREEN_HZ:g}, or {JSON_HZ:g} of --json",
    )
    parser.add_argument("--json", action="store_true", help="print ticks as JSON, one a line")
    add_connection(parser)


def monitor_command(options: argparse.Namespace) -> int:
    """Show a drive until it ends or the user has seen enough, and return the exit code.

    Raises:
        ControlError: none runs.
        ConfigError: standard output is no terminal.
    """
    with connected(options) as client:
        if options.json:
            return _print_lines(client, options.hz or JSON_HZ)
        return _show(client, options.hz or SCREEN_HZ)


def _print_lines(client: Client, hz: float) -> int:
    for tick in client.watch(hz):
        if tick is not None:
            print(json.dumps(tick), flush=True)
    return EXIT_OK


def _show(client: Client, hz: float) -> int:
    from firmware_bridge.cli.monitor_view import draw
    from firmware_bridge.commands.terminal import KeyTerminal
    from firmware_bridge.drive.signals import StopSignals
    from hardware.errors import ConfigError

    if not sys.stdout.isatty():
        raise ConfigError("standard output is no terminal; add --json to get lines for another program")
    drive = client.status()["drive"]
    with StopSignals() as signals, closing(KeyTerminal()) as keys, _screen(sys.stdout) as paint:
        for tick in client.watch(hz):
            size = _size(sys.stdout)
            paint(draw(drive, tick, *size), size)
            if signals.received:
                return EXIT_SIGNAL + signals.received
            typed = keys.read()
            if typed is None or b"q" in typed.lower():
                return EXIT_OK
    print("the drive has ended")
    return EXIT_OK


def _size(stream: TextIO) -> tuple[int, int]:
    """Return a terminal's columns and rows, 80 and 24 where it does not know them."""
    columns, rows = os.get_terminal_size(stream.fileno())
    return columns or 80, rows or 24


@contextmanager
def _screen(stream: TextIO) -> Iterator[Callable[[list[str], tuple[int, int]], None]]:
    """Give a function that paints lines on a second screen of a terminal of some columns and rows."""
    before = (0, 0)

    def paint(lines: list[str], size: tuple[int, int]) -> None:
        nonlocal before
        start = _HOME if size == before else _CLEAR + _HOME  # a resize may have wrapped the old lines
        stream.write(start + f"{_END_LINE}\n".join(lines) + _END_LINE + _END_SCREEN)
        stream.flush()
        before = size

    stream.write(_ENTER)
    try:
        yield paint
    finally:
        stream.write(_LEAVE)
        stream.flush()
