"""Faults of a duck's bus as plain data: what goes wrong, when, how often, and where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from math import inf, isfinite
from typing import Any, NamedTuple

from hardware.errors import ConfigError


class FaultKind(StrEnum):
    """What can go wrong; `RULES` says what each does."""

    DROP = "drop"
    DELAY = "delay"
    FLIP = "flip"
    TRUNCATE = "truncate"
    DUPLICATE = "duplicate"
    ECHO = "echo"
    NOISE = "noise"
    WRONG_ID = "wrong-id"
    RESET = "reset"
    BROWN_OUT = "brown-out"
    SILENT = "silent"
    ALERT = "alert"
    OVERHEAT = "overheat"
    BATTERY = "battery"
    NO_FAST_READ = "no-fast-read"
    IMU_FROZEN = "imu-frozen"
    IMU_STUCK = "imu-stuck"
    IMU_NOT_STARTED = "imu-not-started"


class Target(Enum):
    """What a fault of a kind strikes."""

    REPLY = "replies"
    INSTRUCTION = "instructions"
    SERVO = "servos"
    ANY = "devices"
    BOARD = "the IMU board"


class Amount(NamedTuple):
    """A kind's own number: its name and unit, its value when none is given, and the ends of its range."""

    name: str
    default: float
    low: float
    high: float


class Rule(NamedTuple):
    """What a kind of fault strikes and does, and its own number if it has one."""

    target: Target
    text: str
    amount: Amount | None = None


RULES: Mapping[FaultKind, Rule] = {
    FaultKind.DROP: Rule(Target.REPLY, "do not arrive"),
    FaultKind.DELAY: Rule(Target.REPLY, "arrive late", Amount("seconds late", 0.03, 0.0, 10.0)),
    FaultKind.FLIP: Rule(Target.REPLY, "have one wrong bit"),
    FaultKind.TRUNCATE: Rule(Target.REPLY, "break off"),
    FaultKind.DUPLICATE: Rule(Target.REPLY, "arrive twice"),
    FaultKind.ECHO: Rule(Target.INSTRUCTION, "come back to the host, before any reply"),
    FaultKind.NOISE: Rule(Target.REPLY, "come after random bytes", Amount("bytes", 8, 1, 256)),
    FaultKind.WRONG_ID: Rule(Target.REPLY, "name another id, or one of their blocks does"),
    FaultKind.RESET: Rule(Target.SERVO, "restart once, at the start"),
    FaultKind.BROWN_OUT: Rule(Target.ANY, "have no supply, then restart"),
    FaultKind.SILENT: Rule(Target.ANY, "hear and answer nothing"),
    FaultKind.ALERT: Rule(
        Target.SERVO, "report a hardware error, from the start on", Amount("bits of register 70", 1, 1, 63)
    ),
    FaultKind.OVERHEAT: Rule(
        Target.SERVO, "grow hot over the time given, and stay so", Amount("deg C", 80, 0, 100)
    ),
    FaultKind.BATTERY: Rule(
        Target.SERVO, "measure a voltage that falls over the time given, and stays", Amount("V", 6.0, 0, 20)
    ),
    FaultKind.NO_FAST_READ: Rule(Target.ANY, "do not know fast sync reads, as before firmware 46"),
    FaultKind.IMU_FROZEN: Rule(Target.BOARD, "repeats its last sample"),
    FaultKind.IMU_STUCK: Rule(Target.BOARD, "repeats its last orientation, while rates go on"),
    FaultKind.IMU_NOT_STARTED: Rule(Target.BOARD, "sends an orientation of zeros"),
}
"""What each kind does to its target, as the end of a sentence that begins with it."""


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong.

    Attributes:
        kind: what goes wrong.
        start_s: when it begins, from the injection on [s].
        seconds: how long it lasts [s].
        probability: part of the replies that it strikes; 1 for kinds that do not strike replies.
        device: id of the only device it strikes; None for all. A fast sync read's reply is everyone's.
        amount: the kind's own number, see `RULES`; None for its default.

    Raises:
        ConfigError: a value is out of range, or the kind has no such setting.
    """

    kind: FaultKind
    start_s: float = 0.0
    seconds: float = inf
    probability: float = 1.0
    device: int | None = None
    amount: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.kind, FaultKind):
            raise ConfigError(f"{self.kind!r} is no FaultKind; read text with parse_fault")
        self._need("start_s", isfinite(self.start_s) and self.start_s >= 0, "0 or more seconds")
        self._need("seconds", self.seconds >= 0, "0 or more")
        if self.target in (Target.REPLY, Target.INSTRUCTION):
            self._need("probability", 0 < self.probability <= 1, "above 0, up to 1")
        else:
            self._need("probability", self.probability == 1, f"left out: it strikes {self.target.value}")
        if self.target in (Target.BOARD, Target.INSTRUCTION):
            self._need("device", self.device is None, f"left out: it strikes {self.target.value}")
        else:
            self._need("device", self.device is None or self.device >= 0, "an id on the bus")
        own = RULES[self.kind].amount
        if own is None:
            self._need("amount", self.amount is None, "left out: this kind has none")
        else:
            good = self.amount is None or own.low <= self.amount <= own.high
            self._need("amount", good, f"from {own.low:g} to {own.high:g} {own.name}")

    @property
    def target(self) -> Target:
        """What it strikes."""
        return RULES[self.kind].target

    @property
    def size(self) -> float:
        """The kind's own number, given or not; 0 for a kind that has none."""
        own = RULES[self.kind].amount
        if own is None:
            return 0.0
        return own.default if self.amount is None else self.amount

    def active(self, time_s: float) -> bool:
        """Return whether it is on at this time from the injection on [s]."""
        return self.start_s <= time_s < self.start_s + self.seconds

    def _need(self, name: str, good: bool, valid: str) -> None:
        if not good:
            raise ConfigError(f"{name} = {getattr(self, name)} of the fault {self.kind} must be {valid}")


@dataclass(frozen=True)
class Schedule:
    """Faults that happen together, and the seed of their chance.

    The same schedule does the same to the same conversation.
    """

    faults: tuple[Fault, ...] = ()
    seed: int = 0


_SETTINGS = {"start": "start_s", **{name: name for name in ("seconds", "probability", "device", "amount")}}
"""Names of a fault's settings as the user writes them, and as `Fault` has them."""


def parse_fault(text: str) -> Fault:
    """Read a fault from `KIND` or `KIND:NAME=VALUE,...`, for example `silent:device=23,start=5,seconds=2`.

    Raises:
        ConfigError: there is no such kind or setting, or its value cannot be.
    """
    kind, _, rest = text.partition(":")
    if kind not in set(FaultKind):
        raise ConfigError(f"there is no fault {kind!r}; give one of {', '.join(FaultKind)}")
    settings: dict[str, Any] = {}
    for part in rest.split(",") if rest else ():
        name, _, value = part.partition("=")
        if name not in _SETTINGS:
            raise ConfigError(f"a fault has no {name!r}; give {', '.join(_SETTINGS)}, as in {kind}:start=5")
        settings[_SETTINGS[name]] = _number(name, value)
    return Fault(FaultKind(kind), **settings)


def _number(name: str, text: str) -> float:
    try:
        return int(text) if name == "device" else float(text)
    except ValueError:
        raise ConfigError(f"{name} = {text!r} of a fault is no number; write for example {name}=1") from None
