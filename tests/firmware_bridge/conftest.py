"""Wires for tests: one without time, one that plays recorded bytes, and a duck behind a real port."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import HealthCheck, settings

import firmware_bridge.wire.transport
from firmware_bridge.emulator.devices import Device, EmulatedImuBoard, EmulatedServo
from firmware_bridge.emulator.duck import EmulatedDuck
from firmware_bridge.emulator.wire import Wire
from firmware_bridge.wire import protocol
from firmware_bridge.wire.bus import Bus
from firmware_bridge.wire.port import SerialPort
from hardware.joints import MOUTH_ID, SERVO_IDS

settings.register_profile("any-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any-machine")


class StandingClock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class WirePort:
    """Emulated devices whose replies are there at once; a read never waits, so silence costs no time."""

    def __init__(self, devices: Sequence[Device], echo: bool = False) -> None:
        for device in devices:
            device.boot_s = device.eeprom_write_s = 0.0
        self.wire = Wire(devices)
        self.echo = echo
        self.sent: list[protocol.Packet] = []
        self.waiting = bytearray()
        self._parser = protocol.PacketParser(protocol.Discarded())

    def write(self, data: bytes) -> None:
        self.waiting += data if self.echo else b""
        for packet in self._parser.feed(data):
            self.sent.append(packet)
            self.waiting += self.wire.answer(packet)

    def read(self, count: int, deadline: float) -> bytes:
        data = bytes(self.waiting)
        self.waiting.clear()
        return data

    def flush_input(self) -> bytes:
        return self.read(0, 0.0)

    def servo(self, device_id: int) -> EmulatedServo:
        (device,) = self.wire.at(device_id)
        assert isinstance(device, EmulatedServo)
        return device

    def unplug(self, device_id: int) -> None:
        self.wire.devices = [device for device in self.wire.devices if device.id != device_id]


class ScriptedPort:
    """Plays recorded replies, one for each write, and keeps what was written."""

    def __init__(self, *replies: str) -> None:
        self.replies = [bytes.fromhex(reply) for reply in replies]
        self.sent: list[bytes] = []
        self.waiting = b""

    def write(self, data: bytes) -> None:
        self.sent.append(data)
        self.waiting += self.replies.pop(0) if self.replies else b""

    def read(self, count: int, deadline: float) -> bytes:
        data, self.waiting = self.waiting, b""
        return data

    def flush_input(self) -> bytes:
        return self.read(0, 0.0)


@pytest.fixture
def clock() -> StandingClock:
    return StandingClock()


@pytest.fixture
def wire_port(clock: StandingClock) -> WirePort:
    """The duck's sixteen devices on a wire without time; their own time is `clock`."""
    servos = [EmulatedServo(device_id, clock=clock) for device_id in (*SERVO_IDS, MOUTH_ID)]
    return WirePort([*servos, EmulatedImuBoard(clock=clock)])


@pytest.fixture
def wire_bus(wire_port: WirePort) -> Bus:
    return Bus(wire_port)


@pytest.fixture
def scripted() -> type[ScriptedPort]:
    return ScriptedPort


@pytest.fixture
def make_wire_port() -> type[WirePort]:
    return WirePort


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a busy machine answer late without failing a test that is not about lateness."""
    monkeypatch.setattr(firmware_bridge.wire.transport, "HOST_MARGIN_S", 0.05)
    monkeypatch.setattr(firmware_bridge.wire.transport, "ACK_MARGIN_S", 0.2)


@pytest.fixture
def duck(patient: None) -> Iterator[EmulatedDuck]:
    """A duck behind a real pseudo-terminal."""
    with EmulatedDuck() as emulated:
        yield emulated


@pytest.fixture
def bus(duck: EmulatedDuck) -> Iterator[Bus]:
    """A driver on the emulated duck's real port."""
    with SerialPort(duck.port) as port:
        yield Bus(port)
