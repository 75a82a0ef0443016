"""An examination from port to conclusion, as data that a table or a script can use."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

from firmware_bridge.config import Config
from firmware_bridge.doctor.checks import find_deviations
from firmware_bridge.doctor.facts import Answer, BoardFacts, Doubled, ServoFacts, Survey
from firmware_bridge.doctor.findings import Finding, Fix, Level, cost, exit_code, verdict
from firmware_bridge.doctor.fixer import Outcome, describe
from firmware_bridge.doctor.imu_checks import imu_deviations
from firmware_bridge.doctor.latency import read_latency_timer
from firmware_bridge.doctor.survey import bus_on, take_survey
from firmware_bridge.robot.devices import NAMES, REQUIRED_IDS
from hardware.errors import PortError
from hardware.joints import SERVO_IDS


@dataclass(frozen=True)
class Report:
    """What an examination found.

    Attributes:
        port: serial port.
        survey: what was seen; None when the port did not work.
        findings: the deviations.
        outcomes: what was fixed before, if anything.
    """

    port: str
    survey: Survey | None
    findings: tuple[Finding, ...]
    outcomes: tuple[Outcome, ...] = field(default=())

    @property
    def fixes(self) -> list[Fix]:
        """What `--fix` can do."""
        return [finding.fix for finding in self.findings if finding.fix is not None]

    def as_json(self) -> dict[str, Any]:
        """Return the report in plain types; times in milliseconds, as the keys say."""
        survey = self.survey
        answers = survey.answers.items() if survey else ()
        strays = survey.strays if survey else ()
        return {
            "port": self.port,
            "baud": survey.baud if survey else None,
            "bauds_listened_at": list(survey.bauds) if survey else [],
            "devices": [_device(device, answer) for device, answer in answers],
            "other_devices": [{"id": s.id, "baud": s.baud, "model": s.model} for s in strays],
            "deviations": [_deviation(finding) for finding in self.findings],
            "fixed": [{"done": outcome.done, "text": outcome.text} for outcome in self.outcomes],
            "cost_ms_per_tick": round(cost(self.findings) * 1e3, 3),
            "verdict": verdict(self.findings),
            "exit_code": exit_code(self.findings),
        }


def examine(port: str, config: Config) -> Report:
    """Look at the bus on a port, and at an IMU elsewhere, and compare them with the duck's description.

    Nothing is written to the bus.

    Raises:
        PortError: the port does not work.
    """
    required = REQUIRED_IDS if config.imu.on_bus else SERVO_IDS
    survey = take_survey(bus_on(port), config.bus.baud, partial(read_latency_timer, port), required)
    findings = [*imu_deviations(config.imu), *find_deviations(survey, config.limits, config.battery)]
    return Report(port, survey, tuple(findings))


def port_trouble(port: str, error: PortError) -> Finding:
    """Return the finding about a port that does not work."""
    return Finding(
        where=port,
        what="serial port",
        found="does not work",
        expected="opens",
        level=Level.CANNOT_RUN,
        effect="no device can be asked",
        remedy=str(error),
    )


def _device(device: int, answer: Answer) -> dict[str, Any]:
    row: dict[str, Any] = {"id": device, "name": NAMES[device], "answers": "alone"}
    match answer:
        case ServoFacts():
            values = {register.name: value for register, value in answer.values.items()}
            return {**row, **_common(answer), "registers": values}
        case BoardFacts():
            return {**row, **_common(answer), "status": answer.status, "started": answer.started}
        case Doubled():
            return {**row, "answers": "doubled"}
    return {**row, "answers": "unreliable", "reason": answer.reason}


def _common(facts: ServoFacts | BoardFacts) -> dict[str, Any]:
    return {"model": facts.model, "firmware": facts.firmware, "fast_sync_read": facts.fast}


def _deviation(finding: Finding) -> dict[str, Any]:
    return {
        "where": finding.where,
        "what": finding.what,
        "found": finding.found,
        "expected": finding.expected,
        "level": finding.level.value,
        "effect": finding.effect,
        "remedy": finding.remedy,
        "cost_ms_per_tick": None if finding.cost_s is None else round(finding.cost_s * 1e3, 3),
        "fix": None if finding.fix is None else describe(finding.fix),
    }
