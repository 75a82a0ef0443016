"""A log as a table: one named column for each number of a tick, for tools that know tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from firmware_bridge.recording.fields import FIELDS, OBSERVATION, Field
from firmware_bridge.recording.log import Log
from hardware import contract
from hardware.joints import JOINT_NAMES, NUM_JOINTS

NAMED = ("mode", "skill")
"""Fields that are shown by their names."""


@dataclass(frozen=True)
class Column:
    """One column.

    Attributes:
        name: `field`, or `field.part`, such as `position.left_knee`.
        unit: SI unit, "1" for a number without one, "" for names and flags.
        field: the field it is of.
        place: index in the field's second axis, None where it has none.
    """

    name: str
    unit: str
    field: Field
    place: int | None

    def values(self, log: Log) -> np.ndarray:
        """Return the column of a log, (ticks,); the time is that since the first tick, names are text."""
        if self.field.name == "time":
            return log.seconds
        if self.field.name in NAMED:
            return log.names(self.field.name)
        array = log.arrays[self.field.name]
        return array if self.place is None else array[:, self.place]


def columns(log: Log) -> tuple[Column, ...]:
    """Return the columns of a log, in the order of its fields."""
    return tuple(column for field in FIELDS for column in _columns(field, log))


def _columns(field: Field, log: Log) -> Iterator[Column]:
    if field.name == OBSERVATION:
        parts, units = _observation(log)
    else:
        parts, units = field.parts, _units(field.unit, len(field.parts))
    if not parts and field.name != OBSERVATION:
        yield Column(field.name, field.unit, field, None)
    for place, (part, unit) in enumerate(zip(parts, units, strict=True)):
        yield Column(f"{field.name}.{part}", unit, field, place)


def _units(unit: str, count: int) -> tuple[str, ...]:
    """Return the unit of each of `count` parts; a text may name them one by one."""
    units = tuple(unit.split(", "))
    return units if len(units) == count else (unit,) * count


def _observation(log: Log) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return names and units of an observation's values; numbers in place of names for an unknown layout."""
    width = log.arrays[OBSERVATION].shape[1]
    layout: Any = log.meta.get("layout")
    if not isinstance(layout, str) or layout not in contract.LAYOUTS or contract.width(layout) != width:
        return tuple(map(str, range(width))), ("1",) * width
    names: list[str] = []
    units: list[str] = []
    for block in contract.blocks(layout):
        parts = JOINT_NAMES if block.width == NUM_JOINTS else tuple(map(str, range(block.width)))
        names += [f"{block.name}.{part}" for part in parts]
        units += _units(block.unit, block.width)
    return tuple(names), tuple(units)
