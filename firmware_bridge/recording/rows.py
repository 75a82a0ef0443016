"""Turns ticks into the rows of a recording."""

from __future__ import annotations

from typing import Any

import numpy as np

from firmware_bridge.drive.modes import Mode
from firmware_bridge.drive.summary import STAGES, Tick
from firmware_bridge.recording.fields import FIELDS, row_type
from firmware_bridge.robot.body import BodySample
from hardware.joints import JOINT_NAMES

_MODE_PLACES = {mode: place for place, mode in enumerate(Mode)}
_MOST_PERIODS = np.iinfo(np.int16).max
_NO_ALERTS = np.zeros(len(JOINT_NAMES), bool)


class Rows:
    """A block of rows that is filled tick by tick.

    Args:
        skills: names of the skills, in the order of the description.
        width: of the observation.
        size: number of rows.

    Attributes:
        count: rows that are filled.
    """

    def __init__(self, skills: list[str], width: int, size: int) -> None:
        self._skills = {name: place for place, name in enumerate(skills)}
        self._rows = np.zeros(size, row_type(width))
        self._columns: dict[str, Any] = {field.name: self._rows[field.name] for field in FIELDS}
        self._before: int | None = None
        self.count = 0

    @property
    def full(self) -> bool:
        """Whether there is no row left."""
        return self.count == len(self._rows)

    def take(self) -> bytes:
        """Return the filled rows and begin again."""
        data = self._rows[: self.count].tobytes()
        self.count = 0
        return data

    def add(self, index: int, tick: Tick) -> None:
        """Fill the next row.

        Args:
            index: place of the tick among all there were, also those that are not recorded.
            tick: the tick.
        """
        now = index + tick.missed
        periods = 1 if self._before is None else now - self._before
        self._before = now
        self._set("time", tick.time_s)
        self._set("periods", min(periods, _MOST_PERIODS))
        self._set("mode", _MODE_PLACES[tick.mode])
        self._set("skill", self._skills[tick.skill])
        self._set("fresh", tick.fresh)
        self._set("observation", np.nan if tick.action is None else tick.observation)
        self._set("action", _or_nan(tick.action))
        self._set("requested", _or_nan(tick.requested_targets))
        self._set("applied", _or_nan(tick.targets))
        self._set("command_requested", tick.requested)
        self._set("command", tick.command)
        self._set("head", tick.head)
        self._set("stages", [tick.stages[name] for name in STAGES])
        self._set("missed", tick.missed)
        self._set("bus_errors", tick.bus_errors)
        self._add_sample(tick.sample)
        self.count += 1

    def _add_sample(self, sample: BodySample | None) -> None:
        for name in ("position", "velocity", "current", "angular_velocity", "gravity"):
            self._set(name, np.nan if sample is None else getattr(sample, name))
        health = sample.health if sample else None
        for name in ("voltage", "temperature"):
            self._set(name, np.nan if health is None else getattr(health, name))
        alerts = _NO_ALERTS
        if sample is not None and sample.alerts:
            alerts = np.isin(JOINT_NAMES, sample.alerts)
        self._set("alerts", alerts)

    def _set(self, name: str, value: Any) -> None:
        self._columns[name][self.count] = value


def _or_nan(values: np.ndarray | None) -> Any:
    return np.nan if values is None else values
