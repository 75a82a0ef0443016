"""Drives of a small bundle: a body without a wire, time without waiting, a real bus in a time of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from math import inf
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import firmware_bridge.drive.loop
from firmware_bridge.commands.request import Event, Request
from firmware_bridge.drive.clock import Ticker
from firmware_bridge.drive.loop import run
from firmware_bridge.drive.modes import Mode
from firmware_bridge.drive.options import Hooks, LoopOptions
from firmware_bridge.drive.summary import Summary, Tick
from firmware_bridge.emulator.duck import EmulatedDuck
from firmware_bridge.robot import body as body_module
from firmware_bridge.robot import health, servos
from firmware_bridge.robot.body import BodySample, Health, RealBody
from firmware_bridge.robot.imu import Imu, bmi088, bno055, board, chip, i2c, polled, uart
from firmware_bridge.skills.bundle import Bundle
from firmware_bridge.wire import port, transport
from firmware_bridge.wire.bus import Bus
from firmware_bridge.wire.port import SerialPort
from hardware.calibration import Calibration
from hardware.errors import BusTimeoutError
from hardware.joints import STAND

MACHINE_S = 60.0
"""Longest that bytes may take through a pseudo-terminal on a busy machine [s]."""


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
        self.now_s = max(self.now_s, time_s)  # a step may have waited for longer

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
    for module in (transport, health, body_module, board, polled, chip, uart, bmi088):
        monkeypatch.setattr(module, "monotonic", time.now)
    for module in (body_module, board, polled, chip, uart, i2c, bno055, bmi088, servos):
        monkeypatch.setattr(module, "sleep", time.sleep)
    monkeypatch.setattr(port, "time", SimpleNamespace(monotonic=time.now, sleep=time.sleep))
    return time


@pytest.fixture
def make_stepped_body(stepped: SteppedTime) -> Iterator[Callable[..., tuple[EmulatedDuck, RealBody]]]:
    """Makes emulated ducks whose wire takes the time of a real one, each with the body that drives it."""
    with ExitStack() as stack:

        def make(imu: Imu | None = None, **options: Any) -> tuple[EmulatedDuck, RealBody]:
            duck = EmulatedDuck(clock=stepped.now, paced=True, threaded=False, **options)
            wire = stack.enter_context(SteppedPort(stack.enter_context(duck), stepped))
            return duck, RealBody(Bus(wire), Calibration(), imu)

        yield make


class FakeTime:
    """Time that passes only when someone sleeps or works."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def now(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += max(seconds, 1e-9)  # a real sleep takes some time, however short it was to be

    def ticker(self) -> Ticker:
        return Ticker(now=self.now, sleep=self.sleep)


class FakeBody:
    """A body whose joints are where they were told to be, and which notes what it is told.

    `failing(read)` says whether the read of that number times out.
    """

    def __init__(self) -> None:
        self.position = STAND + 0.1
        self.current = np.zeros(14)
        self.angular_velocity = np.zeros(3)
        self.gravity = np.array([0.0, 0.0, -1.0])
        self.alerts: tuple[str, ...] = ()
        self.health: Health | None = None
        self.torque = False
        self.gain = 0
        self.reads = 0
        self.deadlines: list[float] = []
        self.writes: list[np.ndarray] = []
        self.calls: list[str] = []
        self.failing: Callable[[int], bool] = lambda read: False
        self.on_read: Callable[[int], None] = lambda read: None

    def enable(self, p_gain: int) -> None:
        self.calls.append("enable")
        self.torque, self.gain = True, p_gain

    def read(self, deadline: float) -> BodySample:
        self.reads += 1
        self.deadlines.append(deadline)
        self.on_read(self.reads)
        if self.failing(self.reads):
            raise BusTimeoutError("ids 20 did not answer")
        return BodySample(
            time_s=0.0,
            position=self.position,
            velocity=np.zeros(14),
            current=self.current,
            angular_velocity=self.angular_velocity,
            gravity=self.gravity,
            alerts=self.alerts,
            health=self.health,
        )

    def write(self, targets: np.ndarray) -> None:
        assert self.torque, "a target for a limp duck"
        self.writes.append(targets.copy())
        self.position = targets.copy()

    def limp(self) -> None:
        self.calls.append("limp")
        self.torque = False


