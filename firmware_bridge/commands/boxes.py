"""What commands are checked against: the skills of a bundle, their boxes, and the head's range."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from firmware_bridge.skills.manifest import Skill
from hardware import contract
from hardware.errors import CommandError


class Boxes:
    """The command boxes of a bundle's skills.

    Args:
        skills: the skills by name.

    Attributes:
        names: the skills' names, in the bundle's order.
    """

    def __init__(self, skills: Mapping[str, Skill]) -> None:
        self.names = tuple(skills)
        self._boxes = {
            name: (np.array(skill.command_low), np.array(skill.command_high))
            for name, skill in skills.items()
        }

    def check_skill(self, name: str) -> None:
        """Refuse a name that no skill has.

        Raises:
            CommandError: names the skills there are.
        """
        if name not in self._boxes:
            raise CommandError(f"no skill is called {name[:80]!r}; choose one of {list(self.names)}")

    def check(self, skill: str, command: np.ndarray, head: np.ndarray) -> None:
        """Refuse a command (3,) [m/s, m/s, rad/s] outside a skill's box, or a head (4,) [rad] out of range.

        Raises:
            CommandError: names the bad value and its interval.
        """
        self.check_skill(skill)
        contract.check_command(command, *self._boxes[skill])
        ends = zip(contract.HEAD_NAMES, head, contract.HEAD_LOW, contract.HEAD_HIGH, strict=True)
        for name, value, low, high in ends:
            if not low <= value <= high:  # NaN fails both
                raise CommandError(
                    f"head {name} = {value:g} is outside [{low:g}, {high:g}] rad; choose a value inside"
                )

    def nearest(self, skill: str, command: np.ndarray) -> np.ndarray:
        """Return the command of a skill's box that is nearest to `command`, (3,) [m/s, m/s, rad/s]."""
        return np.clip(command, *self._boxes[skill])

    def box(self, skill: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the lower and the upper corner of a skill's box, each (3,) [m/s, m/s, rad/s]."""
        return self._boxes[skill]
