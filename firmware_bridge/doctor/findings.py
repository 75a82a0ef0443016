"""Deviations: what is found, what is expected, what it costs, and how it is put right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TypeAlias

from firmware_bridge.wire.registers import Register
from hardware.contract import CONTROL_PERIOD_S

EXIT_WELL, EXIT_DEVIATES, EXIT_CANNOT_RUN = 0, 1, 2


class Level(Enum):
    """How much a deviation matters."""

    WARNING = "warning"
    FIXABLE = "fixable"
    CANNOT_RUN = "cannot run"


@dataclass(frozen=True)
class WriteRegister:
    """Write a register of the EEPROM.

    Attributes:
        device: id.
        register: the register.
        value: what it must hold [SI].
    """

    device: int
    register: Register
    value: float


@dataclass(frozen=True)
class MoveToBaud:
    """Bring a device that answers at another speed to the duck's.

    Attributes:
        device: id.
        baud: speed at which it answers now [1/s].
        target: the duck's speed [1/s].
    """

    device: int
    baud: int
    target: int


@dataclass(frozen=True)
class Restart:
    """Restart a servo that has tripped.

    Attributes:
        device: id.
    """

    device: int


@dataclass(frozen=True)
class SetLatencyTimer:
    """Set a USB adapter's timer to its shortest time.

    Attributes:
        path: the kernel's file.
    """

    path: Path


Fix: TypeAlias = WriteRegister | MoveToBaud | Restart | SetLatencyTimer


@dataclass(frozen=True)
class Finding:
    """One deviation.

    Attributes:
        where: the devices or the part it is about.
        what: the property.
        found: its value, as a person reads it.
        expected: what it should be.
        level: how much it matters.
        effect: what it does to the duck.
        remedy: the next step.
        cost_s: what it adds to every tick [s]; None where time is not what it costs.
        fix: how `--fix` puts it right; None where only a person can.
    """

    where: str
    what: str
    found: str
    expected: str
    level: Level
    effect: str
    remedy: str
    cost_s: float | None = None
    fix: Fix | None = None


def cost(findings: Sequence[Finding]) -> float:
    """Return what the findings together add to every tick [s]."""
    return sum(finding.cost_s or 0.0 for finding in findings)


def exit_code(findings: Sequence[Finding]) -> int:
    """Return 0 for no finding, 2 when one keeps the duck from running, else 1."""
    if any(finding.level is Level.CANNOT_RUN for finding in findings):
        return EXIT_CANNOT_RUN
    return EXIT_DEVIATES if findings else EXIT_WELL


def verdict(findings: Sequence[Finding]) -> str:
    """Return the conclusion in a sentence or two."""
    if not findings:
        return "All well."
    count = f"{len(findings)} deviation{'s' if len(findings) > 1 else ''}"
    parts = [f"The duck cannot run: {count}" if exit_code(findings) == EXIT_CANNOT_RUN else count]
    if cost(findings):
        parts.append(f", costing {cost(findings) * 1e3:.2f} ms of every {CONTROL_PERIOD_S * 1e3:g} ms tick")
    fixes = sum(finding.fix is not None for finding in findings)
    parts.append(f". `duck doctor --fix` puts {fixes} right." if fixes else ".")
    return "".join(parts)
