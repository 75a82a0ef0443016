"""The `duck` command: what a user does with a robot and its skills.

Each subcommand imports what it needs when it is called, so that help and errors come at once.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from math import isfinite
from pathlib import Path

from firmware_bridge.cli.exits import EXIT_CODES, EXIT_ERROR
from hardware.errors import DuckError

MAX_SECONDS = 1e6
"""Longest drive that can be asked for [s], over eleven days."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    options = _parser().parse_args(arguments)
    try:
        return options.handler(options)
    except DuckError as error:
        if options.debug:
            raise
        print(f"duck: {error}", file=sys.stderr)
        return EXIT_ERROR


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="duck", description="Drive a MicroDuck with trained skills.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_run(commands)
    skills = _add(commands, "skills", _skills, "list a bundle's skills, their command boxes and clocks")
    _add_bundle(skills)
    _add(commands, "emulate", _emulate, "emulate a duck's servos and IMU, without physics, on a serial port")
    return parser


def _add(
    commands: argparse._SubParsersAction, name: str, handler: object, text: str
) -> argparse.ArgumentParser:
    parser = commands.add_parser(
        name,
        help=text,
        description=f"{text[0].upper()}{text[1:]}.",
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("--debug", action="store_true", help="show where an error came from")
    parser.set_defaults(handler=handler)
    return parser


def _add_bundle(parser: argparse.ArgumentParser) -> None:
    text = "folder made by `microduck export`; without it the bundle that comes with this package"
    parser.add_argument("bundle", nargs="?", type=Path, metavar="BUNDLE", help=text)


def _add_run(commands: argparse._SubParsersAction) -> None:
    parser = _add(commands, "run", _run, "let the duck rise and drive one skill")
    parser.epilog = EXIT_CODES
    _add_bundle(parser)
    parser.add_argument("--port", required=True, help="serial port of the servos, for example /dev/ttyAMA0")
    parser.add_argument("--skill", metavar="NAME", help="skill to drive; without it the bundle's first")
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--command",
        nargs=3,
        type=float,
        metavar=("VX", "VY", "YAW"),
        help="speed forward and left [m/s] and turning [rad/s];\nwithout it zero, or the nearest in the box",
    )
    source.add_argument(
        "--stdin",
        action="store_true",
        help="take commands from standard input, a line `VX VY YAW` each;\n0.5 s of silence asks for zero",
    )
    text = "time to drive after the rise; without it until Ctrl-C"
    parser.add_argument("--seconds", type=_positive, metavar="S", help=text)
    parser.add_argument(
        "--calibration", type=Path, metavar="FILE", help="joint offsets and IMU mounting of this duck"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the summary to FILE")


def _positive(text: str) -> float:
    value = float(text)
    if not (isfinite(value) and 0 < value <= MAX_SECONDS):
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds above 0, up to {MAX_SECONDS:g}")
    return value


def _run(options: argparse.Namespace) -> int:
    from firmware_bridge.cli.run import run_command

    return run_command(options)


def _skills(options: argparse.Namespace) -> int:
    from firmware_bridge.cli.skills import skills_command

    return skills_command(options)


def _emulate(options: argparse.Namespace) -> int:
    from firmware_bridge.cli.emulate import emulate_command

    return emulate_command(options)
