"""From what a survey saw to the duck's deviations. Pure: no bus, no clock, no file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeGuard

from firmware_bridge.doctor import description
from firmware_bridge.doctor.facts import (
    Answer,
    BoardFacts,
    Doubled,
    LatencyTimer,
    ServoFacts,
    Stray,
    Survey,
    Unreliable,
)
from firmware_bridge.doctor.findings import Finding, Level, MoveToBaud, SetLatencyTimer
from firmware_bridge.doctor.servo_checks import FIX_IT, servo_deviations, wrong_model
from firmware_bridge.drive.limits import Battery, Limits
from firmware_bridge.robot import imu
from firmware_bridge.robot.devices import NAMES, model_name, name_of
from firmware_bridge.robot.imu import BOARD_ID, STATUS_GOOD, STATUS_TEXT
from hardware import servo
from hardware.joints import SERVO_IDS

_DEFAULT_LIMITS, _DEFAULT_BATTERY = Limits(), Battery()


def find_deviations(
    survey: Survey, limits: Limits = _DEFAULT_LIMITS, battery: Battery = _DEFAULT_BATTERY
) -> list[Finding]:
    """Return everything that differs from the duck's description, what keeps it from running first."""
    if survey.answers or survey.strays:
        findings = [*_presence(survey), *_strays(survey)]
        findings += _board(survey.answers.get(BOARD_ID)) if BOARD_ID in survey.required else []
        findings += _fast_read(survey)
        findings += [f for facts in survey.servos for f in servo_deviations(facts, limits, battery)]
    else:
        findings = [_silence(survey)]
    findings += _latency(survey.latency)
    order = (Level.CANNOT_RUN, Level.FIXABLE, Level.WARNING)
    return sorted(findings, key=lambda finding: order.index(finding.level))


def _silence(survey: Survey) -> Finding:
    return Finding(
        where="bus",
        what="answers",
        found="none",
        expected="15 servos and the IMU board" if BOARD_ID in survey.required else "15 servos",
        level=Level.CANNOT_RUN,
        effect=f"listened at {', '.join(map(str, survey.bauds))} baud",
        remedy="switch the servos' power on, check the data cable, and that no login console uses the port",
    )


def _presence(survey: Survey) -> Iterator[Finding]:
    """Find the duck's ids that do not answer as one device should."""
    for device, answer in survey.answers.items():
        if isinstance(answer, Doubled):
            yield Finding(
                where=name_of(device),
                what="devices with this id",
                found="two or more",
                expected="one",
                level=Level.CANNOT_RUN,
                effect="their answers destroy each other; one that only ever answers damaged looks the same",
                remedy="unplug one of them; a servo that has lost its id is a case for Dynamixel Wizard",
            )
        elif isinstance(answer, Unreliable):
            yield Finding(
                where=name_of(device),
                what="answers",
                found="some fail",
                expected="all are good",
                level=Level.CANNOT_RUN,
                effect=answer.reason,
                remedy="check its cable and plugs",
            )
    yield from (_missing(device, bool(survey.newcomers)) for device in survey.silent)


def _missing(device: int, newcomer: bool) -> Finding:
    remedy = "check its cable and power"
    if newcomer and device in SERVO_IDS:
        remedy = f"`duck setup --joint {NAMES[device]}` puts the new servo in its place"
    return Finding(
        where=name_of(device),
        what="answer",
        found="silent",
        expected="answers",
        level=Level.CANNOT_RUN,
        effect="the read of every tick waits for it in vain",
        remedy=remedy,
    )


