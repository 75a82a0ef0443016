"""Which command source the options of `duck run` mean."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial

import numpy as np

from firmware_bridge.commands import CommandSource, FixedCommand, LineCommands
from firmware_bridge.commands.gamepad import GamepadCommands
from firmware_bridge.commands.gamepad_device import find_gamepad
from firmware_bridge.commands.gamepad_map import GamepadMap
from firmware_bridge.commands.keyboard import KeyboardCommands
from firmware_bridge.commands.remote import RemoteCommands
from firmware_bridge.commands.request import NO_COMMAND
from firmware_bridge.commands.script import ScriptCommands, load_script
from firmware_bridge.skills.bundle import Bundle
from firmware_bridge.skills.manifest import Skill
from hardware import contract

NAMES = ("stdin", "script", "keyboard", "gamepad", "remote", "command")
"""Options that choose a source; without any of them it is a command."""


def source_name(options: argparse.Namespace) -> str:
    """Return what to call the source that is meant: one of `NAMES`."""
    return next((name for name in NAMES if getattr(options, name)), "command")


def make_source(
    options: argparse.Namespace, bundle: Bundle, gamepad: GamepadMap, say: Callable[[str], None]
) -> CommandSource:
    """Return the source that is meant, checked against the bundle.

    Args:
        options: of `duck run`.
        bundle: the policy.
        gamepad: what a gamepad's sticks and buttons mean.
        say: shows a line to the user.

    Raises:
        BundleError: the bundle has no such skill.
        CommandError: the command is outside the skill's box.
        ConfigError: the script is not valid, or there is no terminal or gamepad.
    """
    skill = bundle.skill(options.skill)
    if options.stdin:
        return LineCommands(sys.stdin.fileno(), say)
    if options.script:
        return ScriptCommands(load_script(options.script, bundle.skills, skill.name))
    if options.keyboard:
        return KeyboardCommands(bundle.skills, skill.name, say)
    if options.gamepad:
        return GamepadCommands(bundle.skills, skill.name, gamepad, say, partial(find_gamepad, gamepad))
    if options.remote:
        return RemoteCommands(bundle.skills, skill.name)
    return _fixed(options, skill)


def _fixed(options: argparse.Namespace, skill: Skill) -> FixedCommand:
    low, high = np.array(skill.command_low), np.array(skill.command_high)
    if options.command is None:
        return FixedCommand(np.clip(NO_COMMAND, low, high).tolist())
    contract.check_command(np.array(options.command), low, high)
    return FixedCommand(options.command)
