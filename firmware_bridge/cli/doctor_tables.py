"""The doctor's report as a person reads it: the devices, their deviations, the verdict."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import wrap

from firmware_bridge.cli.tables import aligned
from firmware_bridge.doctor.facts import Answer, BoardFacts, Doubled, ServoFacts, Survey
from firmware_bridge.doctor.findings import Finding, verdict
from firmware_bridge.doctor.report import Report
from firmware_bridge.robot.devices import NAMES, model_name, name_of
from firmware_bridge.robot.imu import STATUS_TEXT
from firmware_bridge.wire import registers

_DEVICES = ("device", "model", "firmware", "volts", "deg C", "torque")
_DEVIATIONS = ("deviation", "found", "should be", "ms/tick", "where")
_WIDTH = 100
_MOST_NAMES = 2
"""Devices of one deviation that are named; of more only the ids are given."""


def report_text(report: Report) -> str:
    """Return the whole report."""
    parts = [*_survey_lines(report.survey)] if report.survey else []
    if report.findings:
        parts += ["", *_deviation_lines(report.findings)]
    return "\n".join([f"port {report.port}", *parts, "", verdict(report.findings)])


def _survey_lines(survey: Survey) -> list[str]:
    rows = [_DEVICES, *(_device_row(device, answer) for device, answer in survey.answers.items())]
    lines = aligned(rows, right=(2, 3, 4)) if len(rows) > 1 else []
    refused = ", ".join(map(str, survey.refused_bauds))
    return [*lines, f"this port cannot do {refused} baud"] if refused else lines


def _device_row(device: int, answer: Answer) -> tuple[str, ...]:
    match answer:
        case ServoFacts():
            return (name_of(device), model_name(answer.model), str(answer.firmware), *_measured(answer))
        case BoardFacts():
            text = STATUS_TEXT.get(answer.status or 0, "unknown status")
            return (name_of(device), f"{answer.model}, {text}", str(answer.firmware), "", "", "")
        case Doubled():
            return (name_of(device), "answers of two devices", "", "", "", "")
    return (name_of(device), "unreliable", "", "", "", "")


def _measured(facts: ServoFacts) -> tuple[str, str, str]:
    if not facts.values:
        return "", "", ""
    return (
        f"{facts.values[registers.PRESENT_INPUT_VOLTAGE]:.1f}",
        f"{facts.values[registers.PRESENT_TEMPERATURE]:g}",
        "on" if facts.values[registers.TORQUE_ENABLE] else "off",
    )


def _deviation_lines(findings: Sequence[Finding]) -> list[str]:
    groups = _grouped(findings)
    lines = aligned([_DEVIATIONS, *(_deviation_row(group) for group in groups)], right=(3,))
    text = [lines[0]]
    for line, group in zip(lines[1:], groups, strict=True):
        text += [line, *_wrapped(f"{group[0].effect}: {group[0].remedy}")]
    return text


def _wrapped(text: str) -> list[str]:
    indent = " " * 4
    return wrap(text, _WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)


def _grouped(findings: Iterable[Finding]) -> list[list[Finding]]:
    """Put findings that differ in nothing but the device into one group."""
    groups: dict[tuple[str, ...], list[Finding]] = {}
    for f in findings:
        groups.setdefault((f.what, f.found, f.expected, f.level.value, f.effect, f.remedy), []).append(f)
    return list(groups.values())


def _deviation_row(group: Sequence[Finding]) -> tuple[str, ...]:
    first = group[0]
    costs = [finding.cost_s for finding in group if finding.cost_s is not None]
    cost = f"{sum(costs) * 1e3:.2f}" if costs else ""
    return first.what, first.found, first.expected, cost, _place(group)


def _place(group: Sequence[Finding]) -> str:
    places = [finding.where for finding in group]
    if len(places) <= _MOST_NAMES:
        return ", ".join(places)
    ids = sorted(device for device in NAMES if name_of(device) in places)
    return f"{len(places)} devices: ids {', '.join(map(str, ids))}"
