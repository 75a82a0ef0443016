"""Finding a gamepad among the kernel's input devices."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any, Protocol

from firmware_bridge.commands.gamepad_map import BUTTONS, GamepadMap
from hardware.errors import ConfigError

EV_SYN, EV_KEY, EV_ABS = 0x00, 0x01, 0x03
"""Kinds of input events (linux/input-event-codes.h)."""
SYN_DROPPED = 0x03
"""Code of the event that stands for events the kernel had no room for."""


class InputEvent(Protocol):
    """One change of a button or an axis."""

    type: int
    code: int
    value: int


class AxisInfo(Protocol):
    """An axis: where it is and how far it goes."""

    value: int
    min: int
    max: int


class InputDevice(Protocol):
    """What is used of evdev's class of that name; the file descriptor does not block."""

    name: str

    def read(self) -> Iterable[InputEvent]:
        """Return some of the events that wait.

        Raises:
            BlockingIOError: none does.
            OSError: the device is gone.
        """
        ...

    def absinfo(self, axis_num: int) -> AxisInfo:
        """Return the state of an axis."""
        ...

    def close(self) -> None:
        """Let go of the device."""
        ...


def find_gamepad(mapping: GamepadMap) -> InputDevice | None:
    """Open the first gamepad that fits, None when there is none.

    Raises:
        ConfigError: the package evdev is not installed.
    """
    evdev = _evdev()
    for path in sorted(evdev.list_devices()):
        try:
            device = evdev.InputDevice(path)
        except OSError:  # unplugged meanwhile, or another user's
            continue
        if fits(mapping, device.name, device.capabilities(absinfo=False)):
            return device
        device.close()
    return None


def fits(mapping: GamepadMap, name: str, abilities: dict[int, list[int]]) -> bool:
    """Return whether a device is the one meant, and has the sticks and the buttons without which none drives.

    Args:
        mapping: what is asked for.
        name: the device's name.
        abilities: codes by kind of event.
    """
    axes = {mapping.axis(key)[0] for key in ("vx", "vy", "yaw")}
    buttons = {BUTTONS[mapping.start], BUTTONS[mapping.limp]}
    return (
        mapping.device.lower() in name.lower()
        and axes <= set(abilities.get(EV_ABS, ()))
        and buttons <= set(abilities.get(EV_KEY, ()))
    )


def _evdev() -> Any:
    try:
        return importlib.import_module("evdev")
    except ImportError as error:
        raise ConfigError(
            "a gamepad needs the package evdev: install `microduck-toolkit[gamepad]`, or drive by --keyboard"
        ) from error
