"""What the parsers of all subcommands share; light, because every call of `duck` imports it."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from math import isfinite
from pathlib import Path
from typing import TypeAlias

MOST = 1e6
"""Largest number an option takes; in seconds over eleven days."""
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
"""What subcommands are added to."""
Handler: TypeAlias = Callable[[argparse.Namespace], int]
"""Carries a command out and returns the exit code."""


def add_command(commands: Commands, name: str, handler: Handler, text: str) -> argparse.ArgumentParser:
    """Add a subcommand and return its parser, which has `--debug` already.

    Its options hold `handler`, and `refuse`, which ends the program with a message about wrong words.

    Args:
        commands: where to.
        name: what the user types.
        handler: called with the parsed options.
        text: what it does, as a phrase without a full stop.
    """
    parser = commands.add_parser(
        name,
        help=text,
        description=f"{text[0].upper()}{text[1:]}.",
        formatter_class=argparse.RawTextHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--debug", action="store_true", help="show where an error came from")
    parser.set_defaults(handler=handler, refuse=parser.error)
    return parser


def add_bundle(parser: argparse.ArgumentParser) -> None:
    """Add the skill bundle, which may be left out."""
    text = (
        "folder made by `microduck export`, or `nine-skills` or `walk`, which come with\n"
        "this package; without it `nine-skills`"
    )
    parser.add_argument("bundle", nargs="?", type=Path, metavar="BUNDLE", help=text)


def positive_number(text: str) -> float:
    """Parse a finite number above 0.

    Raises:
        argparse.ArgumentTypeError: it is none, or above `MOST`.
    """
    value = _number(text)
    if not 0 < value <= MOST:
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0, up to {MOST:g}")
    return value


def number_from_zero(text: str) -> float:
    """Parse a finite number of 0 or more.

    Raises:
        argparse.ArgumentTypeError: it is none, or above `MOST`.
    """
    value = _number(text)
    if not 0 <= value <= MOST:
        raise argparse.ArgumentTypeError(f"{text} is not a number of 0 or more, up to {MOST:g}")
    return value


def positive_integer(text: str) -> int:
    """Parse a whole number of 1 or more.

    Raises:
        argparse.ArgumentTypeError: it is none, or above `MOST`.
    """
    if not (text.isascii() and text.isdigit() and len(text) < 10 and 1 <= int(text) <= MOST):
        raise argparse.ArgumentTypeError(f"{text} is not a whole number from 1 to {MOST:g}")
    return int(text)


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if not isfinite(value):
        raise argparse.ArgumentTypeError(f"{text} is not a finite number")
    return value
