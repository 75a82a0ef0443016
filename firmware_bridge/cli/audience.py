"""Everyone who is told of a drive: the user, programs at the control socket, and a script that waits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from firmware_bridge.cli.display import StatusPrinter
from firmware_bridge.commands.request import CommandSource
from firmware_bridge.commands.script import ScriptCommands
from firmware_bridge.control.network import Listen
from firmware_bridge.control.server import ControlServer
from firmware_bridge.control.telemetry import tick_data
from firmware_bridge.drive.limits import Battery
from firmware_bridge.drive.modes import Mode
from firmware_bridge.drive.summary import Tick
from firmware_bridge.skills.manifest import Skill
from firmware_bridge.wire.bus_stats import BusStats


class Audience:
    """Passes on what a drive tells.

    Args:
        status: shows it to the user.
        source: where the drive's commands come from.
        battery: what feeds the servos.

    Attributes:
        source: what the loop is to take its requests from; what is served may add a stop to them.
        bus: counts of the bus, None before it is open.
        record: takes every tick, too.
    """

    def __init__(self, status: StatusPrinter, source: CommandSource, battery: Battery) -> None:
        self._status, self._battery = status, battery
        self._script = source if isinstance(source, ScriptCommands) else None
        self._publish: Callable[[Tick], None] = lambda tick: None
        self.source = source
        self.bus: BusStats | None = None
        self.record: Callable[[Tick], None] = lambda tick: None

    @contextmanager
    def served(
        self, name: str, skills: Mapping[str, Skill], path: Path | None, listen: Listen | None
    ) -> Iterator[None]:
        """Serve other programs in the block.

        Args:
            name: what to call the source.
            skills: the bundle's skills by name.
            path: the socket, None for the user's usual one.
            listen: where to listen on the network, None for nowhere.

        Raises:
            ControlError: another drive runs here, or the socket cannot be made.
        """
        server = ControlServer(self.source, name, skills, path=path, listen=listen, encode_tick=self._data)
        with server:
            self.source, self._publish = server.source, server.publish
            yield

    def tell(self, text: str) -> None:
        """Show a line to the user."""
        self._status.tell(text)

    def on_mode(self, mode: Mode, reason: str) -> None:
        """Tell of a mode, and let a script begin once the duck stands."""
        self._status.on_mode(mode, reason)
        if self._script is not None and mode in (Mode.STAND, Mode.RUN):
            self._script.begin()

    def on_tick(self, tick: Tick) -> None:
        """Tell of a tick."""
        self._status.on_tick(tick)
        self._publish(tick)
        self.record(tick)

    def _data(self, tick: Tick) -> dict[str, Any]:
        return tick_data(tick, self._battery, self.bus.totals() if self.bus else None)
