"""Driving by gamepad: what its sticks ask for now, and nothing once it is lost.

A gamepad tells what changes, so one that is silent may be held still or out of reach. Unplugged it is lost at
once; silent with a stick held, after `GamepadMap.silence_s`. One that comes back waits for its start button,
and that counts only with the sticks at rest: no motion begins that nobody asked for.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from math import inf

import numpy as np

from firmware_bridge.commands import gamepad_device as kernel
from firmware_bridge.commands.boxes import Boxes
from firmware_bridge.commands.gamepad_device import InputDevice, InputEvent
from firmware_bridge.commands.gamepad_map import BUTTONS, GamepadMap
from firmware_bridge.commands.request import NO_COMMAND, NO_HEAD, Event, Events, Request
from firmware_bridge.skills.manifest import Skill
from hardware import contract
from hardware.errors import ConfigError

SEARCH_S = 1.0
"""Time between two searches for a lost gamepad [s]."""
MOST_READS = 16
"""Reads of a tick; each brings up to 64 events, and a stick sends at most about 1000 a second."""
_EVENTS = {"sit": Event.SIT, "limp": Event.LIMP, "quit": Event.QUIT}
_STICKS = ("vx", "vy", "yaw")


class GamepadCommands:
    """Commands from a gamepad.

    Args:
        skills: the bundle's skills by name.
        skill: the one that is driven at first.
        mapping: what sticks and buttons mean.
        say: shows a line to the user; also called by another thread.
        find: opens the gamepad, None when there is none; see `gamepad_device.find_gamepad`.
        now: monotonic time [s].

    Raises:
        ConfigError: there is no gamepad, or a button chooses a skill the bundle lacks.
    """

    interactive = True

    def __init__(
        self,
        skills: Mapping[str, Skill],
        skill: str,
        mapping: GamepadMap,
        say: Callable[[str], None],
        find: Callable[[], InputDevice | None],
        *,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.refused = 0
        self._boxes, self._skill, self._map, self._say = Boxes(skills), skill, mapping, say
        self._find, self._now = find, now
        self._actions, self._skill_buttons = mapping.actions(), mapping.skill_buttons()
        self._check_skills()
        self._events = Events()
        self._sticks = dict.fromkeys(_STICKS, 0.0)
        self._ranges: dict[int, list[tuple[str, float, int, int]]] = {}
        self._heard = -inf
        self._paused, self._nodding = True, False
        self._device: InputDevice | None = None
        self._found = find()
        self._closed = threading.Event()
        if self._found is None:
            raise ConfigError(
                f"no gamepad has the sticks and buttons of the settings{self._wanted()}; switch it on, and "
                "see that you may read the input devices (group `input`)"
            )

    def latest(self) -> Request:
        """Take in what the gamepad sent and return what it asks for."""
        now = self._now()
        if self._found is not None:
            found, self._found = self._found, None
            self._adopt(found)
        if self._device is not None:
            self._read(self._device, now)
        command, head = self._wishes()
        return Request(self._skill, command, head, self._age(now), self._events.take())

    def close(self) -> None:
        """Let go of the gamepad."""
        self._closed.set()
        for device in (self._device, self._found):
            if device is not None:
                device.close()
        self._device = self._found = None

    def _check_skills(self) -> None:
        for code, name in self._skill_buttons.items():
            if name not in self._boxes.names:
                button = next(text for text, number in BUTTONS.items() if number == code)
                raise ConfigError(
                    f"the gamepad's {button} chooses the skill {name!r}, which this bundle lacks; "
                    f"it has {list(self._boxes.names)}"
                )

    def _wanted(self) -> str:
        return f" and {self._map.device!r} in its name" if self._map.device else ""

    def _adopt(self, device: InputDevice) -> None:
        self._paused, self._nodding = True, False
        try:
            self._forget_events(device)
            self._look_at(device)
        except OSError:
            self._lose(device)
            return
        self._device = device
        self._say(f"gamepad {device.name!r}: release the sticks and press {self._map.start}")

    def _forget_events(self, device: InputDevice) -> None:
        """Drop what was pressed before anyone listened: a start from then must not move a duck now.

        Raises:
            OSError: the device is gone.
        """
        with suppress(BlockingIOError):
            for _ in range(MOST_READS):
                list(device.read())

    def _look_at(self, device: InputDevice) -> None:
        """Take in where every stick is.

        Raises:
            OSError: the device is gone.
        """
        self._ranges = {}
        for key in _STICKS:
            code, sign = self._map.axis(key)
            info = device.absinfo(code)
            self._ranges.setdefault(code, []).append((key, sign, info.min, info.max))
            self._move(code, info.value)

    def _read(self, device: InputDevice, now: float) -> None:
        try:
            for _ in range(MOST_READS):
                for event in device.read():
                    self._heard = now
                    self._take(device, event)
        except BlockingIOError:
            return
        except OSError:
            self._lose(device)

    def _lose(self, device: InputDevice) -> None:
        device.close()
        self._device, self._paused = None, True
        self._say("the gamepad is lost; the duck stands until it is back")
        threading.Thread(target=self._search, name="gamepad", daemon=True).start()

    def _search(self) -> None:
        while not self._closed.wait(SEARCH_S):
            found = self._find()
            if found is not None:
                self._found = found
                return

    def _take(self, device: InputDevice, event: InputEvent) -> None:
        if event.type == kernel.EV_ABS:
            self._move(event.code, event.value)
        elif event.type == kernel.EV_KEY and event.value in (0, 1):  # 2 is a key's repeat
            self._press(event.code, event.value == 1)
        elif event.type == kernel.EV_SYN and event.code == kernel.SYN_DROPPED:
            self._nodding = False
            self._look_at(device)

    def _move(self, code: int, value: int) -> None:
        for key, sign, low, high in self._ranges.get(code, ()):
            part = (2 * value - low - high) / (high - low) if high > low else 0.0
            self._sticks[key] = without_dead_band(sign * part, self._map.dead_band)

    def _press(self, code: int, down: bool) -> None:
        action = self._actions.get(code)
        if action == "head":
            self._nodding = down
        elif not down:
            return
        elif action == "start":
            self._start()
        elif action in _EVENTS:
            self._events.put(_EVENTS[action])
        elif action == "next_skill":
            names = self._boxes.names
            self._skill = names[(names.index(self._skill) + 1) % len(names)]
        elif code in self._skill_buttons:
            self._skill = self._skill_buttons[code]

    def _start(self) -> None:
        if any(self._sticks.values()):
            self.refused += 1
            self._say("release the sticks before you press start")
            return
        self._paused = False
        self._events.put(Event.START)

    def _wishes(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the command (3,) [m/s, m/s, rad/s] and the head offsets (4,) [rad]."""
        if self._paused:
            return self._boxes.nearest(self._skill, NO_COMMAND), NO_HEAD
        sticks = np.array([self._sticks[key] for key in _STICKS])
        if self._nodding:
            way = np.array([0.0, sticks[0], sticks[1], 0.0])
            head = np.where(way > 0, way * contract.HEAD_HIGH, -way * contract.HEAD_LOW)
            return self._boxes.nearest(self._skill, NO_COMMAND), head
        low, high = self._boxes.box(self._skill)
        most = np.array([self._map.max_vx, self._map.max_vy, self._map.max_yaw])
        ends = np.where(sticks > 0, np.minimum(most, high), np.minimum(most, -low))  # all of a stick counts
        return self._boxes.nearest(self._skill, sticks * ends), NO_HEAD

    def _age(self, now: float) -> float:
        if self._paused:
            return inf
        quiet = now - self._heard
        return quiet if quiet >= self._map.silence_s and any(self._sticks.values()) else 0.0


def without_dead_band(part: float, dead_band: float) -> float:
    """Return a stick's way from its middle, in [-1, 1], after its dead band is taken out and the rest spread.

    Args:
        part: as measured; beyond +-1 for a stick that goes further than it says.
        dead_band: part around the middle that counts as none, below 1.
    """
    beyond = min(abs(part), 1.0) - dead_band
    if beyond <= 0:
        return 0.0
    return (1.0 if part > 0 else -1.0) * beyond / (1.0 - dead_band)
