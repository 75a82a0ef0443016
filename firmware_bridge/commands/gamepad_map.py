"""What a gamepad's sticks and buttons mean, by the names the Linux kernel gives them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hardware.errors import ConfigError

AXES: Mapping[str, int] = {
    **{"ABS_X": 0x00, "ABS_Y": 0x01, "ABS_Z": 0x02, "ABS_RX": 0x03, "ABS_RY": 0x04, "ABS_RZ": 0x05},
    **{"ABS_HAT0X": 0x10, "ABS_HAT0Y": 0x11},
}
"""Code of each axis (linux/input-event-codes.h): sticks, and the direction pad of most gamepads."""
BUTTONS: Mapping[str, int] = {
    **{"BTN_SOUTH": 0x130, "BTN_EAST": 0x131, "BTN_C": 0x132, "BTN_NORTH": 0x133, "BTN_WEST": 0x134},
    **{"BTN_Z": 0x135, "BTN_TL": 0x136, "BTN_TR": 0x137, "BTN_TL2": 0x138, "BTN_TR2": 0x139},
    **{"BTN_SELECT": 0x13A, "BTN_START": 0x13B, "BTN_MODE": 0x13C, "BTN_THUMBL": 0x13D, "BTN_THUMBR": 0x13E},
    **{"BTN_DPAD_UP": 0x220, "BTN_DPAD_DOWN": 0x221, "BTN_DPAD_LEFT": 0x222, "BTN_DPAD_RIGHT": 0x223},
}
"""Code of each button."""
_LIMITS: Mapping[str, tuple[float, float]] = {
    "dead_band": (0.0, 0.9),
    "max_vx": (0.0, 10.0),
    "max_vy": (0.0, 10.0),
    "max_yaw": (0.0, 10.0),
    "silence_s": (0.5, 60.0),
}


@dataclass(frozen=True)
class GamepadMap:
    """What a gamepad's sticks and buttons do; `evtest` shows which is which.

    The speeds and the dead band are those of the duck's own gamepad program.

    Attributes:
        device: part of the gamepad's name; left empty, the first one that has the sticks and the buttons of
            start and limp.
        vx: stick axis that drives forward; a leading minus turns it round, since up and left count as
            negative.
        vy: stick axis that drives to the left.
        yaw: stick axis that turns to the left.
        dead_band: part of a stick's travel around its middle that counts as none; what is left is spread over
            the whole range.
        max_vx: speed at a stick's end [m/s]; the box of the skill may hold less.
        max_vy: speed to the side at a stick's end [m/s].
        max_yaw: turning at a stick's end [rad/s].
        silence_s: how long a stick may be held without the slightest change before its gamepad counts as
            lost [s]; a radio that fails says nothing for up to half a minute.
        start: button that lets the duck rise, and that goes on after a gamepad was lost.
        sit: button that sits the duck down, then leaves it limp.
        limp: button that switches torque off at once.
        quit: button that ends the program the safe way.
        next_skill: button that goes on to the bundle's next skill.
        head: button that, while held, lets the axes of vx and vy nod and turn the head instead, to the ends
            of its range.
        skills: buttons that choose a skill by its name, each as "BTN_WEST:walk".
    """

    device: str = ""
    vx: str = "-ABS_Y"
    vy: str = "-ABS_X"
    yaw: str = "-ABS_RX"
    dead_band: float = 0.1
    max_vx: float = 0.3
    max_vy: float = 0.3
    max_yaw: float = 1.5
    silence_s: float = 3.0
    start: str = "BTN_START"
    sit: str = "BTN_SOUTH"
    limp: str = "BTN_SELECT"
    quit: str = "BTN_MODE"
    next_skill: str = "BTN_TR"
    head: str = "BTN_TL"
    skills: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for key in ("vx", "vy", "yaw"):
            if getattr(self, key).removeprefix("-") not in AXES:
                names = ", ".join(AXES)
                raise ConfigError(f"{key} is {getattr(self, key)!r}; choose an axis of {names}, or its minus")
        for key, (low, high) in _LIMITS.items():
            if not low <= getattr(self, key) <= high:
                raise ConfigError(f"{key} is {getattr(self, key)!r}; it must be in [{low:g}, {high:g}]")
        used: dict[str, str] = {}
        for key, button in self._buttons():
            if button not in BUTTONS:
                raise ConfigError(f"{key} is {button!r}; choose a button of {', '.join(BUTTONS)}")
            if button in used:
                raise ConfigError(f"{key} is {button}, the button of {used[button]}; choose another")
            used[button] = key

    def axis(self, key: str) -> tuple[int, float]:
        """Return code and sign of the axis that drives `key`: "vx", "vy" or "yaw"."""
        name: str = getattr(self, key)
        return AXES[name.removeprefix("-")], -1.0 if name.startswith("-") else 1.0

    def actions(self) -> dict[int, str]:
        """Return the field that each button's code stands for, but for those that choose a skill."""
        return {BUTTONS[button]: key for key, button in self._buttons() if key != "skills"}

    def skill_buttons(self) -> dict[int, str]:
        """Return the skill's name for the code of each button that chooses one."""
        return {BUTTONS[button]: name for button, _, name in (entry.partition(":") for entry in self.skills)}

    def _buttons(self) -> Iterator[tuple[str, str]]:
        for key in ("start", "limp"):  # without these a duck could be neither started nor stopped
            yield key, getattr(self, key)
        for key in ("sit", "quit", "next_skill", "head"):
            if getattr(self, key):
                yield key, getattr(self, key)
        for entry in self.skills:
            yield "skills", entry.partition(":")[0]
