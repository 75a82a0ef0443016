"""`duck status`: what a running drive is doing, once."""

from __future__ import annotations

import argparse
import json

from firmware_bridge.cli.connect import add_connection, connected
from firmware_bridge.cli.parsing import Commands, add_command


def add(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(commands, "status", status_command, "show what a running drive is doing")
    parser.epilog = "exit codes:\n  0  a drive runs\n  1  none does\n"
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    add_connection(parser)


def status_command(options: argparse.Namespace) -> int:
    """Print a drive's state and return the exit code.

    Raises:
        ControlError: none runs.
    """
    from firmware_bridge.cli.monitor_view import summary_lines

    with connected(options) as client:
        status = client.status()
    print(json.dumps(status, indent=2) if options.json else "\n".join(summary_lines(**status)))
    return 0
