"""The `duck` command: what a user does with a robot and its skills.

Each subcommand is a module of this package with the same name. Its top level imports nothing heavy, and only
the one that is named is imported, so that help and errors come at once.
"""

from __future__ import annotations

import argparse
import importlib
import signal
import sys
from collections.abc import Sequence

from firmware_bridge.cli.exits import EXIT_ERROR, EXIT_SIGNAL
from firmware_bridge.cli.failures import shorten_tracebacks
from firmware_bridge.cli.streams import flushed_output, open_missing_streams
from hardware.errors import DuckError

COMMANDS = (
    *("run", "stop", "status", "monitor", "skills", "config"),
    *("doctor", "setup", "calibrate", "bench", "plot", "convert", "emulate"),
)
"""Subcommands in the order of the help, each a module with a function `add(commands)`."""


class _Help(argparse.HelpFormatter):
    """Help that leaves room for the longest command, whose deeper indentation the base class forgets."""

    def format_help(self) -> str:
        """Return the help."""
        self._action_max_length += self._indent_increment
        return super().format_help()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code; without arguments it is a program, and takes those of it."""
    open_missing_streams()
    words = sys.argv[1:] if arguments is None else arguments
    debug = "--debug" in words
    if arguments is None and not debug:
        shorten_tracebacks()
    try:
        with flushed_output():
            options, unknown = _parser(words).parse_known_args(words)
            if unknown:  # told by the command's own parser, whose usage helps
                options.refuse(f"unrecognized arguments: {' '.join(unknown)}")
            return options.handler(options)
    except BrokenPipeError:  # whoever read the output has seen enough
        return EXIT_SIGNAL + signal.SIGPIPE
    except (DuckError, OSError) as error:  # the system's errors speak for themselves, such as a full disk
        if debug:
            raise
        print(f"duck: {error}", file=sys.stderr)
        return EXIT_ERROR
    except KeyboardInterrupt:
        return EXIT_SIGNAL + signal.SIGINT


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="duck", description="Drive a MicroDuck with trained skills.", formatter_class=_Help
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    named = [name for name in COMMANDS if name in words[:1]]
    for name in named or COMMANDS:
        importlib.import_module(f"firmware_bridge.cli.{name}").add(commands)
    return parser
