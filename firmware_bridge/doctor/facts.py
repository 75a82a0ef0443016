"""What a look at the bus found, as plain data: the checks' only input."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from firmware_bridge.doctor.description import FACTORY_ID
from firmware_bridge.robot.devices import REQUIRED_IDS
from firmware_bridge.wire.registers import Register


@dataclass(frozen=True)
class ServoFacts:
    """One servo that answers alone at its id.

    Attributes:
        id: its id.
        model: model number.
        firmware: firmware version.
        fast: whether it answers a fast sync read.
        values: registers read [SI]; none of a foreign model, whose registers mean other things.
    """

    id: int
    model: int
    firmware: int
    fast: bool = True
    values: Mapping[Register, float] = field(default_factory=dict)


@dataclass(frozen=True)
class BoardFacts:
    """The device at the IMU board's id.

    Attributes:
        model: model number.
        firmware: firmware version.
        fast: whether it answers a fast sync read.
        status: what its status register holds; None of a foreign model.
        started: whether it sends orientations.
    """

    model: int
    firmware: int
    fast: bool = True
    status: int | None = None
    started: bool = False


@dataclass(frozen=True)
class Doubled:
    """Two devices that answer at once, or one whose answers are always damaged."""


@dataclass(frozen=True)
class Unreliable:
    """A device that answered first and then failed.

    Attributes:
        reason: how it failed.
    """

    reason: str


Answer: TypeAlias = ServoFacts | BoardFacts | Doubled | Unreliable


@dataclass(frozen=True)
class Stray:
    """A device where no part of the duck should be: at another speed, or with another id.

    Attributes:
        id: its id.
        baud: speed at which it answers [1/s].
        model: model number.
    """

    id: int
    baud: int
    model: int


@dataclass(frozen=True)
class LatencyTimer:
    """How long a USB adapter keeps received bytes back.

    Attributes:
        path: the kernel's file.
        value_s: what it holds [s]; None when that is no number.
    """

    path: Path
    value_s: float | None


@dataclass(frozen=True)
class Survey:
    """Everything seen on one bus.

    Attributes:
        baud: the duck's speed [1/s].
        answers: what answered at the duck's ids and speed, by id.
        strays: other devices.
        bauds: speeds listened at [1/s].
        refused_bauds: speeds that the serial port does not offer [1/s].
        latency: the USB adapter's timer; None for a port without one.
        required: ids without which this duck cannot run.
    """

    baud: int
    answers: Mapping[int, Answer]
    strays: tuple[Stray, ...] = ()
    bauds: tuple[int, ...] = ()
    refused_bauds: tuple[int, ...] = ()
    latency: LatencyTimer | None = None
    required: tuple[int, ...] = REQUIRED_IDS

    @property
    def servos(self) -> tuple[ServoFacts, ...]:
        """The servos that answer as they should, in the order of their joints."""
        return tuple(answer for answer in self.answers.values() if isinstance(answer, ServoFacts))

    @property
    def silent(self) -> tuple[int, ...]:
        """Required ids that were found nowhere."""
        found = {*self.answers, *(stray.id for stray in self.strays)}
        return tuple(device for device in self.required if device not in found)

    @property
    def newcomers(self) -> tuple[Stray, ...]:
        """Devices that have the id of a new servo."""
        return tuple(stray for stray in self.strays if stray.id == FACTORY_ID)
