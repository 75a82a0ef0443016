"""Options that say which drive is meant, for the commands that talk to a running one."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from firmware_bridge.client import Client


def add_connection(parser: argparse.ArgumentParser) -> None:
    """Add the socket, or the address and the token of a drive on another machine."""
    text = "control socket of the drive; without it that of this user"
    parser.add_argument("--socket", type=Path, metavar="PATH", help=text)
    text = "a drive on another machine, begun with --listen; needs --token"
    parser.add_argument("--connect", metavar="HOST:PORT", help=text)
    text = "file of mode 0600 with the token of that drive"
    parser.add_argument("--token", type=Path, metavar="FILE", help=text)


def connected(options: argparse.Namespace) -> Client:
    """Return a client of the drive that is meant.

    Raises:
        ConfigError: the address or the token's file is not valid.
        ControlError: no drive runs there.
        CommandError: the token is wrong.
    """
    from firmware_bridge.client import Client
    from firmware_bridge.control.network import listen_address, read_token
    from hardware.errors import ConfigError

    if options.connect is None:
        return Client(options.socket)
    if options.token is None:
        raise ConfigError("--connect needs --token FILE, the file with the token of that drive")
    host, port = listen_address(options.connect)
    return Client.network(host, port, read_token(options.token))
