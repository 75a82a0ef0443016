"""Makes the faults of a schedule happen to emulated devices and to their replies. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from math import inf

import numpy as np

from firmware_bridge.emulator.damage import DAMAGES, Strike
from firmware_bridge.emulator.device import Device
from firmware_bridge.emulator.devices import EmulatedImuBoard, EmulatedServo
from firmware_bridge.emulator.faults import Fault, FaultKind, Schedule, Target
from firmware_bridge.emulator.wire import Reply, SyncRead, Wire
from firmware_bridge.wire import registers
from firmware_bridge.wire.protocol import Instruction, Packet
from firmware_bridge.wire.registers import Register
from hardware.errors import ConfigError

_RAMPS: Mapping[FaultKind, Register] = {
    FaultKind.OVERHEAT: registers.PRESENT_TEMPERATURE,
    FaultKind.BATTERY: registers.PRESENT_INPUT_VOLTAGE,
}
"""Kinds that lead what a servo measures to another value."""
_SWITCHES: Mapping[FaultKind, tuple[str, bool]] = {
    FaultKind.SILENT: ("silent", True),
    FaultKind.NO_FAST_READ: ("knows_fast_sync_read", False),
    FaultKind.IMU_FROZEN: ("frozen", True),
    FaultKind.IMU_STUCK: ("stuck", True),
    FaultKind.IMU_NOT_STARTED: ("started", False),
}
"""Kinds that set an attribute of a device while they last, and turn it back after."""
_CLASSES = {Target.SERVO: EmulatedServo, Target.ANY: Device, Target.BOARD: EmulatedImuBoard}


class Injector:
    """One run of a schedule on a wire, whose time begins now.

    Args:
        schedule: what happens.
        wire: to what.
        clock: time base [s].

    Attributes:
        struck: replies struck, and instructions echoed, so far, by the kind of the fault.
        spoilt: instructions so far of whose replies one or more were struck.

    Raises:
        ConfigError: a fault is to strike a device that is not there.
    """

    def __init__(self, schedule: Schedule, wire: Wire, clock: Callable[[], float]) -> None:
        _refuse_absent(schedule, sorted({device.id for device in wire.devices}))
        self._clock, self._zero = clock, clock()
        self._devices = [_DeviceFault(f, wire) for f in schedule.faults if f.target in _CLASSES]
        chances = [np.random.default_rng((schedule.seed, i)) for i in range(len(schedule.faults))]
        pairs = list(zip(schedule.faults, chances, strict=True))
        self._replies = [(f, chance) for f, chance in pairs if f.target is Target.REPLY]
        self._echoes = [(f, chance) for f, chance in pairs if f.target is Target.INSTRUCTION]
        self.struck: Counter[FaultKind] = Counter()
        self.spoilt = 0

    def advance(self) -> None:
        """Let happen to the devices what is due by now."""
        now = self._clock() - self._zero
        for fault in self._devices:
            fault.advance(now)

    def end(self) -> None:
        """Turn back what was switched; heat, an empty battery and what servos lost remain."""
        for fault in self._devices:
            fault.end()

    def damage(self, packet: Packet, replies: list[Reply]) -> list[Reply]:
        """Return what becomes of the replies to a packet."""
        before = self.struck.total()
        for fault, chance in self._replies:
            after: list[Reply] = []
            for reply in replies:
                if self._strikes(fault, chance, _speakers(reply, packet)):
                    after += DAMAGES[fault.kind](Strike(reply, packet, fault.size, chance))
                    self.struck[fault.kind] += 1
                else:
                    after.append(reply)
            replies = [reply for reply in after if reply.data]
        self.spoilt += self.struck.total() > before
        return replies

    def echoes(self) -> bool:
        """Return whether the host hears back what it just sent."""
        echoes = any([self._strikes(fault, chance, b"") for fault, chance in self._echoes])
        if echoes:
            self.struck[FaultKind.ECHO] += 1
        return echoes

    def _strikes(self, fault: Fault, chance: np.random.Generator, devices: bytes) -> bool:
        on = fault.active(self._clock() - self._zero) and fault.device in (None, *devices)
        return on and chance.random() < fault.probability


class _DeviceFault:
    """A fault that strikes devices, and how far it has come."""

    def __init__(self, fault: Fault, wire: Wire) -> None:
        self._fault, self._wire = fault, wire
        self._struck: list[Device] = []
        self._before: list[int] = []
        self._begun = self._ended = False

    def advance(self, now: float) -> None:
        """Begin, go on or end, as the time from the injection on [s] demands."""
        if now < self._fault.start_s or self._ended:
            return
        if not self._begun:
            self._begin(now - self._fault.start_s)
        self._lead(now - self._fault.start_s)
        if not self._fault.active(now):
            self.end(now - self._fault.start_s - self._fault.seconds)

    def end(self, ago_s: float = 0.0) -> None:
        """Turn back what was switched, `ago_s` ago [s]."""
        if self._ended:
            return
        self._ended = True
        for device in self._struck:
            if self._fault.kind in _SWITCHES:
                name, value = _SWITCHES[self._fault.kind]
                setattr(device, name, not value)
            elif self._fault.kind is FaultKind.BROWN_OUT:
                device.power_up(ago_s)

    def _begin(self, ago_s: float) -> None:
        self._begun = True
        fault = self._fault
        self._struck = [
            device
            for device in self._wire.devices
            if isinstance(device, _CLASSES[fault.target]) and fault.device in (None, device.id)
        ]
        ramp = _RAMPS.get(fault.kind)
        self._before = [device.peek(ramp) for device in self._struck] if ramp else []
        for device in self._struck:
            if fault.kind in _SWITCHES:
                setattr(device, *_SWITCHES[fault.kind])
            elif fault.kind is FaultKind.BROWN_OUT:
                device.power_down()
            elif fault.kind is FaultKind.RESET:
                device.reboot(ago_s)
            elif fault.kind is FaultKind.ALERT and isinstance(device, EmulatedServo):
                device.trip(device.peek(registers.HARDWARE_ERROR) | int(fault.size))

    def _lead(self, elapsed: float) -> None:
        """Move what servos measure along its ramp; without an end it is a step."""
        register = _RAMPS.get(self._fault.kind)
        if register is None:
            return
        share = min(1.0, elapsed / self._fault.seconds) if 0 < self._fault.seconds < inf else 1.0
        last = self._fault.size / register.factor
        for device, first in zip(self._struck, self._before, strict=True):
            device.forced[register] = round(first + (last - first) * share)


def _refuse_absent(schedule: Schedule, present: list[int]) -> None:
    for fault in schedule.faults:
        if fault.device not in (None, *present):
            raise ConfigError(
                f"the fault {fault.kind} is to strike device {fault.device}; on this bus are "
                f"{', '.join(map(str, present))}"
            )


def _speakers(reply: Reply, packet: Packet) -> bytes:
    """Return the ids whose data a reply brings."""
    if packet.instruction == Instruction.FAST_SYNC_READ:
        return SyncRead.of(packet.parameters).ids
    return reply.data[4:5]
