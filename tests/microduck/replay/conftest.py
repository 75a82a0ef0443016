"""Recordings of a simulated duck: the shipped walker through the whole loop, in time that never waits.

There are two: one whose physics is stepped by its reads, four times a period, and one that lives by a clock
that is as uneven as that of a machine with other work.
"""

from dataclasses import dataclass, field

import numpy as np
import pytest

from firmware_bridge.commands.request import NO_HEAD, Event, Request
from firmware_bridge.drive.clock import Ticker
from firmware_bridge.drive.loop import Hooks, LoopOptions, run
from firmware_bridge.drive.modes import Mode
from firmware_bridge.drive.summary import STAGES
from firmware_bridge.recording import Log
from firmware_bridge.recording.fields import FIELDS
from firmware_bridge.robot.body import BodySample
from firmware_bridge.skills.bundle import load_bundle, shipped_bundle
from firmware_bridge.wire.protocol import Instruction, Packet
from hardware import rotations, servo
from hardware.contract import CONTROL_PERIOD_S
from hardware.joints import NUM_JOINTS
from microduck.live_duck import LiveDuck
from microduck.randomization.body_senses import TwinSenses
from microduck.randomization.twin import Twin
from microduck.randomization.twin_body import twin_body
from microduck.virtual_body import STEP_S, BodyOptions, VirtualBody
from microduck.virtual_duck import VirtualDuck

RISE_TICKS = 102
COMMANDS = ((0.2, 0.0, 0.0), (0.3, 0.0, 0.3), (0.1, 0.0, -0.6))
TICKS_PER_COMMAND = 100


class Time:
    """Time that passes only when someone sleeps."""

    now_s = 0.0

    def now(self):
        return self.now_s

    def sleep(self, seconds):
        self.now_s += max(seconds, 1e-9)


@dataclass
class Duck:
    """A simulated duck as the loop's body; what it says is rounded as the servos' registers are."""

    sim: VirtualBody
    senses: TwinSenses
    torque: bool = False
    gain: int = 0
    goals: np.ndarray = field(default_factory=lambda: np.zeros(NUM_JOINTS))

    def enable(self, p_gain):
        self.torque, self.gain, self.goals = True, p_gain, self.sim.position.copy()

    def read(self, deadline):
        on, gains = np.full(NUM_JOINTS, self.torque), np.full(NUM_JOINTS, float(self.gain))
        for _ in range(round(CONTROL_PERIOD_S / STEP_S)):
            self.sim.set_servos(on, self.senses.goals(self.goals), gains)
            self.sim.step()
            told = self.senses.read()
        return sample(told.position, told.velocity, told.angular_velocity, told.orientation)

    def write(self, targets):
        self.goals = servo.RADIANS_PER_COUNT * np.round(targets / servo.RADIANS_PER_COUNT)

    def limp(self):
        self.torque = False


def sample(position, velocity, rate, orientation):
    """What a bus makes of a measurement."""
    position = servo.RADIANS_PER_COUNT * np.round(position / servo.RADIANS_PER_COUNT)
    velocity = servo.RAD_PER_S_PER_COUNT * np.round(velocity / servo.RAD_PER_S_PER_COUNT)
    gravity = rotations.projected_gravity(orientation)
    return BodySample(0.0, position, velocity, np.zeros(NUM_JOINTS), rate.copy(), gravity, ())


class UnevenTime(Time):
    """Time in which sleepers wake late, by 0.8 ms on average; others live meanwhile."""

    def __init__(self):
        self.chance, self.live = np.random.default_rng(1), lambda: None

    def sleep(self, seconds):
        self.pass_by(max(seconds, 1e-9) + abs(self.chance.normal(0.0, 0.001)))

    def pass_by(self, seconds):
        end = self.now_s + seconds
        while self.now_s < end:
            self.now_s = min(self.now_s + 0.0013, end)
            self.live()


