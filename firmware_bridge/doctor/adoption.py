"""A servo fresh from the factory becomes part of a duck: it gets an id, the duck's speed and its settings.

A new servo answers as id 1 at 57,600 baud, which no part of a duck uses. One that somebody set to the duck's
speed already is taken as well, and so is one that an earlier attempt left half done.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from firmware_bridge.doctor import fixer
from firmware_bridge.doctor.description import FACTORY_BAUD, FACTORY_ID
from firmware_bridge.doctor.facts import ServoFacts
from firmware_bridge.doctor.findings import MoveToBaud
from firmware_bridge.doctor.survey import OpenAt, examine_servo
from firmware_bridge.robot.devices import ALL_SERVO_IDS, NAMES, model_name, name_of
from firmware_bridge.robot.presence import Presence, presence
from firmware_bridge.wire import registers
from firmware_bridge.wire.bus import Bus
from hardware import servo
from hardware.errors import BusTimeoutError, DeviceError

SKIP, STOP = "s", "q"
"""Answers that leave one servo out, and that end the set-up."""


class Newcomer(NamedTuple):
    """A servo that waits to be adopted: where it answers now [1/s]."""

    id: int
    baud: int


def missing_servos(bus: Bus) -> list[int]:
    """Return the duck's servo ids that are silent, the mouth's too, in the order of the joints.

    Raises:
        DeviceError: two servos answer as one id.
    """
    answers = {device: presence(bus, device) for device in ALL_SERVO_IDS}
    doubled = [device for device, found in answers.items() if found is Presence.MORE]
    if doubled:
        raise DeviceError(f"more than one servo answers as {name_of(*doubled)}; unplug one of them first")
    return [device for device, found in answers.items() if found is Presence.NONE]


def choose_place(missing: Sequence[int], joint: str | None = None) -> int | None:
    """Return the id that a new servo gets; None when nothing is missing.

    Args:
        missing: silent ids.
        joint: the place that the user names, if any.

    Raises:
        DeviceError: the place named is taken or none, or more than one is empty and none was named.
    """
    names = {NAMES[device]: device for device in ALL_SERVO_IDS}
    if joint is not None:
        if names.get(joint) not in missing:
            empty = ", ".join(NAMES[device] for device in missing) or "none"
            state = "answers already" if joint in names else "is no joint"
            raise DeviceError(f"{joint} {state}; joints whose servo is missing: {empty}")
        return names[joint]
    if len(missing) > 1:
        raise DeviceError(
            f"{len(missing)} servos are missing ({name_of(*missing)}), so a new one could be any of them. "
            f"Plug in those that are not new, or name the place with `--joint {NAMES[missing[0]]}`; "
            "`--all` sets up a whole new set"
        )
    return missing[0] if missing else None


def find_newcomer(open_at: OpenAt, place: int, baud: int = servo.BAUD) -> Newcomer:
    """Return where a new servo answers, trying the duck's speed before the factory's.

    One with the id of the empty place was left half done by an earlier attempt.

    Args:
        open_at: opens the bus.
        place: the id it is for.
        baud: the duck's speed [1/s].

    Raises:
        DeviceError: there is none, there are two, or it is of another model.
        PortError: the port cannot be opened.
    """
    for speed in (baud, FACTORY_BAUD):
        with open_at(speed) as bus:
            for device in (place, FACTORY_ID):
                if _is_there(bus, device):
                    return Newcomer(device, speed)
    raise DeviceError(
        f"no new servo answers (id {FACTORY_ID} at {baud} or {FACTORY_BAUD} baud); plug it in and check its "
        "cable; one that was used before needs a factory reset in Dynamixel Wizard"
    )


def find_vacancy(
    open_at: OpenAt, joint: str | None = None, baud: int = servo.BAUD
) -> tuple[int, Newcomer] | None:
    """Return which place is empty and where the servo for it answers; None when no place is empty.

    The factory's speed is listened at only if a place is empty.

    Args:
        open_at: opens the bus.
        joint: the place that the user names, if any.
        baud: the duck's speed [1/s].

    Raises:
        DeviceError: it is not clear which place is meant, or there is no new servo for it.
        PortError: the port cannot be opened.
    """
    with open_at(baud) as bus:
        place = choose_place(missing_servos(bus), joint)
    return None if place is None else (place, find_newcomer(open_at, place, baud))


def adopt(
    open_at: OpenAt, newcomer: Newcomer, place: int, baud: int = servo.BAUD, pause: fixer.Pause = time.sleep
) -> ServoFacts:
    """Give a new servo its id, then the duck's speed, then its settings; restart it and look at it.

    The id comes first, so that an attempt that breaks off leaves no servo with id 1 at the duck's speed that
    could be mistaken for another new one.

    Args:
        open_at: opens the bus.
        newcomer: where it answers.
        place: the id it gets, which is silent on the bus.
        baud: the duck's speed [1/s].
        pause: waits for a time [s].

    Returns:
        What the servo answers as a part of the duck.

    Raises:
        BusTimeoutError: it does not answer any more.
        DeviceError: it refuses, or reports an error that would trip it after its restart.
        PortError: the serial port fails.
    """
    if newcomer.id != place:
        with open_at(newcomer.baud) as bus:
            fixer.write_address(bus, newcomer.id, registers.ID, place)
            pause(fixer.EEPROM_PAUSE_S)
            bus.ping(place)
    if newcomer.baud != baud:
        fixer.move_to_baud(open_at, MoveToBaud(place, newcomer.baud, baud), pause)
    with open_at(baud) as bus:
        fixer.set_up(bus, place, pause)
        fixer.restart(bus, place, pause)
        return examine_servo(bus, place)


def adopt_all(
    open_at: OpenAt,
    ask: Callable[[str], str],
    report: Callable[[str], None],
    baud: int = servo.BAUD,
    pause: fixer.Pause = time.sleep,
) -> list[int]:
    """Set up a whole new set, servo by servo; those that answer as they should are left as they are.

    Args:
        open_at: opens the bus.
        ask: shows a question and returns the answer: nothing once the servo is plugged in, `s` to leave this
            one out, `q` to stop.
        report: tells a line of progress.
        baud: the duck's speed [1/s].
        pause: waits for a time [s].

    Returns:
        The ids still missing at the end.

    Raises:
        DeviceError: two servos answer as one id.
        PortError: the serial port fails.
    """
    with open_at(baud) as bus:
        missing = missing_servos(bus)
    report(f"{len(ALL_SERVO_IDS) - len(missing)} of {len(ALL_SERVO_IDS)} servos have their ids")
    left = list(missing)
    for place in missing:
        while place in left:
            answer = ask(
                f"Plug in the servo for {name_of(place)}, then press Enter ({SKIP} skips, {STOP} stops): "
            )
            if answer == STOP:
                return left
            if answer == SKIP:
                break
            try:
                facts = adopt(open_at, find_newcomer(open_at, place, baud), place, baud, pause)
            except (BusTimeoutError, DeviceError) as error:
                report(str(error))
            else:
                report(f"{name_of(place)}: {model_name(facts.model)}, firmware {facts.firmware}, is set up")
                left.remove(place)
    return left


def _is_there(bus: Bus, device: int) -> bool:
    """Return whether one servo of the duck's model answers as an id."""
    found = presence(bus, device)
    if found is Presence.NONE:
        return False
    if found is Presence.MORE:
        raise DeviceError(f"more than one servo answers as id {device}; plug in one new servo at a time")
    model, _ = bus.ping(device)
    if model != servo.MODEL_NUMBER:
        raise DeviceError(
            f"the device with id {device} is {model_name(model)}, but a duck needs "
            f"{model_name(servo.MODEL_NUMBER)}; plug in that"
        )
    return True
