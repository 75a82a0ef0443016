"""The duck's servos on a wire without time, packets that write to them, and servos that do not listen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from firmware_bridge.emulator.devices import EmulatedServo
from firmware_bridge.robot.servos import Servos
from firmware_bridge.wire.bus import Bus
from firmware_bridge.wire.protocol import Instruction, Packet

WRITES = (Instruction.WRITE, Instruction.SYNC_WRITE)


class Deaf(EmulatedServo):
    """Misses the first packets that write to it."""

    misses = 0

    def write(self, address: int, data: bytes) -> int:
        if self.misses:
            self.misses -= 1
            return 0
        return super().write(address, data)


@pytest.fixture
def servos(wire_bus: Bus) -> Servos:
    """The servos, nothing checked or switched on yet."""
    return Servos(wire_bus)


@pytest.fixture
def address() -> Callable[[Packet], int]:
    """Returns the address that a packet reads or writes."""
    return lambda packet: int.from_bytes(packet.parameters[:2], "little")


@pytest.fixture
def writes() -> Callable[[Any], list[Packet]]:
    """Returns the packets that wrote to servos."""
    return lambda port: [packet for packet in port.sent if packet.instruction in WRITES]


@pytest.fixture
def replace(wire_port) -> Callable[[EmulatedServo], None]:
    """Puts a servo in the place of the one with its id."""

    def swap(servo: EmulatedServo) -> None:
        wire_port.unplug(servo.id)
        wire_port.wire.devices.append(servo)

    return swap


@pytest.fixture
def make_deaf(replace: Callable[[EmulatedServo], None], clock) -> Callable[..., Deaf]:
    """Makes a servo miss the next packets that write to it."""

    def make(device: int, misses: int = 0) -> Deaf:
        deaf = Deaf(device, clock=clock)
        replace(deaf)
        deaf.misses = misses
        return deaf

    return make
