"""MCAP: JSON messages with a schema for each topic, which Foxglove and others plot by their paths.

A topic is one message a tick, `/joints` for example, with the path `/joints.left_knee.position`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from firmware_bridge.recording.columns import columns
from firmware_bridge.recording.extras import extra
from firmware_bridge.recording.log import Log
from firmware_bridge.recording.times import tick_nanoseconds

_JOINTS = ("requested", "applied", "position", "velocity", "current", "voltage", "temperature", "alerts")
_TOPICS: Mapping[str, tuple[str, ...]] = {
    "joints": _JOINTS,
    "imu": ("angular_velocity", "gravity"),
    "command": ("command_requested", "command", "head"),
    "loop": ("mode", "skill", "fresh", "periods", "missed", "bus_errors", "stages"),
    "policy": ("observation", "action"),
}
CHUNK = 1000
"""Ticks whose values are put into lists at a time."""


class _Path(NamedTuple):
    """Where in a topic's message a column goes: the keys, and its values."""

    keys: tuple[str, ...]
    unit: str
    values: np.ndarray


def writer() -> Callable[[Log, Path], None]:
    """Return what writes a log.

    Raises:
        ConfigError: mcap is not installed.
    """
    library = extra("mcap.writer", "mcap")

    def write(log: Log, path: Path) -> None:
        with path.open("wb") as file:
            out = library.Writer(file)
            out.start(library="microduck-toolkit")
            out.add_metadata("microduck", {key: json.dumps(value) for key, value in log.meta.items()})
            channels = {topic: _add_channel(out, topic, paths) for topic, paths in _topics(log).items()}
            for time, topic, data in _messages(log):
                out.add_message(channels[topic], time, data, time)
            out.finish()

    return write


def _topics(log: Log) -> dict[str, list[_Path]]:
    """Return the paths of each topic; a joint's values are together."""
    topic_of = {field: topic for topic, fields in _TOPICS.items() for field in fields}
    topics: dict[str, list[_Path]] = {topic: [] for topic in _TOPICS}
    for column in columns(log):
        if column.field.name in topic_of:
            keys = tuple(column.name.split("."))
            keys = keys[::-1] if column.field.name in _JOINTS else keys
            topics[topic_of[column.field.name]].append(_Path(keys, column.unit, column.values(log)))
    return topics


def _add_channel(out: Any, topic: str, paths: list[_Path]) -> int:
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    for path in paths:
        level = schema
        for key in path.keys[:-1]:
            level = level["properties"].setdefault(key, {"type": "object", "properties": {}})
        kind = {"O": "string", "b": "boolean", "f": "number"}.get(path.values.dtype.kind, "integer")
        level["properties"][path.keys[-1]] = {"type": kind, "description": f"[{path.unit}]"}
    schema_id = out.register_schema(f"microduck.{topic}", "jsonschema", json.dumps(schema).encode())
    return out.register_channel(f"/{topic}", "json", schema_id)


def _messages(log: Log) -> Iterator[tuple[int, str, bytes]]:
    """Yield time [ns], topic and JSON of each message; what is not known, or infinite, is left out of it."""
    times = tick_nanoseconds(log).tolist()
    topics = _topics(log)
    for begin in range(0, log.ticks, CHUNK):
        piece = slice(begin, begin + CHUNK)
        lists = {topic: [path.values[piece].tolist() for path in paths] for topic, paths in topics.items()}
        for place, time in enumerate(times[piece]):
            for topic, paths in topics.items():
                message: dict[str, Any] = {}
                for path, values in zip(paths, lists[topic], strict=True):
                    value = values[place]
                    if not isinstance(value, float) or isfinite(value):
                        _put(message, path.keys, value)
                yield time, topic, json.dumps(message, separators=(",", ":")).encode()


def _put(message: dict[str, Any], keys: tuple[str, ...], value: Any) -> None:
    for key in keys[:-1]:
        message = message.setdefault(key, {})
    message[keys[-1]] = value