@dataclass
class Wire:
    """A virtual duck as the loop's body: bytes take time, and physics goes on by the clock."""

    sim: VirtualBody
    senses: TwinSenses
    time: UnevenTime = field(default_factory=UnevenTime)
    torque: np.ndarray = field(default_factory=lambda: np.zeros(NUM_JOINTS, bool))
    goals: np.ndarray = field(default_factory=lambda: np.zeros(NUM_JOINTS))
    p_gains: np.ndarray = field(default_factory=lambda: np.zeros(NUM_JOINTS))

    def __post_init__(self):
        duck = VirtualDuck(self, self.sim, lambda text: None, senses=self.senses)
        self.alive = LiveDuck(duck, self, self.time.now)
        self.time.live = self.alive.live

    def set_state(self, position, velocity=None, current=None, voltage=None, temperature=None):
        self.state = [np.copy(position), np.copy(velocity)]

    def set_imu(self, angular_velocity, quaternion):
        self.imu = [np.copy(angular_velocity), np.copy(quaternion)]

    def enable(self, p_gain):
        self.p_gains, self.goals = np.full(NUM_JOINTS, p_gain), self.state[0].copy()
        self.torque = np.ones(NUM_JOINTS, bool)

    def read(self, deadline):
        self.time.pass_by(0.0003)
        self.alive.hear(Packet(254, Instruction.FAST_SYNC_READ, b""))
        found = sample(*self.state, *self.imu)
        self.time.pass_by(0.0009 + abs(self.time.chance.normal(0.0, 0.0003)))
        return found

    def write(self, targets):
        self.time.pass_by(0.0005)  # the policy's time, and the way of the bytes
        self.alive.hear(Packet(254, Instruction.SYNC_WRITE, b""))
        self.goals = servo.RADIANS_PER_COUNT * np.round(targets / servo.RADIANS_PER_COUNT)

    def limp(self):
        self.torque = np.zeros(NUM_JOINTS, bool)


@dataclass
class Orders:
    """A source that starts the duck at once and asks for one command after the other."""

    refused: int = 0
    interactive: bool = True
    ticks: int = 0

    def latest(self):
        self.ticks += 1
        command = COMMANDS[max(self.ticks - RISE_TICKS, 0) // TICKS_PER_COMMAND % len(COMMANDS)]
        event = Event.START if self.ticks == 1 else None
        return Request(None, np.array(command), NO_HEAD, 0.0, event)

    def close(self):
        pass


def as_log(arrays):
    """Return a log with some arrays; all others hold what stands for "not known"."""
    count = len(arrays["time"])
    whole = {
        one.name: np.asarray(arrays.get(one.name, one.unknown((count, *one.shape(1))))).astype(one.wide)
        for one in FIELDS
    }
    return Log(
        whole, {"schema": 1, "modes": [mode.value for mode in Mode], "skills": ["walk"], "p_gain": 200}
    )


def drive(duck, clock, seconds):
    """Let a duck rise in a hand and walk; return its log."""
    ticks = []
    duck.sim.hold()

    def on_mode(mode, reason):
        if mode is Mode.RUN:
            duck.sim.let_go()

    def stop():
        return "enough" if len(ticks) > RISE_TICKS + seconds / CONTROL_PERIOD_S else None

    hooks = Hooks(
        stop=stop,
        hurry=lambda: True,
        on_mode=on_mode,
        on_tick=ticks.append,
        ticker=Ticker(now=clock.now, sleep=clock.sleep),
    )
    run(duck, load_bundle(shipped_bundle("walk")), Orders(), LoopOptions(), hooks)
    places = [mode.value for mode in Mode]
    nothing = np.full(NUM_JOINTS, np.nan)
    arrays = {
        "time": [tick.time_s for tick in ticks],
        "periods": np.ones(len(ticks)),
        "mode": [places.index(tick.mode.value) for tick in ticks],
        "fresh": [tick.fresh for tick in ticks],
        "applied": [nothing if tick.targets is None else tick.targets for tick in ticks],
        "stages": [[tick.stages[name] for name in STAGES] for tick in ticks],
    }
    for name in ("position", "velocity", "angular_velocity", "gravity"):
        arrays[name] = [getattr(tick.sample, name) for tick in ticks]
    return as_log(arrays)


@pytest.fixture(scope="session")
def recorded():
    """Records a duck with position servos, or a twin's; stepped by its reads, or by an uneven clock."""

    def record(seconds=6.0, twin=None, uneven=False, **servos):
        if twin is not None and "actuator" not in servos:
            body = twin_body(twin)
        else:
            servos.pop("actuator", None)
            body = VirtualBody(BodyOptions(**servos))
        kind = Wire if uneven else Duck
        duck = kind(body, TwinSenses(body, twin or Twin()))
        return drive(duck, duck.time if uneven else Time(), seconds)

    return record


@pytest.fixture(scope="session")
def made_log():
    """Makes a log of `count` ticks in RUN at STAND, with what differs."""

    def make(count=200, **changes):
        from hardware.joints import STAND

        places = [mode.value for mode in Mode]
        arrays = {
            "time": CONTROL_PERIOD_S * np.arange(count),
            "periods": np.ones(count),
            "mode": np.full(count, places.index("run")),
            "fresh": np.ones(count),
            "applied": np.tile(STAND, (count, 1)),
            "position": np.tile(STAND, (count, 1)),
            "velocity": np.zeros((count, NUM_JOINTS)),
            "angular_velocity": np.zeros((count, 3)),
            "gravity": np.tile([0.0, 0.0, -1.0], (count, 1)),
            "stages": np.zeros((count, 4)),
        }
        return as_log({**arrays, **changes})

    return make