def _strays(survey: Survey) -> Iterator[Finding]:
    for stray in survey.strays:
        if stray.id in NAMES and stray.id not in survey.answers:
            yield _lost(stray, survey.baud)
            continue
        if stray.id in survey.answers:
            effect, remedy = "its id is that of another device", "unplug it, or give it another id"
        elif stray.id == description.FACTORY_ID:
            effect, remedy = "a servo as it leaves the factory", "`duck setup` makes it part of the duck"
        else:
            effect, remedy = "no part of a duck", "unplug it"
        yield Finding(
            where=f"id {stray.id}",
            what="foreign device",
            found=f"{model_name(stray.model)} at {stray.baud} baud",
            expected="none",
            level=Level.WARNING,
            effect=effect,
            remedy=remedy,
        )


def _lost(stray: Stray, baud: int) -> Finding:
    """Return the finding about a part of the duck that answers at another speed."""
    is_board = stray.id == BOARD_ID
    expected = imu.MODEL_NUMBER if is_board else servo.MODEL_NUMBER
    if stray.model != expected:
        return wrong_model(stray.id, stray.model, expected)
    return Finding(
        where=name_of(stray.id),
        what="baud rate",
        found=str(stray.baud),
        expected=str(baud),
        level=Level.CANNOT_RUN if is_board else Level.FIXABLE,
        effect="it does not hear the rest of the bus",
        remedy="set it with the board's own tool" if is_board else FIX_IT,
        fix=None if is_board else MoveToBaud(stray.id, stray.baud, baud),
    )


def _board(board: Answer | None) -> Iterator[Finding]:
    if not isinstance(board, BoardFacts):
        return
    if board.model != imu.MODEL_NUMBER:
        yield wrong_model(BOARD_ID, board.model, imu.MODEL_NUMBER)
    elif not board.started or board.status != STATUS_GOOD:
        yield Finding(
            where=name_of(BOARD_ID),
            what="status",
            found=f"{board.status} ({STATUS_TEXT.get(board.status or 0, 'unknown')})",
            expected=f"{STATUS_GOOD} ({STATUS_TEXT[STATUS_GOOD]})",
            level=Level.WARNING if board.started else Level.CANNOT_RUN,
            effect="it sends orientations all the same" if board.started else "it sends no orientation",
            remedy="keep the duck still, and switch its power off and on",
        )


def _fast_read(survey: Survey) -> Iterator[Finding]:
    """Find what has no part in fast reads: one finding for all, since the first costs as much as ten."""
    slow = {
        device: answer.firmware
        for device, answer in survey.answers.items()
        if device in survey.required and _is_slow(answer)
    }
    if slow:
        yield Finding(
            where=name_of(*slow),
            what="fast sync read",
            found="firmware " + ", ".join(map(str, sorted(set(slow.values())))),
            expected=f"an answer (XL330: firmware {description.FAST_READ_FIRMWARE})",
            level=Level.WARNING,
            effect="without it the whole bus is read the plain way",
            remedy="update the firmware, a servo's with Dynamixel Wizard",
            cost_s=description.plain_read_cost(len(survey.required)),
        )


def _is_slow(answer: Answer) -> TypeGuard[ServoFacts | BoardFacts]:
    match answer:
        case ServoFacts(model=servo.MODEL_NUMBER):
            return not answer.fast or answer.firmware < description.FAST_READ_FIRMWARE
        case BoardFacts(model=imu.MODEL_NUMBER):
            return not answer.fast
    return False


def _latency(timer: LatencyTimer | None) -> Iterator[Finding]:
    if timer and (timer.value_s is None or timer.value_s > description.LATENCY_TIMER_S):
        value = timer.value_s
        yield Finding(
            where="USB adapter",
            what="latency timer",
            found="no number" if value is None else f"{value * 1e3:g} ms",
            expected=f"{description.LATENCY_TIMER_S * 1e3:g} ms",
            level=Level.FIXABLE,
            effect="the end of each answer may wait that long before the computer sees it",
            remedy=f"{FIX_IT} until the adapter is unplugged; a udev rule keeps it",
            cost_s=None if value is None else value - description.LATENCY_TIMER_S,
            fix=SetLatencyTimer(timer.path),
        )
