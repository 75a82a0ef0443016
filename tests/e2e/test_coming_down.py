"""How a simulated duck comes down: the shipped policies, the loop, physics, and time that never waits."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from firmware_bridge.commands.request import NO_HEAD, Event, Request
from firmware_bridge.drive.clock import Ticker
from firmware_bridge.drive.loop import Hooks, LoopOptions, run
from firmware_bridge.drive.modes import Mode
from firmware_bridge.robot.body import BodySample
from firmware_bridge.skills.bundle import SHIPPED, load_bundle, shipped_bundle
from hardware import rotations
from hardware.joints import NUM_JOINTS
from microduck.virtual_body import BodyOptions, VirtualBody

STEPS_PER_TICK = 4


class Time:
    """Time that passes only when someone sleeps."""

    now_s = 0.0

    def now(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += max(seconds, 1e-9)


@dataclass
class Duck:
    """A simulated duck as the loop's body; every read lets a tick pass. A hand holds it until it walks."""

    sim: VirtualBody
    torque: bool = False
    goals: np.ndarray = field(default_factory=lambda: np.zeros(NUM_JOINTS))
    gain: int = 0
    limp_at: tuple[float, float] = (0.0, 0.0)
    """Height [m] and tilt [rad] of the trunk when torque went off last."""

    def enable(self, p_gain: int) -> None:
        self.torque, self.gain, self.goals = True, p_gain, self.sim.position.copy()

    def read(self, deadline: float) -> BodySample:
        self.step(1)
        sim = self.sim
        gravity = rotations.projected_gravity(sim.orientation)
        position, velocity, rate = sim.position.copy(), sim.velocity.copy(), sim.angular_velocity.copy()
        return BodySample(0.0, position, velocity, sim.current.copy(), rate, gravity, ())

    def write(self, targets: np.ndarray) -> None:
        self.goals = targets

    def limp(self) -> None:
        self.torque = False
        self.limp_at = (self.sim.height, self.sim.tilt)

    def step(self, ticks: int) -> None:
        on = np.full(NUM_JOINTS, self.torque)
        self.sim.set_servos(on, self.goals, np.full(NUM_JOINTS, float(self.gain)))
        for _ in range(STEPS_PER_TICK * ticks):
            self.sim.step()


@dataclass
class Orders:
    """A source that starts the duck at once, asks for one command, and gives one event at a tick."""

    command: tuple[float, float, float]
    event: Event
    at: int
    refused: int = 0
    interactive: bool = True
    ticks: int = 0

    def latest(self) -> Request:
        self.ticks += 1
        event = Event.START if self.ticks == 1 else self.event if self.ticks == self.at else None
        return Request(None, np.array(self.command), NO_HEAD, 0.0, event)

    def close(self) -> None:
        pass


@pytest.fixture(scope="module", params=SHIPPED)
def bundle(request):
    return load_bundle(shipped_bundle(request.param))


def drive(bundle, command, event=Event.QUIT, at=300, push=None, **body):
    """Walk until an event comes at a tick (the policy drives from tick 102 on), until the duck is limp."""
    duck = Duck(VirtualBody(BodyOptions(**body)))
    duck.sim.hold()
    modes, ticks, clock = [], [], Time()

    def on_mode(mode, reason):
        modes.append(mode)
        if mode is Mode.RUN:
            duck.sim.let_go()

    def on_tick(tick):
        if push is not None and len(ticks) == push:
            duck.sim.data.qvel[:2] += (1.2, 0.0)  # somebody runs into it from behind
        ticks.append(tick)

    def stop():
        return "enough" if len(ticks) > at + 160 else None

    hooks = Hooks(
        stop=stop, on_mode=on_mode, on_tick=on_tick, ticker=Ticker(now=clock.now, sleep=clock.sleep)
    )
    run(duck, bundle, Orders(command, event, at), LoopOptions(), hooks)
    return duck, modes, ticks


@pytest.mark.parametrize("actuator", ["position", "xl330"])
@pytest.mark.parametrize("command", [(0.3, 0.0, 0.6), (0.0, 0.0, 0.0)])
def test_a_walking_duck_sits_down_upright_and_sinks_little_when_it_goes_limp(bundle, command, actuator):
    duck, modes, ticks = drive(bundle, command, actuator=actuator)
    assert modes == [Mode.RISE, Mode.RUN, Mode.SIT, Mode.STOPPED]  # nor was its gait taken for a fall
    height, tilt = duck.limp_at
    assert height < 0.075
    assert tilt < np.radians(10)
    assert len(ticks) - 300 <= 150
    duck.step(100)
    assert height - duck.sim.height < 0.02


def test_torque_cut_where_it_stands_drops_it_much_further(bundle):
    duck, modes, _ = drive(bundle, (0.0, 0.0, 0.0), event=Event.LIMP)
    assert Mode.LIMP in modes
    duck.step(100)
    assert 0.1 - duck.sim.height > 0.05


def test_a_duck_that_is_pushed_over_is_limp_before_it_lies(bundle):
    _, modes, ticks = drive(bundle, (0.0, 0.0, 0.0), at=400, push=200)
    assert Mode.FALLEN in modes
    fallen = next(tick for tick in ticks if tick.mode is Mode.FALLEN)
    assert "tipping over" in fallen.reason
    assert fallen.sample.gravity[2] < -0.5
