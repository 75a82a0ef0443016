"""What a recording holds of a tick: one row of this table is one array of a log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from firmware_bridge.drive.summary import STAGES
from hardware.contract import COMMAND_NAMES, HEAD_NAMES
from hardware.joints import JOINT_NAMES

SCHEMA = 1
"""Version of the fields and of the description beside them."""
OBSERVATION = "observation"
"""The field whose width is that of the policy's layout."""
MAX_WIDTH = 1024
"""Widest observation; the layouts there are have 55 values or fewer."""
AXES = ("x", "y", "z")


@dataclass(frozen=True)
class Field:
    """One array of a log; its first axis is the ticks.

    Attributes:
        name: key of the array.
        dtype: numpy type in the file. Two bytes are used where a sensor's step is coarser than theirs.
        unit: SI unit, "1" for a number without one, "" for names and flags.
        text: what it is, in which frame.
        parts: names of the columns, () for one value a tick.
    """

    name: str
    dtype: str
    unit: str
    text: str
    parts: tuple[str, ...] = ()

    @property
    def wide(self) -> np.dtype[Any]:
        """The type in memory: as in the file, but never less than single precision."""
        stored = np.dtype(self.dtype)
        return np.dtype("<f4") if stored == np.float16 else stored

    def shape(self, width: int) -> tuple[int, ...]:
        """Return the shape of a tick's values, for an observation of `width` values."""
        if self.name == OBSERVATION:
            return (width,)
        return (len(self.parts),) if self.parts else ()

    def unknown(self, shape: tuple[int, ...]) -> np.ndarray:
        """Return an array of what stands for "not known", NaN, 0 or False, which takes no memory."""
        return np.broadcast_to(np.array(np.nan if self.wide.kind == "f" else 0, self.wide), shape)


class Content(NamedTuple):
    """What a file holds, as far as it is whole.

    Attributes:
        arrays: by field, in the types of the file.
        meta: the description, unchecked.
        problems: what is missing and why.
    """

    arrays: Mapping[str, np.ndarray]
    meta: Mapping[str, Any]
    problems: list[str]


FIELDS = (
    Field("time", "<f8", "s", "start of the tick, on the machine's monotonic clock"),
    Field(
        "periods", "<i2", "1", "control periods since the tick before; more than 1 where ticks are missing"
    ),
    Field("mode", "u1", "", "place of the mode in `modes`"),
    Field("skill", "<i2", "", "place of the skill in force in `skills`"),
    Field("fresh", "?", "", "whether the body was read in this tick; if not, its values are the last ones"),
    Field(OBSERVATION, "<f4", "1", "input of the policy; NaN where it did not run"),
    Field("action", "<f4", "1", "the policy's raw output; NaN where it did not run", JOINT_NAMES),
    Field(
        "requested",
        "<f4",
        "rad",
        "target asked for by policy or ramp, before the limits; NaN for none",
        JOINT_NAMES,
    ),
    Field(
        "applied", "<f4", "rad", "target written to the servos; NaN where nothing was written", JOINT_NAMES
    ),
    Field("position", "<f4", "rad", "joint angle, calibrated", JOINT_NAMES),
    Field("velocity", "<f2", "rad/s", "joint speed; the servo's step is 0.024 rad/s", JOINT_NAMES),
    Field("current", "<f2", "A", "servo current; the servo's step is 1 mA", JOINT_NAMES),
    Field("alerts", "?", "", "whether the servo reports a hardware fault", JOINT_NAMES),
    Field("angular_velocity", "<f4", "rad/s", "of the trunk, in the trunk frame", AXES),
    Field("gravity", "<f4", "1", "unit gravity in the trunk frame; upright is (0, 0, -1)", AXES),
    Field("command_requested", "<f4", "m/s, m/s, rad/s", "command that was asked for", COMMAND_NAMES),
    Field("command", "<f4", "m/s, m/s, rad/s", "command in force", COMMAND_NAMES),
    Field("head", "<f4", "rad", "head offsets in force", HEAD_NAMES),
    Field("stages", "<f4", "s", "time that each part of the tick took", STAGES),
    Field("missed", "<i4", "1", "ticks skipped so far"),
    Field("bus_errors", "<i4", "1", "failed reads and writes so far"),
    Field("voltage", "<f2", "V", "newest input voltage; the servo's step is 0.1 V", JOINT_NAMES),
    Field("temperature", "<f2", "deg C", "newest temperature; the servo's step is 1 deg C", JOINT_NAMES),
)
"""Every array of a log, in the order of the file."""
BY_NAME: Mapping[str, Field] = {field.name: field for field in FIELDS}


def row_type(width: int) -> np.dtype[Any]:
    """Return a tick as one packed numpy row, for an observation of `width` values."""
    return np.dtype([(field.name, field.dtype, field.shape(width)) for field in FIELDS])
