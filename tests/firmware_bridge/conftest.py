"""Wires for tests: without time, with recorded bytes, and real ports to ducks in real or stepped time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from math import inf
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from firmware_bridge.drive.clock import Ticker
from firmware_bridge.emulator.devices import Device, EmulatedImuBoard, EmulatedServo
from firmware_bridge.emulator.duck import EmulatedDuck
from firmware_bridge.emulator.wire import Wire
from firmware_bridge.robot import body, health, imu, servos
from firmware_bridge.robot.body import RealBody
from firmware_bridge.wire import port, protocol, transport
from firmware_bridge.wire.bus import Bus
from firmware_bridge.wire.port import SerialPort
from hardware.calibration import Calibration
from hardware.joints import MOUTH_ID, SERVO_IDS

settings.register_profile("any-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any-machine")

MACHINE_S = 60.0
"""Longest that bytes may take through a pseudo-terminal on a busy machine [s]."""


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
    monkeypatch.setattr(transport, "HOST_MARGIN_S", 0.05)
    monkeypatch.setattr(transport, "ACK_MARGIN_S", 0.2)


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


class SteppedTime:
    """Time that passes only when someone waits."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self._period_s = self._next_s = inf
        self._step: Callable[[], None] = lambda: None

    def now(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.move_to(self.now_s + max(seconds, 1e-9))  # a real sleep takes some time, however short

    def move_to(self, time_s: float) -> None:
        while self._next_s <= time_s:
            self.now_s = self._next_s
            self._next_s += self._period_s
            self._step()
        self.now_s = time_s

    def every(self, period_s: float, step: Callable[[], None]) -> None:
        """Let something happen from now on, each time that a period has passed."""
        self._period_s, self._step = period_s, step
        self._next_s = self.now_s + period_s

    def ticker(self) -> Ticker:
        return Ticker(now=self.now, sleep=self.sleep)


class SteppedPort(SerialPort):
    """A real port, with an emulated duck at its far end whose thread is this one: both take turns.

    Bytes go through the pseudo-terminal; a wait moves the time to when the next bytes are due, or to its end.
    """

    def __init__(self, duck: EmulatedDuck, time: SteppedTime) -> None:
        super().__init__(duck.port)
        self._line, self._time = duck.line, time
        self._written, self._taken = duck.line.heard, duck.line.sent

    def write(self, data: bytes) -> None:
        super().write(data)
        self._written += len(data)
        while self._line.heard < self._written:
            self._line.step(inf)

    def _take(self, wait: float) -> bytes:
        until = self._time.now() + wait
        while self._line.sent == self._taken and self._time.now() < until:
            self._time.move_to(min(until, self._line.next_due))
            self._line.step(0.0)
        data = super()._take(MACHINE_S if self._line.sent > self._taken else 0.0)
        self._taken += len(data)
        return data


@pytest.fixture
def stepped(monkeypatch: pytest.MonkeyPatch) -> SteppedTime:
    """The driver's time, which passes only when it waits: neither a slow nor a busy machine matters."""
    time = SteppedTime()
    for module in (transport, health, body, imu):
        monkeypatch.setattr(module, "monotonic", time.now)
    for module in (body, imu, servos):
        monkeypatch.setattr(module, "sleep", time.sleep)
    monkeypatch.setattr(port, "time", SimpleNamespace(monotonic=time.now, sleep=time.sleep))
    return time


@pytest.fixture
def make_stepped_body(stepped: SteppedTime) -> Iterator[Callable[..., tuple[EmulatedDuck, RealBody]]]:
    """Makes emulated ducks whose wire takes the time of a real one, each with the body that drives it."""
    with ExitStack() as stack:

        def make(**options: Any) -> tuple[EmulatedDuck, RealBody]:
            duck = EmulatedDuck(clock=stepped.now, paced=True, threaded=False, **options)
            wire = stack.enter_context(SteppedPort(stack.enter_context(duck), stepped))
            return duck, RealBody(Bus(wire), Calibration())

        yield make
