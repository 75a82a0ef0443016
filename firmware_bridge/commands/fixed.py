"""One command for the whole drive."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from firmware_bridge.commands.request import NO_HEAD, Request


class FixedCommand:
    """The command of who typed it and has Ctrl-C at hand, so it never ages.

    Args:
        values: vx, vy, yaw rate [m/s, m/s, rad/s].
        skill: name of the skill, None for the drive's own.
    """

    interactive = False

    def __init__(self, values: Sequence[float], skill: str | None = None) -> None:
        self.refused = 0
        self._request = Request(skill, np.array(values, dtype=np.float64), NO_HEAD, 0.0, None)

    def latest(self) -> Request:
        """Return the command."""
        return self._request

    def close(self) -> None:
        """See `CommandSource.close`; there is nothing to let go of."""
