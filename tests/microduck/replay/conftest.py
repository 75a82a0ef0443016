"""Recordings of a simulated duck: the shipped walker through the whole loop, in time that never waits."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from firmware_bridge.commands.request import NO_HEAD, Event, Request
from firmware_bridge.drive.clock import Ticker
from firmware_bridge.drive.loop import Hooks, LoopOptions, run
from firmware_bridge.drive.modes import Mode
from firmware_bridge.recording import Log
from firmware_bridge.recording.fields import FIELDS
from firmware_bridge.robot.body import BodySample
from firmware_bridge.skills.bundle import load_bundle, shipped_bundle
from hardware import rotations, servo
from hardware.contract import CONTROL_PERIOD_S
from hardware.joints import NUM_JOINTS
from microduck.randomization.body_senses import TwinSenses
from microduck.randomization.twin import Twin
from microduck.randomization.twin_body import twin_body
from microduck.virtual_body import STEP_S, BodyOptions, VirtualBody

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
        position = servo.RADIANS_PER_COUNT * np.round(told.position / servo.RADIANS_PER_COUNT)
        velocity = servo.RAD_PER_S_PER_COUNT * np.round(told.velocity / servo.RAD_PER_S_PER_COUNT)
        gravity = rotations.projected_gravity(told.orientation)
        return BodySample(0.0, position, velocity, told.current, told.angular_velocity.copy(), gravity, ())

    def write(self, targets):
        self.goals = servo.RADIANS_PER_COUNT * np.round(targets / servo.RADIANS_PER_COUNT)

    def limp(self):
        self.torque = False


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


def drive(body, senses, seconds):
    """Let a duck rise in a hand and walk; return its log."""
    duck, ticks, clock = Duck(body, senses), [], Time()
    body.hold()

    def on_mode(mode, reason):
        if mode is Mode.RUN:
            body.let_go()

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
        "stages": np.zeros((len(ticks), 4)),
    }
    for name in ("position", "velocity", "angular_velocity", "gravity"):
        arrays[name] = [getattr(tick.sample, name) for tick in ticks]
    return as_log(arrays)


@pytest.fixture(scope="session")
def recorded():
    """Records a duck with position servos, or a twin's."""

    def record(seconds=6.0, twin=None, **servos):
        if twin is not None and "actuator" not in servos:
            body = twin_body(twin)
        else:
            servos.pop("actuator", None)
            body = VirtualBody(BodyOptions(**servos))
        return drive(body, TwinSenses(body, twin or Twin()), seconds)

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
