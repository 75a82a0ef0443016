"""Options that say which robot is meant, for the commands that examine one."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from firmware_bridge.config import Config


def add_robot(parser: argparse._ActionsContainer) -> None:
    """Add the serial port and the file of settings to a parser, or to a group of one."""
    parser.add_argument(
        "--port", help="serial port of the servos, or `auto` to look for it;\nwithout it the settings' port"
    )
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="settings of this robot; without it $MICRODUCK_CONFIG, or\n"
        "~/.config/microduck/duck.toml where there is one",
    )


def settings_of(options: argparse.Namespace) -> Config:
    """Return the robot's settings.

    Raises:
        ConfigError: the file is not valid.
    """
    from firmware_bridge.config import find_config, load_config

    return load_config(find_config(options.config))


def port_of(options: argparse.Namespace, config: Config) -> str:
    """Return the port that the command line or the settings name, looking for it if that is `auto`.

    Raises:
        ConfigError: the port's name is none, or the IMU's own.
        PortError: no port has a duck on it.
    """
    from firmware_bridge.config import AUTO

    port = config.bus.port if options.port is None else options.port
    # As strict with what is typed as with what is in a file.
    port = replace(config, bus=replace(config.bus, port=port)).bus.port
    if port != AUTO:
        return port
    from firmware_bridge.wire.find_port import find_port

    return find_port(config.bus.baud)
