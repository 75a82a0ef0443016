"""`duck emulate`: a duck's bus to try things on, without a duck and without physics."""

from __future__ import annotations

import argparse
import time

from firmware_bridge.cli.parsing import Commands, add_command
from firmware_bridge.emulator.faults import RULES, Fault, Schedule, parse_fault
from hardware.errors import ConfigError

POLL_S = 0.1
"""Time between two looks for a signal [s]."""


def add(commands: Commands) -> None:
    """Add the command."""
    text = "emulate a duck's servos and IMU, without physics, on a serial port"
    parser = add_command(commands, "emulate", emulate_command, text)
    parser.add_argument(
        "--fault",
        action="append",
        default=[],
        type=_fault,
        metavar="KIND[:NAME=VALUE,...]",
        help="let something go wrong; may be given more than once",
    )
    parser.add_argument(
        "--seed", type=_seed, default=0, metavar="N", help="seed of the faults' chance; without it 0"
    )
    parser.add_argument("--paced", action="store_true", help="answer no sooner than a real wire would")
    parser.epilog = _describe_faults()


def emulate_command(options: argparse.Namespace) -> int:
    """Emulate a duck whose servos go where they are told, until a signal comes; return the exit code."""
    from firmware_bridge.drive.signals import StopSignals
    from firmware_bridge.emulator.duck import EmulatedDuck

    with StopSignals() as signals, EmulatedDuck(paced=options.paced) as duck:
        duck.inject(Schedule(tuple(options.fault), options.seed))
        print(f"{duck.port}", flush=True)
        print("The duck answers on this port until Ctrl-C. Drive it with `duck run --port PORT`.", flush=True)
        while signals.received is None:
            time.sleep(POLL_S)
    return 0


def _describe_faults() -> str:
    lines = ["faults, and what they strike:"]
    for kind, rule in RULES.items():
        own = f" (amount: {rule.amount.name}, {rule.amount.default:g})" if rule.amount else ""
        lines.append(f"  {kind:<16} {rule.target.value} {rule.text}{own}")
    lines += [
        "settings: start and seconds say when, probability which part of replies and instructions,",
        "device the only one, amount the fault's own number; for example",
        "  --fault flip:probability=0.08 --fault silent:device=23,start=5,seconds=2",
    ]
    return "\n".join(lines)


def _fault(text: str) -> Fault:
    try:
        return parse_fault(text)
    except ConfigError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _seed(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise argparse.ArgumentTypeError(f"{text!r} is no seed; give a whole number of 0 or more")
    return int(text)
