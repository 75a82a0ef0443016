"""report.json: everything that was measured, as plain data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hardware.errors import ConfigError
from hardware.files import parse_object, read_bounded
from microduck.evaluation import Check, TaskResult, score
from microduck.report.compare import Delta, deltas
from microduck.report.measures import MEASURES
from microduck.report.provenance import Provenance
from microduck.report.study import Study

KIND, SCHEMA = "microduck-report", 1
MAX_BYTES = 16 * 1024 * 1024
"""Most a report.json may hold; one of nine skills holds some hundred thousand."""
_SUMMARY = ("task", "met", "score", "not_met", "measures")
"""What a task's results come down to."""


@dataclass(frozen=True)
class Report:
    """What a report is made of.

    Attributes:
        study: the policy it is about.
        other: the one it is compared with, if any.
        provenance: how it came to be.
    """

    study: Study
    other: Study | None
    provenance: Provenance


def as_text(report: Report) -> str:
    """Return a report as strict JSON."""
    data = {"kind": KIND, "schema": SCHEMA, "provenance": report.provenance.as_data(), **_study(report.study)}
    if report.other is not None:
        data["compared_with"] = _study(report.other)
        data["differences"] = _differences(report.study.plain, report.other.plain)
        if report.study.rough and report.other.rough:
            data["rough_differences"] = _differences(report.study.rough, report.other.rough)
    return json.dumps(data, indent=1, allow_nan=False) + "\n"


def _study(study: Study) -> dict[str, Any]:
    subject = study.subject
    return {
        "subject": {
            "folder": subject.name,
            "kind": subject.kind,
            "policy_sha256": subject.digest,
            "layout": subject.layout,
            "action_scale_rad": subject.action_scale,
            "training": dict(subject.training),
        },
        "conditions": study.conditions,
        "tasks": [_task(result) for result in study.plain],
        "rough_tasks": None if study.rough is None else [_task(result) for result in study.rough],
    }


def _task(result: TaskResult) -> dict[str, Any]:
    return {
        "task": result.task,
        "met": result.met,
        "score": score(result),
        "not_met": [str(check) for check in result.unmet],
        "measures": {measure.name: measure.of(result) for measure in MEASURES},
        "checks": [_check(check) for check in result.checks],
        "commands": [asdict(point) for point in result.points],
    }


def _check(check: Check) -> dict[str, Any]:
    return {**asdict(check), "met": check.met}


def _differences(these: Sequence[TaskResult], others: Sequence[TaskResult]) -> list[dict[str, Any]]:
    return [_difference(delta) for delta in deltas(these, others)]


def _difference(delta: Delta) -> dict[str, Any]:
    names = {"task": delta.task, "measure": delta.measure.name}
    return {**names, "this": delta.this, "other": delta.other, "mark": delta.mark}


def read_summary(path: Path) -> dict[str, Any]:
    """Return what a report.json comes down to: its tasks without single commands and checks, for a manifest.

    Raises:
        ConfigError: it is absent, too large, damaged, or of another kind or schema.
    """
    data = parse_object(read_bounded(path, MAX_BYTES, ConfigError), str(path), ConfigError)
    found = data.get("kind"), data.get("schema")
    if found != (KIND, SCHEMA):
        raise ConfigError(
            f"{path} is of kind and schema {found!r:.80}; this toolkit reads {(KIND, SCHEMA)!r}, so run "
            "`microduck eval` again"
        )
    made, subject = data.get("provenance"), data.get("subject")
    if not isinstance(made, dict) or not isinstance(subject, dict):
        raise ConfigError(f"{path} lacks its provenance or its subject; run `microduck eval` again")
    return {
        "policy_sha256": subject.get("policy_sha256"),
        "conditions": data.get("conditions"),
        **{key: made.get(key) for key in ("seed", "episodes", "seconds")},
        "tasks": _summaries(data, "tasks", path),
        "rough_tasks": None if data.get("rough_tasks") is None else _summaries(data, "rough_tasks", path),
    }


def _summaries(data: dict[str, Any], key: str, path: Path) -> list[dict[str, Any]]:
    tasks = data.get(key)
    if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
        raise ConfigError(f"{path}: {key!r} must list one object for each task; run `microduck eval` again")
    return [{name: task.get(name) for name in _SUMMARY} for task in tasks]
