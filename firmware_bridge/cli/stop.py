"""`duck stop`: ends a running drive, the safe way."""

from __future__ import annotations

import argparse

from firmware_bridge.cli.connect import add_connection, connected
from firmware_bridge.cli.parsing import Commands, add_command

WAIT_S = 10.0
"""Longest wait for the end [s]; sitting down takes three, and the last bus transactions below one."""


def add(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(commands, "stop", stop_command, "end a running drive: sit down, then torque off")
    parser.epilog = "exit codes:\n  0  it has ended\n  1  none runs, or it has not ended in time\n"
    parser.add_argument("--limp", action="store_true", help="torque off at once, also of a duck that stands")
    add_connection(parser)


def stop_command(options: argparse.Namespace) -> int:
    """End a drive, wait until it has ended, and return the exit code.

    Raises:
        ControlError: none runs, or it has not ended in time.
    """
    from hardware.errors import ControlError

    with connected(options) as client:
        pid = (client.status()["drive"] or {}).get("pid")
        if options.limp:
            client.limp()
        client.stop()
        if not client.wait(WAIT_S):
            raise ControlError(
                f"the drive, process {pid}, has not ended in {WAIT_S:g} s; switch the servos' power off, "
                f"then `kill {pid}`"
            )
    print(f"the drive, process {pid}, has ended")
    return 0
