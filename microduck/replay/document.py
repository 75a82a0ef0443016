"""gap.json: everything that was found, as plain data."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any

from firmware_bridge.recording import Log
from microduck.replay.search import Finding, Trial
from microduck.replay.size import NOISE
from microduck.replay.study import Study
from microduck.replay.verdict import Verdict

KIND, SCHEMA = "microduck-gap", 1
_FROM_LOG = ("started", "toolkit", "bundle", "layout", "contract_digest", "p_gain")
"""What is copied from a log's description, if it is there."""


@dataclass(frozen=True)
class Source:
    """Where a page comes from.

    Attributes:
        log: name of the recording.
        command: the command line.
        made: date and time, UTC, ISO 8601.
    """

    log: str
    command: str
    made: str


def as_text(source: Source, log: Log, study: Study, verdict: Verdict) -> str:
    """Return a study as strict JSON."""
    before, after = study.gaps
    data = {
        "kind": KIND,
        "schema": SCHEMA,
        **asdict(source),
        "recording": {name: _told(log.meta.get(name)) for name in _FROM_LOG},
        "problem": log.problem,
        "replayed_s": round(study.driven.seconds, 2),
        "left_out_ticks": dict(study.driven.left_out),
        "bridged_periods": study.driven.bridged,
        "servos": asdict(study.servos),
        "other_servos_size": dict(study.others),
        "measured_volts": study.volts,
        "verdict": verdict.title,
        "sentences": list(verdict.sentences),
        "noise_size": NOISE,
        "size": study.search.start,
        "size_left": study.search.size,
        "causes": [_finding(one) for one in verdict.causes],
        "fitted": [_finding(one) for one in study.search.findings],
        "tried_alone": [_trial(one, study.search.start) for one in study.search.trials],
        "gap": asdict(before),
        "gap_left": asdict(after),
    }
    return json.dumps(data, indent=1, allow_nan=False) + "\n"


def _told(value: object) -> object:
    """Return what a log's description says, if it is of a kind that it may be."""
    is_told = isinstance(value, str | int) or (isinstance(value, float) and isfinite(value))
    return value if is_told else None


def _finding(finding: Finding) -> dict[str, Any]:
    cause = finding.cause
    return {
        "cause": cause.name,
        "parameter": cause.parameter,
        "component": cause.component,
        "own": finding.own,
        "value": finding.value,
        "explains": finding.share,
        "rivals": [rival.name for rival in finding.rivals],
    }


def _trial(trial: Trial, start: float) -> dict[str, Any]:
    return {"cause": trial.cause.name, "value": trial.best, "explains": 1 - trial.size / start}
