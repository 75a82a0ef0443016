"""`duck skills`: what a bundle can do, after the same checks as a drive."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from firmware_bridge.cli.parsing import Commands, add_bundle, add_command

if TYPE_CHECKING:
    from firmware_bridge.skills.manifest import Skill

_HEAD = ("skill", "vx [m/s]", "vy [m/s]", "yaw rate [rad/s]", "clock [Hz]")


def add(commands: Commands) -> None:
    """Add the command."""
    text = "list a bundle's skills, their command boxes and clocks"
    add_bundle(add_command(commands, "skills", skills_command, text))


def skills_command(options: argparse.Namespace) -> int:
    """Print a bundle's skills and return the exit code."""
    from firmware_bridge.skills.bundle import find_bundle, load_bundle

    folder = find_bundle(options.bundle)
    bundle = load_bundle(folder)
    rows = [_HEAD, *(_row(skill) for skill in bundle.skills.values())]
    widths = [max(len(row[i]) for row in rows) for i in range(len(_HEAD))]
    print(f"{folder}: layout {bundle.layout}, {bundle.action_scale:g} rad an action, P gain {bundle.p_gain}")
    for row in rows:
        print("  ".join(f"{text:<{width}}" for text, width in zip(row, widths, strict=True)).rstrip())
    return 0


def _row(skill: Skill) -> tuple[str, ...]:
    boxes = (f"{low:g} to {high:g}" for low, high in zip(skill.command_low, skill.command_high, strict=True))
    clock = f"{skill.gait_frequency_hz:g} {skill.gait_frequency_per_mps:+g} per m/s"
    return (skill.name, *boxes, clock)
