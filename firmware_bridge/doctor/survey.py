"""Looking at a bus: who answers, at which speed, and what its registers hold. Reads only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from time import monotonic
from typing import TypeAlias

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
from firmware_bridge.robot import imu
from firmware_bridge.robot.devices import NAMES, REQUIRED_IDS
from firmware_bridge.robot.presence import Presence, presence
from firmware_bridge.robot.servos import Servos
from firmware_bridge.wire import registers
from firmware_bridge.wire.bus import Bus
from firmware_bridge.wire.port import SerialPort
from firmware_bridge.wire.registers import Register
from hardware import servo
from hardware.errors import BusTimeoutError, DeviceError, PortError

OpenAt: TypeAlias = Callable[[int], AbstractContextManager[Bus]]
"""Opens the bus at a speed [1/s] and closes it again; raises PortError where the port has no such speed."""
MOST_DELAY_S = 254 * servo.SECONDS_PER_RETURN_DELAY_COUNT + 0.016
"""How late an answer may be where nothing is set up: the longest return delay, and the 16 ms that an adapter
keeps bytes back unless told otherwise [s]."""
FAST_READ_S, FAST_READ_TRIES = 0.05, 2
"""Time for one device's answer to a fast sync read [s], far more than it needs, and how often it is asked."""

_EEPROM = (
    registers.RETURN_DELAY,
    registers.OPERATING_MODE,
    registers.HOMING_OFFSET,
    registers.PWM_SLOPE,
    registers.SHUTDOWN,
)
_RAM = (
    registers.TORQUE_ENABLE,
    registers.HARDWARE_ERROR,
    registers.PRESENT_INPUT_VOLTAGE,
    registers.PRESENT_TEMPERATURE,
)


def bus_on(path: str) -> OpenAt:
    """Return what opens the bus on a serial port."""

    @contextmanager
    def open_at(baud: int) -> Iterator[Bus]:
        with SerialPort(path, baud) as port:
            yield Bus(port, baud, MOST_DELAY_S)

    return open_at


def take_survey(
    open_at: OpenAt,
    baud: int = servo.BAUD,
    latency: Callable[[], LatencyTimer | None] = lambda: None,
    required: tuple[int, ...] = REQUIRED_IDS,
) -> Survey:
    """Look at the whole duck, and at other speeds only as long as something is missing.

    Args:
        open_at: opens the bus.
        baud: the duck's speed [1/s].
        latency: reads the adapter's timer; called while the port is open.
        required: ids without which this duck cannot run.

    Raises:
        PortError: the port cannot be opened at the duck's speed, or fails.
    """
    with open_at(baud) as bus:
        looks = {device: _look_at(bus, device) for device in NAMES}
        answers = {device: answer for device, answer in looks.items() if answer is not None}
        strays = tuple(stray for stray in _listen(bus, baud) if stray.id not in NAMES)
        survey = Survey(baud, answers, strays, (baud,), latency=latency(), required=required)
    for other in description.BAUDS:
        if len(survey.newcomers) >= len(survey.silent):  # a new servo may be the one that is missing
            break
        if other != baud:
            survey = _listen_elsewhere(open_at, other, survey)
    return survey


def examine_servo(bus: Bus, device: int) -> ServoFacts:
    """Read one servo; of a foreign model only its number, since its registers mean other things.

    Raises:
        BusTimeoutError: it does not answer.
        DeviceError: it refuses.
    """
    model, firmware = bus.ping(device)
    if model != servo.MODEL_NUMBER:
        return ServoFacts(device, model, firmware)
    values = {row: value for rows in (_EEPROM, _RAM) for row, value in _read(bus, device, rows).items()}
    return ServoFacts(device, model, firmware, _answers_fast(bus, device), values)


def _look_at(bus: Bus, device: int) -> Answer | None:
    found = presence(bus, device)
    if found is not Presence.ONE:
        return None if found is Presence.NONE else Doubled()
    try:
        return _examine_board(bus) if device == imu.BOARD_ID else examine_servo(bus, device)
    except (BusTimeoutError, DeviceError) as error:
        return Unreliable(str(error))


def _examine_board(bus: Bus) -> BoardFacts:
    model, firmware = bus.ping(imu.BOARD_ID)
    if model != imu.MODEL_NUMBER:
        return BoardFacts(model, firmware)
    status = int(bus.read(imu.BOARD_ID, imu.STATUS))
    block = bus.sync_read(imu.SAMPLE_ADDRESS, imu.SAMPLE_LENGTH, [imu.BOARD_ID])[imu.BOARD_ID]
    return BoardFacts(model, firmware, _answers_fast(bus, imu.BOARD_ID), status, any(block.data[6:]))


def _read(bus: Bus, device: int, rows: Sequence[Register]) -> dict[Register, float]:
    """Read registers, given by rising address, in one packet: behind a slow USB adapter each costs a wait."""
    start, last = rows[0].address, rows[-1]
    data = bus.sync_read(start, last.address + last.width - start, [device])[device].data
    return {row: row.decode(data[row.address - start : row.address - start + row.width]) for row in rows}


def _answers_fast(bus: Bus, device: int) -> bool:
    """Return whether a device answers one of a few fast sync reads of the tick's bytes."""
    return any(
        bus.read_if_room(Servos.TICK_ADDRESS, Servos.TICK_LENGTH, [device], monotonic() + FAST_READ_S)
        for _ in range(FAST_READ_TRIES)
    )


def _listen(bus: Bus, baud: int) -> list[Stray]:
    return [Stray(found.id, baud, found.model) for found in bus.scan()]


def _listen_elsewhere(open_at: OpenAt, baud: int, survey: Survey) -> Survey:
    """Return the survey with what answers at another speed."""
    try:
        with open_at(baud) as bus:
            strays = (*survey.strays, *_listen(bus, baud))
    except PortError:
        return replace(survey, refused_bauds=(*survey.refused_bauds, baud))
    return replace(survey, strays=strays, bauds=(*survey.bauds, baud))
