"""`duck config`: writes, checks and shows the settings of one robot."""

from __future__ import annotations

import argparse
from pathlib import Path

from firmware_bridge.cli.parsing import Commands, Handler, add_command

_PLACE = "without it $MICRODUCK_CONFIG, or ~/.config/microduck/duck.toml"


def add(commands: Commands) -> None:
    """Add the command and its three actions."""
    text = "write, check or show the settings of one robot"
    parser = commands.add_parser("config", help=text, description=f"{text.capitalize()}.")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    init = _add_action(
        actions, "init", init_command, "write a file with every setting, its meaning and its default"
    )
    init.add_argument("--force", action="store_true", help="replace a file that exists")
    _add_action(actions, "check", check_command, "say whether a file is valid, and where it is not")
    _add_action(actions, "show", show_command, "print the settings in force, the file's and the defaults")


def _add_action(actions: Commands, name: str, handler: Handler, text: str) -> argparse.ArgumentParser:
    parser = add_command(actions, name, handler, text)
    parser.add_argument("file", nargs="?", type=Path, metavar="FILE", help=f"the file; {_PLACE}")
    return parser


def init_command(options: argparse.Namespace) -> int:
    """Write the commented defaults and return the exit code."""
    from firmware_bridge.config import default_path, write_default

    path = options.file or default_path()
    write_default(path, options.force)
    print(f"wrote {path}")
    return 0


def check_command(options: argparse.Namespace) -> int:
    """Read a file, and the calibration that it names, and return the exit code."""
    from firmware_bridge.config import default_path, find_config, load_config
    from hardware.calibration import load_calibration

    path = find_config(options.file)
    if path is None:
        print(f"there is no {default_path()}: the defaults hold; `duck config init` writes them there")
        return 0
    config = load_config(path)
    if config.calibration.file:
        load_calibration(config.calibration.file)
    print(f"{path} is valid")
    return 0


def show_command(options: argparse.Namespace) -> int:
    """Print the settings in force and return the exit code."""
    from firmware_bridge.config import find_config, load_config
    from firmware_bridge.toml_sections import render

    path = find_config(options.file)
    config = load_config(path)
    print(f"# from {path}" if path else "# There is no file of settings; these are the defaults.")
    print(render(config, comments=False), end="")
    return 0
