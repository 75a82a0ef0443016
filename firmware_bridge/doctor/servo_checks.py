"""What differs at one servo. Pure, like `checks`, which looks at the whole bus."""

from __future__ import annotations

from collections.abc import Iterator

from firmware_bridge.doctor import description
from firmware_bridge.doctor.description import show
from firmware_bridge.doctor.facts import ServoFacts
from firmware_bridge.doctor.findings import Finding, Level, Restart, WriteRegister
from firmware_bridge.drive.limits import Battery, Limits
from firmware_bridge.robot.devices import model_name, name_of
from firmware_bridge.robot.settings import SETTINGS, Setting
from firmware_bridge.wire import registers
from hardware import servo
from hardware.joints import SERVO_IDS

FIX_IT = "`duck doctor --fix` sets it"


def servo_deviations(facts: ServoFacts, limits: Limits, battery: Battery) -> list[Finding]:
    """Return what differs at one servo, apart from its firmware."""
    if facts.model != servo.MODEL_NUMBER:
        return [wrong_model(facts.id, facts.model, servo.MODEL_NUMBER)]
    return [
        *_settings(facts),
        *_homing(facts),
        *_errors(facts),
        *_voltage(facts, battery),
        *_temperature(facts, limits),
    ]


def wrong_model(device: int, found: int, expected: int) -> Finding:
    """Return the finding about a device of another model."""
    return Finding(
        where=name_of(device),
        what="model",
        found=model_name(found),
        expected=model_name(expected),
        level=Level.CANNOT_RUN,
        effect="another model keeps other values at the same addresses, so nothing more was read from it",
        remedy="put the right model in its place, or give it another id",
    )


def _settings(facts: ServoFacts) -> Iterator[Finding]:
    for setting in SETTINGS:
        value = facts.values[setting.register]
        if value != setting.expected:
            yield Finding(
                where=name_of(facts.id),
                what=setting.register.name.replace("_", " "),
                found=show(setting.register, value),
                expected=show(setting.register, setting.expected),
                level=Level.FIXABLE,
                effect=setting.effect(value),
                remedy=FIX_IT,
                cost_s=_cost(setting, facts.id, value),
                fix=WriteRegister(facts.id, setting.register, setting.expected),
            )


def _cost(setting: Setting, device: int, value: float) -> float | None:
    """Return what a setting adds to each tick [s]; the mouth has no part in a tick's read."""
    if not setting.delays:
        return None
    return value - setting.expected if device in SERVO_IDS else 0.0


def _homing(facts: ServoFacts) -> Iterator[Finding]:
    offset = facts.values[registers.HOMING_OFFSET]
    if offset:
        yield Finding(
            where=name_of(facts.id),
            what="homing offset",
            found=show(registers.HOMING_OFFSET, offset),
            expected=show(registers.HOMING_OFFSET, 0.0),
            level=Level.WARNING,
            effect="it turns the joint's zero by that angle",
            remedy="--fix leaves it alone, since a joint may be built for it; if this one stands wrong by "
            "that much, write 0 with Dynamixel Wizard; what is then left `duck calibrate` measures",
        )


def _errors(facts: ServoFacts) -> Iterator[Finding]:
    """Tell a servo that has tripped from one that only reports.

    Input voltage that trips nothing is no deviation: a charged pack is above the servo's own limit.
    """
    bits = int(facts.values[registers.HARDWARE_ERROR])
    tripped = bits & int(facts.values[registers.SHUTDOWN])
    if tripped:
        yield Finding(
            where=name_of(facts.id),
            what="hardware error",
            found=" + ".join(registers.hardware_errors(tripped)),
            expected="none",
            level=Level.FIXABLE,
            effect="it has switched its torque off",
            remedy="remove the cause and let it cool; `duck doctor --fix` then restarts it",
            fix=Restart(facts.id),
        )
    elif bits & ~registers.INPUT_VOLTAGE:
        yield Finding(
            where=name_of(facts.id),
            what="hardware error",
            found=" + ".join(registers.hardware_errors(bits)),
            expected="none",
            level=Level.WARNING,
            effect="it goes on all the same",
            remedy="switch its power off and on; if it comes back, change the servo",
        )


def _voltage(facts: ServoFacts, battery: Battery) -> Iterator[Finding]:
    volts = facts.values[registers.PRESENT_INPUT_VOLTAGE]
    least = battery.empty_v if battery.rail_is_pack else description.LOWEST_VOLTAGE
    if volts < least:
        effect = "the pack is empty" if battery.rail_is_pack else "too little for a servo"
    elif volts > servo.FULL_VOLTAGE:
        effect = "more than a full pack of two cells has"
    else:
        return
    yield Finding(
        where=name_of(facts.id),
        what="voltage",
        found=f"{volts:.1f} V",
        expected=f"{least:g} to {servo.FULL_VOLTAGE:g} V",
        level=Level.WARNING,
        effect=effect,
        remedy="check the battery or supply, and this servo's cable if it is the only one",
    )


def _temperature(facts: ServoFacts, limits: Limits) -> Iterator[Finding]:
    degrees = facts.values[registers.PRESENT_TEMPERATURE]
    if degrees >= limits.temperature_warn:
        yield Finding(
            where=name_of(facts.id),
            what="temperature",
            found=f"{degrees:g} deg C",
            expected=f"below {limits.temperature_warn:g} deg C",
            level=Level.WARNING,
            effect=f"a drive ends at {limits.temperature_limit:g} deg C",
            remedy="let it cool",
        )
