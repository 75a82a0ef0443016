"""Finding the serial port that a duck is on, by asking for it on each."""

from __future__ import annotations

from typing import NamedTuple

from firmware_bridge.robot import imu
from firmware_bridge.robot.body import DEVICES
from firmware_bridge.wire import port
from firmware_bridge.wire.bus import Bus
from firmware_bridge.wire.port import SerialPort
from hardware import servo
from hardware.errors import BusError, PortError

_MODELS = {servo.MODEL_NUMBER, imu.MODEL_NUMBER}


class _Answer(NamedTuple):
    """Whether a duck answers on a port, and in words what does."""

    duck: bool
    text: str


def find_port(baud: int = servo.BAUD) -> str:
    """Return the serial port on which a duck answers; asks on every free port, and writes nothing.

    Args:
        baud: speed of the duck's bus [1/s].

    Raises:
        PortError: no duck answers, or two do; names each port and what answered there.
    """
    answers = {path: _ask(path, baud) for path in port.candidates()}
    found = [path for path, answer in answers.items() if answer.duck]
    if len(found) == 1:
        return found[0]
    if found:
        raise PortError(f"ducks answer on {' and '.join(found)}; name the port of the one that you mean")
    if not answers:
        raise PortError("this machine has no serial port; connect the adapter of the duck's bus")
    tried = "; ".join(f"{path}: {answer.text}" for path, answer in answers.items())
    raise PortError(
        f"no duck answers at {baud} baud ({tried}); switch the servos' power on and check the cable, or name "
        "the port"
    )


def _ask(path: str, baud: int) -> _Answer:
    try:
        with SerialPort(path, baud) as opened:
            bus = Bus(opened, baud)
            models = bus.models(DEVICES)
            return _Answer(bool(_MODELS & {*models.values()}), _in_words(models or _scan(bus)))
    except BusError as error:
        return _Answer(False, str(error))


def _scan(bus: Bus) -> dict[int, int]:
    return {found.id: found.model for found in bus.scan()}


def _in_words(models: dict[int, int]) -> str:
    return ", ".join(f"id {device} is model {model}" for device, model in models.items()) or "silence"
