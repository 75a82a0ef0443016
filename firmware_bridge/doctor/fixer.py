"""Putting deviations right: EEPROM written only where it differs, without torque, and read back."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from firmware_bridge.doctor.description import show
from firmware_bridge.doctor.findings import Fix, MoveToBaud, Restart, SetLatencyTimer, WriteRegister
from firmware_bridge.doctor.latency import set_latency_timer
from firmware_bridge.doctor.survey import OpenAt
from firmware_bridge.robot.devices import ALL_SERVO_IDS, name_of
from firmware_bridge.robot.servos import REBOOT_S
from firmware_bridge.robot.settings import SETTINGS
from firmware_bridge.wire import registers
from firmware_bridge.wire.bus import Bus
from firmware_bridge.wire.registers import Register
from hardware import servo
from hardware.errors import BusTimeoutError, DeviceError, PortError

EEPROM_PAUSE_S = 0.02
"""Time a servo is left alone after a write to its EEPROM (pollen-robotics/microduck) [s]."""
Pause = Callable[[float], None]
"""Waits for a time [s]."""

_log = logging.getLogger(__name__)


class Outcome(NamedTuple):
    """What became of one fix: `text` says it in words."""

    done: bool
    text: str


def describe(fix: Fix) -> str:
    """Return what a fix does, as an order."""
    match fix:
        case WriteRegister(device, register, value):
            return f"{name_of(device)}: set {register.name.replace('_', ' ')} to {show(register, value)}"
        case MoveToBaud(device, baud, target):
            return f"{name_of(device)}: set the baud rate from {baud} to {target}, and what else differs"
        case Restart(device):
            return f"{name_of(device)}: restart"
        case SetLatencyTimer(path):
            return f"USB adapter: set {path} to 1 ms"


def apply(
    fixes: Sequence[Fix], open_at: OpenAt, baud: int = servo.BAUD, pause: Pause = time.sleep
) -> list[Outcome]:
    """Carry out fixes, going on after one that fails.

    Every servo goes limp before one is written or restarted: a duck with one limp knee falls worse than one
    that is limp all over. Speeds are set first and restarts come last, when the settings are right.

    Args:
        fixes: what to do.
        open_at: opens the bus.
        baud: the duck's speed [1/s].
        pause: waits for a time [s].

    Raises:
        PortError: the serial port fails.
    """
    outcomes = [_set_timer(fix) for fix in fixes if isinstance(fix, SetLatencyTimer)]
    moves = [fix for fix in fixes if isinstance(fix, MoveToBaud)]
    writes = [fix for fix in fixes if isinstance(fix, WriteRegister)]
    restarts = [fix for fix in fixes if isinstance(fix, Restart)]
    if not (moves or writes or restarts):
        return outcomes
    with open_at(baud) as bus:
        bus.sync_write(registers.TORQUE_ENABLE, dict.fromkeys(ALL_SERVO_IDS, 0))
    outcomes += [_outcome(fix, partial(_bring_home, open_at, fix, pause)) for fix in moves]
    with open_at(baud) as bus:
        for write in writes:
            wanted = [(write.register, write.value)]
            outcomes.append(_outcome(write, partial(change_settings, bus, write.device, wanted, pause)))
        outcomes += [_outcome(fix, partial(restart, bus, fix.device, pause)) for fix in restarts]
    return outcomes


def change_settings(bus: Bus, device: int, values: Sequence[tuple[Register, float]], pause: Pause) -> int:
    """Make registers of a servo's EEPROM hold these values [SI]; return how many had to be written.

    Where none differs, nothing is written and torque stays as it is.

    Raises:
        BusTimeoutError: the servo does not answer.
        DeviceError: it refuses a write, or does not hold the value afterwards.
    """
    differing = [(register, value) for register, value in values if bus.read(device, register) != value]
    if differing:
        release(bus, device)
    for register, value in differing:
        bus.write(device, register, value)
        pause(EEPROM_PAUSE_S)
        held = bus.read(device, register)
        if held != value:
            raise DeviceError(
                f"{name_of(device)} holds {show(register, held)} in {register.name} after "
                f"{show(register, value)} was written; change the servo"
            )
    return len(differing)


def set_up(bus: Bus, device: int, pause: Pause) -> None:
    """Make a servo hold all the settings of a duck's servo; see `change_settings`."""
    change_settings(bus, device, [(setting.register, setting.expected) for setting in SETTINGS], pause)


def release(bus: Bus, device: int) -> None:
    """Switch a servo's torque off if it is on; with torque on its EEPROM takes nothing.

    Raises:
        BusTimeoutError: the servo does not answer.
        DeviceError: it refuses.
    """
    if bus.read(device, registers.TORQUE_ENABLE):
        bus.write(device, registers.TORQUE_ENABLE, 0)


def write_address(bus: Bus, device: int, register: Register, value: float) -> None:
    """Write what changes how a device is spoken to: its id or its speed.

    The acknowledgement may come in the new way already and go unheard, so only an answer in the new way can
    prove the write.

    Raises:
        DeviceError: the device refuses.
    """
    release(bus, device)
    try:
        bus.write(device, register, value)
    except BusTimeoutError:
        _log.debug("no acknowledgement of %s = %g by device %d", register.name, value, device)


def move_to_baud(open_at: OpenAt, move: MoveToBaud, pause: Pause) -> None:
    """Bring a device from another speed to the duck's.

    Raises:
        BusTimeoutError: it does not answer at the new speed.
        DeviceError: it refuses.
        PortError: the serial port fails.
    """
    with open_at(move.baud) as bus:
        write_address(bus, move.device, registers.BAUD_RATE, servo.BAUD_CODES[move.target])
    pause(EEPROM_PAUSE_S)
    with open_at(move.target) as bus:
        bus.ping(move.device)


def restart(bus: Bus, device: int, pause: Pause) -> None:
    """Restart a servo, which clears a latched error, and prove that none is left that would trip it.

    Input voltage alone may come back: a charged pack is above the servo's own limit, which trips none of a
    duck's servos.

    Raises:
        BusTimeoutError: the servo does not come back.
        DeviceError: an error is there again.
    """
    bus.reboot(device)
    pause(REBOOT_S)
    bits = int(bus.read(device, registers.HARDWARE_ERROR)) & servo.SHUTDOWN_MASK
    if bits:
        causes = " + ".join(registers.hardware_errors(bits))
        raise DeviceError(
            f"{name_of(device)} reports {causes} after its restart; remove the cause, or change it"
        )


def _bring_home(open_at: OpenAt, move: MoveToBaud, pause: Pause) -> None:
    """Move a servo to the duck's speed; whoever has lost that has mostly lost its other settings too."""
    move_to_baud(open_at, move, pause)
    with open_at(move.target) as bus:
        set_up(bus, move.device, pause)


def _outcome(fix: Fix, action: Callable[[], object]) -> Outcome:
    try:
        action()
    except (BusTimeoutError, DeviceError) as error:
        return Outcome(False, f"{describe(fix)}: failed: {error}")
    return Outcome(True, describe(fix))


def _set_timer(fix: SetLatencyTimer) -> Outcome:
    try:
        set_latency_timer(fix.path)
    except PortError as error:
        return Outcome(False, str(error))
    return Outcome(True, describe(fix))
