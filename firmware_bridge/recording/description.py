"""The description of a recording: what drove, so that its numbers can be understood alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from time import monotonic
from typing import Any

from firmware_bridge.drive.modes import Mode
from firmware_bridge.recording.fields import SCHEMA
from firmware_bridge.skills.bundle import Bundle
from hardware import contract
from hardware.calibration import Calibration
from hardware.errors import ArchiveError
from hardware.files import parse_object
from hardware.joints import JOINT_NAMES

MAX_META_BYTES = 1024 * 1024
"""Largest description; a usual one takes 2 kB, and each change of the mode some 100 bytes."""
MAX_EVENTS = 1000
"""Most changes of the mode that are told with their reason."""
_MOST_NAMES, _LONGEST_NAME = 1024, 64
_MOST_LEVELS = 16
"""Deepest nesting of a description; a usual one has 3 levels."""
_FIRST, _LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
"""Between them a drive began; their nanoseconds have room in 64 bits."""


def describe(bundle: Bundle, name: str, p_gain: int | None, calibration: Calibration) -> dict[str, Any]:
    """Return the description of a drive that begins now.

    Args:
        bundle: the policy.
        name: what to call the bundle.
        p_gain: position P register of the servos, None for the bundle's.
        calibration: of the duck.
    """
    trained_for = contract.describe(bundle.layout, bundle.action_scale, bundle.p_gain)
    return {
        "schema": SCHEMA,
        "toolkit": version("microduck-toolkit"),
        "started": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "clock": monotonic(),
        "modes": [mode.value for mode in Mode],
        "skills": list(bundle.skills),
        "joints": list(JOINT_NAMES),
        "bundle": name,
        "layout": bundle.layout,
        "contract_digest": contract.digest(trained_for),
        "action_scale": bundle.action_scale,
        "p_gain": bundle.p_gain if p_gain is None else p_gain,
        "calibration": asdict(calibration),
    }


def encode(meta: Mapping[str, Any]) -> bytes:
    """Return a description as JSON."""
    return json.dumps(meta, indent=1, allow_nan=False).encode()


def parse(data: bytes | memoryview, name: str) -> dict[str, Any]:
    """Return a description, or a part of one, that can be written again in any form.

    What no text can hold, as of a file name that is not UTF-8, becomes a question mark.

    Raises:
        ArchiveError: it is too large or nested too deep, or no strict JSON object.
    """
    if len(data) > MAX_META_BYTES:
        raise ArchiveError(f"{name} is larger than {MAX_META_BYTES} bytes; it is no recording")
    return {
        _text(key): _plain(value, name, 1)
        for key, value in parse_object(bytes(data), name, ArchiveError).items()
    }


def started(meta: Mapping[str, Any]) -> datetime | None:
    """Return when a recording began, None where its description tells no such date."""
    given = meta.get("started")
    try:
        moment = datetime.fromisoformat(given) if isinstance(given, str) else None
    except ValueError:
        return None
    return moment if moment and moment.tzinfo and _FIRST <= moment < _LAST else None


def check_description(meta: Mapping[str, Any]) -> list[str]:
    """Return what hinders in a description that comes from anyone.

    Raises:
        ArchiveError: names in it are none, or its joints are not this duck's; its numbers mean nothing then.
    """
    schema = meta.get("schema")
    if type(schema) is not int:
        raise ArchiveError(f"has the schema {schema!r:.80}, which is no version; it is no recording")
    for key in ("modes", "skills"):
        if not _are_names(meta.get(key, [])):
            raise ArchiveError(f"its {key} are {meta[key]!r:.80}; they must be a list of short names")
    if meta.get("joints", list(JOINT_NAMES)) != list(JOINT_NAMES):
        raise ArchiveError(f"its joints are {meta['joints']!r:.200}; this duck's are {list(JOINT_NAMES)}")
    problems = []
    if schema != SCHEMA:
        problems.append(f"written with schema {schema}; read is what it shares with schema {SCHEMA}")
    if "started" in meta and started(meta) is None:
        problems.append(f"it began at {meta['started']!r:.80}, which is no date; its times count from 1970")
    if meta.get("ended") is not None:
        problems.append(f"it ended before its drive did: {meta['ended']!r:.200}")
    return problems


def _plain(value: Any, name: str, level: int) -> Any:
    if isinstance(value, str):
        return _text(value)
    if not isinstance(value, dict | list):
        return value
    if level == _MOST_LEVELS:
        raise ArchiveError(f"{name} is nested deeper than {_MOST_LEVELS} levels; it is no recording")
    if isinstance(value, list):
        return [_plain(item, name, level + 1) for item in value]
    return {_text(key): _plain(item, name, level + 1) for key, item in value.items()}


def _text(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _are_names(value: object) -> bool:
    return (
        isinstance(value, list)
        and len(value) <= _MOST_NAMES
        and all(isinstance(n, str) and 0 < len(n) <= _LONGEST_NAME and n.isprintable() for n in value)
    )
