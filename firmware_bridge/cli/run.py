"""`duck run`: the options of a drive; `drive` carries it out, and is imported only then."""

from __future__ import annotations

import argparse
from pathlib import Path

from firmware_bridge.cli.exits import EXIT_CODES
from firmware_bridge.cli.parsing import Commands, add_bundle, add_command, number_from_zero, positive_number
from firmware_bridge.cli.robot import add_robot

_SOURCES = "where commands come from; without one of these the command is zero, or the nearest in the box"


def add(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(commands, "run", run_command, "let the duck rise and drive its skills")
    parser.epilog = EXIT_CODES
    add_bundle(parser)
    parser.add_argument("--skill", metavar="NAME", help="skill to begin with; without it the bundle's first")
    parser.add_argument(
        "--seconds",
        type=positive_number,
        metavar="S",
        help="time to drive after the rise; without it until Ctrl-C",
    )
    _add_sources(parser)
    _add_robot(parser)
    _add_socket(parser)
    text = "record every tick to FILE.tdz, or to a new file in a folder; see docs/recording.md"
    parser.add_argument("--record", type=Path, metavar="PATH", help=text)
    parser.add_argument("--report", type=Path, metavar="FILE", help="write what happened to FILE, as JSON")


def _add_sources(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("commands", _SOURCES)
    source = group.add_mutually_exclusive_group()
    source.add_argument(
        "--command",
        nargs=3,
        type=float,
        metavar=("VX", "VY", "YAW"),
        help="speed forward and left [m/s] and turning [rad/s]",
    )
    source.add_argument(
        "--stdin",
        action="store_true",
        help="lines `VX VY YAW` on standard input; 0.5 s of silence asks for zero",
    )
    source.add_argument("--script", type=Path, metavar="FILE", help="a file of timed commands")
    limp = "the duck stays limp until told to start"
    source.add_argument("--keyboard", action="store_true", help=f"keys of this terminal; {limp}")
    source.add_argument("--gamepad", action="store_true", help=f"sticks and buttons; {limp}")
    source.add_argument("--remote", action="store_true", help=f"other programs, over the socket; {limp}")


def _add_robot(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("robot", "in place of what the settings say")
    add_robot(group)
    text = "longest wait for servos that have no power yet"
    group.add_argument("--wait", type=number_from_zero, metavar="S", help=text)
    group.add_argument(
        "--calibration", type=Path, metavar="FILE", help="joint offsets and IMU mounting of this duck"
    )
    group.add_argument("--realtime", action="store_true", help="real-time priority and locked memory")


def _add_socket(parser: argparse.ArgumentParser) -> None:
    text = "a local socket serves `duck stop`, `duck status`, `duck monitor` and --remote"
    group = parser.add_argument_group("other programs", text)
    place = group.add_mutually_exclusive_group()
    place.add_argument("--socket", type=Path, metavar="PATH", help="where it is; without it where those look")
    place.add_argument("--no-socket", action="store_true", help="serve none")
    text = "serve the network as well; needs --token"
    group.add_argument("--listen", metavar="HOST:PORT", help=text)
    text = "file of mode 0600 with the token that the network must know"
    group.add_argument("--token", type=Path, metavar="FILE", help=text)


def run_command(options: argparse.Namespace) -> int:
    """Drive a duck and return the exit code.

    Raises:
        DuckError: the bundle, the command, a file, the port or the duck is not in order; nothing moved.
    """
    from firmware_bridge.drive.signals import StopSignals

    with StopSignals() as signals:  # from here on, for what is imported next takes its time
        from firmware_bridge.cli.drive import drive

        return drive(options, signals)
