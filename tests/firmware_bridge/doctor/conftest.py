"""A desk with a duck's devices on a wire of its own: no time passes on it but by pauses."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from firmware_bridge.doctor import report, survey
from firmware_bridge.emulator.device import Device
from firmware_bridge.emulator.devices import EmulatedImuBoard, EmulatedServo
from firmware_bridge.emulator.wire import Wire
from firmware_bridge.wire import protocol, registers
from firmware_bridge.wire.bus import Bus
from firmware_bridge.wire.protocol import Instruction, Packet
from hardware.errors import PortError
from hardware.joints import MOUTH_ID, SERVO_IDS


class Desk:
    """Opens the duck's bus at any speed, and keeps what was opened and sent."""

    def __init__(self) -> None:
        self.now = 0.0
        self.wire = Wire([*(self.new_servo(i) for i in (*SERVO_IDS, MOUTH_ID))])
        self.wire.devices.append(EmulatedImuBoard(clock=self.clock))
        self.pause(1.0)
        self.opened: list[int] = []
        self.refused: set[int] = set()
        self.sent: list[Packet] = []

    def clock(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.now += seconds

    def new_servo(self, device: int, factory: bool = False) -> EmulatedServo:
        return EmulatedServo(device, factory, clock=self.clock)

    def servo(self, device: int) -> EmulatedServo:
        (found,) = self.wire.at(device)
        assert isinstance(found, EmulatedServo)
        return found

    def plug(self, device: Device) -> None:
        self.wire.devices.append(device)
        self.pause(1.0)

    def unplug(self, *devices: int) -> None:
        self.wire.devices = [device for device in self.wire.devices if device.id not in devices]

    @contextmanager
    def open_at(self, baud: int) -> Iterator[Bus]:
        if baud in self.refused:
            raise PortError(f"no {baud} baud here")
        self.opened.append(baud)
        yield Bus(_DeskPort(self, baud), baud)

    @property
    def eeprom_writes(self) -> int:
        return sum(device.eeprom_writes for device in self.wire.devices)

    @property
    def orders(self) -> list[Packet]:
        """What was sent that changes a device."""
        changing = (Instruction.WRITE, Instruction.SYNC_WRITE, Instruction.REBOOT)
        return [packet for packet in self.sent if packet.instruction in changing]

    @property
    def torque_orders(self) -> list[Packet]:
        address = registers.TORQUE_ENABLE.address.to_bytes(2, "little")
        writes = [p for p in self.orders if p.instruction != Instruction.REBOOT]
        return [packet for packet in writes if packet.parameters[:2] == address]


class _DeskPort:
    def __init__(self, desk: Desk, baud: int) -> None:
        self._desk, self._baud = desk, baud
        self._parser = protocol.PacketParser(protocol.Discarded())
        self._waiting = b""

    def write(self, data: bytes) -> None:
        for packet in self._parser.feed(data):
            self._desk.sent.append(packet)
            self._waiting += self._desk.wire.answer(packet, self._baud)

    def read(self, count: int, deadline: float) -> bytes:
        data, self._waiting = self._waiting, b""
        return data

    def flush_input(self) -> bytes:
        return self.read(0, 0.0)


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Desk:
    """A desk in place of every serial port, for the commands; no settings of whoever runs the tests."""
    monkeypatch.delenv("MICRODUCK_CONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("emulator.device.BOOT_S", "emulator.device.EEPROM_WRITE_S"):
        monkeypatch.setattr(f"firmware_bridge.{name}", 0.0)  # commands wait by themselves, and need not here
    for name in ("EEPROM_PAUSE_S", "REBOOT_S"):
        monkeypatch.setattr(f"firmware_bridge.doctor.fixer.{name}", 0.0)
    desk = Desk()
    for module in (survey, report):
        monkeypatch.setattr(module, "bus_on", lambda path: desk.open_at)
    return desk


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Types for the user."""
    return lambda text: monkeypatch.setattr("sys.stdin", io.StringIO(text))