def healthy(**changes: Any) -> Health:
    """Return what servos report that are well, but for the changes."""
    usual = {
        "time_s": 0.0,
        "voltage": np.full(14, 7.6),
        "temperature": np.full(14, 35.0),
        "torque": np.ones(14, bool),
        "faults": {},
        "watchdog_tripped": False,
        "rebooted": (),
    }
    return Health(**{**usual, **changes})


@pytest.fixture
def body() -> FakeBody:
    """A body without a wire."""
    return FakeBody()


class FakeSource:
    """Gives `request` at every tick; events are handed out once, each at the tick with its number."""

    def __init__(self, interactive: bool = False) -> None:
        self.refused = 0
        self.interactive = interactive
        self.request = Request(None, np.zeros(3), np.zeros(4), 0.0, None)
        self.events: dict[int, Event] = {}
        self.ticks = 0

    def latest(self) -> Request:
        self.ticks += 1
        return self.request._replace(event=self.events.pop(self.ticks - 1, None))

    def ask(self, vx: float = 0.0, yaw: float = 0.0, **changes: Any) -> None:
        """Ask for a command from now on."""
        self.request = self.request._replace(command=np.array([vx, 0.0, yaw]), **changes)

    def close(self) -> None:
        """Nothing to let go of."""


@dataclass
class Drive:
    """Drives the test bundle on a fake body in fake time, and keeps what was seen."""

    body: FakeBody
    bundle: Bundle
    time: FakeTime
    source: FakeSource = field(default_factory=FakeSource)
    options: LoopOptions = field(default_factory=lambda: LoopOptions(skill="stand", seconds=1.0))
    stop: Callable[[], str | None] = lambda: None
    hurry: Callable[[], bool] = lambda: False
    on_tick: Callable[[Tick], None] = lambda tick: None
    ticks: list[Tick] = field(default_factory=list)
    modes: list[Mode] = field(default_factory=list)
    changed: list[int] = field(default_factory=list)
    """Number of the tick, from 0, of each change of mode."""
    reasons: list[str] = field(default_factory=list)
    news: list[str] = field(default_factory=list)

    def run(self, **options: Any) -> Summary:
        hooks = Hooks(
            stop=self.stop,
            hurry=self.hurry,
            on_mode=self._on_mode,
            on_news=self.news.append,
            on_tick=self._on_tick,
            ticker=self.time.ticker(),
        )
        return run(self.body, self.bundle, self.source, replace(self.options, **options), hooks)

    def at(self, read: int, change: Callable[[], None]) -> None:
        """Let something happen just before the read of that number, the first being 1."""
        before = self.body.on_read

        def on_read(number: int) -> None:
            before(number)
            if number == read:
                change()

        self.body.on_read = on_read

    def _on_mode(self, mode: Mode, reason: str) -> None:
        self.modes.append(mode)
        self.changed.append(len(self.ticks))
        self.reasons.append(reason)

    def _on_tick(self, tick: Tick) -> None:
        self.ticks.append(tick)
        self.on_tick(tick)


@pytest.fixture
def drive(body: FakeBody, bundle: Bundle, fake_time: FakeTime, monkeypatch: pytest.MonkeyPatch) -> Drive:
    """A drive of the test bundle for one second, by a source that is not interactive."""
    # Collecting the garbage of a whole test run takes longer than a drive.
    monkeypatch.setattr(firmware_bridge.drive.loop, "quiet_collector", nullcontext)
    return Drive(body, bundle, fake_time)


@pytest.fixture(scope="session")
def make_health() -> Callable[..., Health]:
    """The maker of what servos report."""
    return healthy


@pytest.fixture
def fake_time() -> FakeTime:
    """A time that only sleeping moves."""
    return FakeTime()
