"""What the servos tell about themselves beside their motion, read in ticks that have room for it."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import inf
from time import monotonic
from typing import NamedTuple

import numpy as np

from firmware_bridge.robot.devices import name_of
from firmware_bridge.robot.servos import WATCHDOG_S
from firmware_bridge.wire import registers
from firmware_bridge.wire.bus import Bus
from firmware_bridge.wire.protocol import Block
from hardware import servo
from hardware.joints import JOINT_NAMES, NUM_JOINTS, SERVO_IDS

PERIOD_S = 1.0
"""Time between two readings of the same registers [s]; heat and batteries change more slowly."""
WATCHDOG_TRIPPED = -1
"""What the bus watchdog's register holds after it stopped the servo."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Health:
    """Slow measurements of the joints' servos.

    Attributes:
        time_s: monotonic time since when nothing in here is older [s].
        voltage: of the supply, (14,) [V]; the same array until it is measured again.
        temperature: (14,) [deg C].
        torque: whether torque is on, (14,) bool.
        faults: names of the hardware errors by joint, for joints that have one.
        watchdog_tripped: whether a servo stopped because the bus was silent.
        rebooted: joints that restarted by themselves since they were enabled, and so lost torque and gains.
    """

    time_s: float
    voltage: np.ndarray
    temperature: np.ndarray
    torque: np.ndarray
    faults: Mapping[str, tuple[str, ...]]
    watchdog_tripped: bool
    rebooted: tuple[str, ...]


class _Part(NamedTuple):
    """Registers that are read together: address of the first and number of bytes."""

    address: int
    length: int


_STATE = _Part(registers.TORQUE_ENABLE.address, 7)  # to the hardware error status
_WATCHDOG = _Part(registers.BUS_WATCHDOG.address, 1)
_SUPPLY = _Part(registers.PRESENT_INPUT_VOLTAGE.address, 3)  # and temperature
_PARTS = (_STATE, _WATCHDOG, _SUPPLY)
_ARMED = round(WATCHDOG_S / servo.SECONDS_PER_WATCHDOG_COUNT)
_SUPPLY_COUNTS = registers.block_struct(
    _SUPPLY.address, registers.PRESENT_INPUT_VOLTAGE, registers.PRESENT_TEMPERATURE
)


class HealthWatch:
    """Reads the servos' health a part at a time, and names each new fault once.

    Args:
        bus: the bus.
    """

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._torque = np.zeros(NUM_JOINTS, dtype=bool)
        self._watchdog = np.zeros(NUM_JOINTS, dtype=int)
        self._voltage = np.zeros(NUM_JOINTS)
        self._temperature = np.zeros(NUM_JOINTS)
        self._errors: dict[int, int] = {}
        self._explained: set[int] = set()
        self._enabled = False
        self._read_at = dict.fromkeys(_PARTS, -inf)
        self._due = 0.0
        self._updated = inf
        self._paused = False
        self._charged = False
        self.newest: Health | None = None

    def read_all(self) -> None:
        """Read everything now, outside of any tick.

        Raises:
            BusTimeoutError: a servo does not answer.
        """
        for part in _PARTS:
            self._take(part, self._bus.sync_read(*part, SERVO_IDS), monotonic())
        self._due = monotonic() + PERIOD_S / len(_PARTS)
        self._publish()

    def update(self, alerts: Collection[int], now: float, deadline: float) -> None:
        """Read one part, if one is due and has room in the tick.

        The state of servos whose alert is new goes first, once for each alert. After a pause in which the
        servos may have stopped by themselves, the bus watchdog is next.

        Args:
            alerts: ids of the servos whose alert bit is set.
            now: monotonic time [s].
            deadline: monotonic time by which answers must be there [s].
        """
        self._explained.intersection_update(alerts)
        self._paused = self._paused or now - self._updated > WATCHDOG_S
        self._updated = now
        new = [device for device in alerts if device not in self._explained]
        part, devices = min(_PARTS, key=self._read_at.__getitem__), SERVO_IDS
        if new:
            part, devices = _STATE, tuple(new)
        elif self._paused:
            part = _WATCHDOG
        elif now < self._due:
            return
        blocks = self._bus.read_if_room(*part, devices, deadline)
        if blocks is None:
            return
        self._explained.update(device for device in new if device in blocks)
        self._paused = self._paused and part is not _WATCHDOG
        self._due = now + PERIOD_S / len(_PARTS)
        self._take(part, blocks, now)
        self._publish()

    def switched(self, on: bool) -> None:
        """Note that every servo was seen to have torque and an armed watchdog, or neither.

        A servo that has lost one of them while both were on has restarted.
        """
        self._enabled = on
        self._torque[:] = on
        self._watchdog[:] = _ARMED if on else 0
        self._publish()

    def _take(self, part: _Part, blocks: Mapping[int, Block], now: float) -> None:
        if part is _SUPPLY:
            self._voltage = self._voltage.copy()  # who has the old one sees by that that it is old
        for device, block in blocks.items():
            joint = SERVO_IDS.index(device)
            if part is _STATE:
                self._torque[joint] = bool(block.data[0])
                self._note_errors(device, block.data[-1])
            elif part is _WATCHDOG:
                self._watchdog[joint] = int.from_bytes(block.data, "little", signed=True)
            else:
                counts, self._temperature[joint] = _SUPPLY_COUNTS.unpack(block.data)
                self._voltage[joint] = counts * servo.VOLTS_PER_COUNT
        if len(blocks) == NUM_JOINTS:
            self._read_at[part] = now

    def _note_errors(self, device: int, bits: int) -> None:
        """Log a servo's hardware errors when they change."""
        before = self._errors.get(device, 0)
        if bits == before:
            return
        self._errors[device] = bits
        if not bits:
            del self._errors[device]
        names = registers.hardware_errors(bits)
        if not registers.CHARGED_PACK.issuperset(names):
            tripped = " and has switched its torque off" if bits & servo.SHUTDOWN_MASK else ""
            _log.warning("%s reports %s%s", name_of(device), " + ".join(names), tripped)
        elif not registers.CHARGED_PACK.issuperset(registers.hardware_errors(before)):
            _log.info("%s no longer reports a fault", name_of(device))
        elif bits and not self._charged:
            self._charged = True
            _log.warning(
                "servos report input voltage, as on any charged pack (above 7.0 V); none switches off for it"
            )

    def _rebooted(self, joint: int) -> bool:
        device = SERVO_IDS[joint]
        stopped = self._watchdog[joint] == WATCHDOG_TRIPPED
        tripped = bool(self._errors.get(device, 0) & servo.SHUTDOWN_MASK)
        lost_torque = not self._torque[joint] and not tripped and not stopped
        return self._enabled and (lost_torque or self._watchdog[joint] == 0)

    def _publish(self) -> None:
        self.newest = Health(
            time_s=min(self._read_at.values()),
            voltage=self._voltage,
            temperature=self._temperature.copy(),
            torque=self._torque.copy(),
            faults={
                JOINT_NAMES[SERVO_IDS.index(device)]: registers.hardware_errors(bits)
                for device, bits in self._errors.items()
            },
            watchdog_tripped=WATCHDOG_TRIPPED in self._watchdog,
            rebooted=tuple(JOINT_NAMES[joint] for joint in range(NUM_JOINTS) if self._rebooted(joint)),
        )
