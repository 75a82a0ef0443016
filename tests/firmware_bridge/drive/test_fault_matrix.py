"""Each fault in each mode: the end that docs/safety.md promises, and within its bound.

Real loop, body, bus and port; an emulated duck at the far end of a pseudo-terminal; time that passes only
when someone waits.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple

import numpy as np
import pytest

from firmware_bridge.cli.ending import Ending
from firmware_bridge.commands.request import Event
from firmware_bridge.drive import motion, poses
from firmware_bridge.drive.limits import Battery
from firmware_bridge.drive.modes import ENDS, STIFF, Mode
from firmware_bridge.drive.signals import StopSignals
from firmware_bridge.drive.summary import Summary, Tick
from firmware_bridge.emulator.duck import EmulatedDuck
from firmware_bridge.emulator.faults import Fault, FaultKind, Schedule
from firmware_bridge.robot.servos import WATCHDOG_S
from hardware.joints import STAND

KNEE = 23
UPRIGHT = np.array([1.0, 0.0, 0.0, 0.0])
ON_ITS_SIDE = np.array([0.5**0.5, 0.5**0.5, 0.0, 0.0])
MATRIX = """
fault            limp       rise               stand              run                sit          fallen
drop             on         fault 25           fault 25           fault 25           fault 4      on
delay            on         fault 25           fault 25           fault 25           limp 4       on
flip             on         fault 25           fault 25           fault 25           fault 4      on
truncate         on         fault 25           fault 25           fault 25           fault 4      on
wrong-id         on         fault 25           fault 25           fault 25           fault 4      on
silent knee      on         fault 25           fault 25           fault 25           fault 4      on
duplicate        on         on                 on                 on                 on           on
echo             on         on                 on                 on                 on           on
noise            on         on                 on                 on                 on           on
no-fast-read     on         on                 on                 on                 on           on
reset knee       on         fault 20           fault 20           fault 20           limp 4       on
brown-out        on         fault 25           fault 25           fault 25           limp 4       on
overload knee    on         fault 2            fault 2            fault 2            fault 2      on
charged pack     on         on                 on                 on                 on           on
overheat 80      on         fault 2            fault 2            fault 2            fault 2      on
overheat 66      on         sit 51 fault 151   sit 51 fault 176   sit 51 fault 176   on           on
battery          on         on                 on                 on                 on           on
battery is rail  on         sit 51 fault 151   sit 51 fault 176   sit 51 fault 176   on           on
imu-frozen       on         fault 49           fault 49           fault 49           limp 28      on
imu-stuck        on         fault 42           fault 42           fault 42           limp 21      on
stuck, at rest   on         on                 on                 on                 on           on
imu-not-started  on         fault 25           fault 25           fault 25           limp 4       on
Ctrl-C           stopped 1  sit 1 stopped 101  sit 1 stopped 126  sit 1 stopped 126  stopped 120  stopped 1
Ctrl-C twice     stopped 1  sit 1 stopped 6    sit 1 stopped 6    sit 1 stopped 6    stopped 6    stopped 1
SIGTERM          stopped 1  sit 1 stopped 101  sit 1 stopped 126  sit 1 stopped 126  stopped 120  stopped 1
SIGHUP           stopped 1  sit 1 stopped 101  sit 1 stopped 126  sit 1 stopped 126  stopped 120  stopped 1
policy error     on         run 101 fault 101  fault 1            fault 1            fault 1      on
another error    fault 1    sit 1 fault 101    sit 1 fault 126    sit 1 fault 126    fault 121    fault 1
"""
"""Modes that follow, each with the latest tick, counted from the first with the fault; the last one lasts.

`on`: nothing but what follows without the fault. Bounds: 25 for 0.5 s unseen (`lost_s`), 4 for more than
three missed reads, 51 for what is measured once a second, then 100 for the way down from a rise and 125 from
a walk. Faults last; a servo's restart takes 0.3 s, a brown-out 0.1 s more.
"""
COURSE = {Mode.RISE: "run 101", Mode.SIT: "limp 125"}
"""What follows without a fault."""
PATIENCE = 55
"""Ticks after which a fault that changed nothing changes nothing any more: slow reads come once a second."""
BETWEEN_TWO = 5
"""Ticks between Ctrl-C and Ctrl-C."""
TORQUE_OFF_S = 1.0
"""Longest that switching torque off may take after the last tick [s], also where nobody answers."""
LARGEST_STEP = 0.15
"""The test policy moves by up to 0.10 in a tick, the seat's ramp by 0.04; a snap to a pose by 0.4 [rad]."""


class Strike(NamedTuple):
    """What goes wrong: faults of the hardware, a signal once or twice, the policy, or whoever watches."""

    faults: tuple[Fault, ...] = ()
    signal: signal.Signals | None = None
    twice: bool = False
    policy: bool = False
    watcher: bool = False
    battery: Battery = Battery()
    turns: float = 0.0
    """Yaw rate of the trunk [rad/s]."""


STRIKES = {
    **{kind.value: Strike((Fault(kind),)) for kind in FaultKind},
    "silent knee": Strike((Fault(FaultKind.SILENT, device=KNEE),)),
    "no-fast-read": Strike((Fault(FaultKind.NO_FAST_READ, device=31),)),
    "reset knee": Strike((Fault(FaultKind.RESET, device=KNEE),)),
    "brown-out": Strike((Fault(FaultKind.BROWN_OUT, seconds=0.1),)),
    "overload knee": Strike((Fault(FaultKind.ALERT, device=KNEE, amount=0x20),)),
    "charged pack": Strike((Fault(FaultKind.ALERT, amount=0x01),)),
    "overheat 80": Strike((Fault(FaultKind.OVERHEAT, device=KNEE, amount=80),)),
    "overheat 66": Strike((Fault(FaultKind.OVERHEAT, device=KNEE, amount=66),)),
    "battery": Strike((Fault(FaultKind.BATTERY, amount=2.0),)),
    "battery is rail": Strike((Fault(FaultKind.BATTERY, amount=2.0),), battery=Battery(rail_is_pack=True)),
    "imu-stuck": Strike((Fault(FaultKind.IMU_STUCK),), turns=0.6),
    "stuck, at rest": Strike((Fault(FaultKind.IMU_STUCK),)),
    "Ctrl-C": Strike(signal=signal.SIGINT),
    "Ctrl-C twice": Strike(signal=signal.SIGINT, twice=True),
    "SIGTERM": Strike(signal=signal.SIGTERM),
    "SIGHUP": Strike(signal=signal.SIGHUP),
    "policy error": Strike(policy=True),
    "another error": Strike(watcher=True),
}


def cells() -> list[Any]:
    """Return each fault, mode and what is to follow."""
    head, *rows = (re.split(r"\s{2,}", line) for line in MATRIX.strip().splitlines())
    modes = [Mode(name) for name in head[1:]]
    return [
        pytest.param(row[0], mode, text, id=f"{row[0]} in {mode.value}")
        for row in rows
        for mode, text in zip(modes, row[1:], strict=True)
    ]


def steps(text: str) -> list[tuple[Mode, int]]:
    """Return the modes of a cell with their bounds."""
    words = text.split()
    return [(Mode(mode), int(bound)) for mode, bound in zip(words[::2], words[1::2], strict=True)]


class UnforeseenError(Exception):
    """An error of no class that the loop knows."""


class EnoughSeenError(Exception):
    """Ends a drive that the fault did not end."""


@dataclass
class Story:
    """Leads a drive into a mode, lets something go wrong there, and watches.

    Attributes:
        struck: number of the first tick with the fault, from 0; None before.
        struck_s: when the fault began [s].
        torque: whether each joint had torque in the last tick seen, (14,) bool.
    """

    drive: Any
    duck: EmulatedDuck
    mode: Mode
    strike: Strike
    patience: int
    struck: int | None = None
    struck_s: float = 0.0
    torque: np.ndarray = field(default_factory=lambda: np.zeros(14, bool))

    def run(self, signals: StopSignals) -> Summary | Exception:
        """Drive until the end, or until enough was seen."""
        source = self.drive.source
        source.interactive = True
        source.ask(vx=0.2, age_s=inf if self.mode is Mode.STAND else 0.0)
        source.events = {} if self.mode is Mode.LIMP else {0: Event.START}
        self.drive.stop, self.drive.hurry, self.drive.on_tick = signals.reason, signals.hurry, self._on_tick
        try:
            return self.drive.run(skill="stand", seconds=None, battery=self.strike.battery)
        except (UnforeseenError, EnoughSeenError) as error:
            return error

    def followed(self) -> list[tuple[Mode, int]]:
        """Return the modes since the fault, each with its tick, 1 for the first one with the fault."""
        assert self.struck is not None
        changes = zip(self.drive.modes, self.drive.changed, strict=True)
        watched = range(self.struck, self.struck + self.patience)
        return [(mode, number - self.struck + 1) for mode, number in changes if number in watched]

    def steps(self) -> list[float]:
        """Return by how much the targets moved in each tick with torque, but for the policy's first [rad]."""
        pairs = zip(self.drive.ticks, self.drive.ticks[1:], strict=False)
        return [
            float(np.abs(after.targets - before.targets).max())
            for before, after in pairs
            if before.targets is not None and after.mode in (before.mode, Mode.SIT)
        ]

    def _on_tick(self, tick: Tick) -> None:
        self.torque = self.duck.torque
        number = len(self.drive.ticks)
        if self.struck is not None:
            if self.strike.twice and number == self.struck + BETWEEN_TWO:
                signal.raise_signal(signal.SIGINT)
            if number >= self.struck + self.patience:
                raise EnoughSeenError
        elif tick.mode_s >= 0.1:
            self._lead(tick.mode, number)

    def _lead(self, mode: Mode, number: int) -> None:
        source = self.drive.source
        if mode is self.mode:
            self.struck, self.struck_s = number, self.drive.time.now()
            self._strike()
        elif mode is Mode.RUN and self.mode is Mode.SIT:
            source.events[source.ticks] = Event.SIT
        elif mode is Mode.RUN and self.mode is Mode.FALLEN:
            self.duck.set_imu(np.zeros(3), ON_ITS_SIDE)

    def _strike(self) -> None:
        self.duck.set_imu(np.array([0.0, 0.0, self.strike.turns]), UPRIGHT)
        self.duck.inject(Schedule(self.strike.faults, seed=1))
        if self.strike.signal:
            signal.raise_signal(self.strike.signal)
        if self.strike.watcher:
            raise UnforeseenError


@pytest.fixture
def tell(
    drive: Any,
    stepped: Any,
    make_stepped_body: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[[Strike, Mode, int], Story]:
    """Makes the story of something that goes wrong in a mode, over at least so many ticks."""

    def make(strike: Strike, mode: Mode, ticks: int) -> Story:
        if mode is not Mode.RISE:  # else it takes too long to get there
            monkeypatch.setattr(motion, "RISE_S", 0.1)
            monkeypatch.setattr(poses, "RISE_S", 0.1)
        duck, drive.body = make_stepped_body()
        duck.set_state(STAND)
        drive.time = stepped
        story = Story(drive, duck, mode, strike, max(PATIENCE, ticks))
        act = drive.bundle.act

        def failing(*arguments: Any) -> Any:
            if strike.policy and story.struck is not None:
                raise UnforeseenError
            return act(*arguments)

        monkeypatch.setattr(drive.bundle, "act", failing)
        return story

    return make


@pytest.mark.parametrize(("name", "mode", "cell"), cells())
def test_each_fault_in_each_mode_ends_as_documented_within_its_bound(
    tell: Callable[[Strike, Mode, int], Story], stepped: Any, name: str, mode: Mode, cell: str
) -> None:
    strike = STRIKES[name]
    expected = steps(COURSE.get(mode, "") if cell == "on" else cell)
    story = tell(strike, mode, max([bound + 5 for _, bound in expected], default=0))
    with StopSignals() as signals:
        end = story.run(signals)
        code = Ending(signals, story.drive.source).code(end.mode) if isinstance(end, Summary) else None
    followed = story.followed()
    assert [entered for entered, _ in followed] == [entered for entered, _ in expected]
    assert all(tick <= bound for (_, tick), (_, bound) in zip(followed, expected, strict=True)), followed
    last = expected[-1][0] if expected else mode
    if last in ENDS:
        in_time = 0.02 * expected[-1][1] + TORQUE_OFF_S
        assert stepped.now() - story.struck_s <= in_time
        error = strike.policy or strike.watcher
        assert type(end) is UnforeseenError if error else code == exit_code(last, strike)
    else:
        assert story.torque.all() if last in STIFF else not story.torque.any()
    if isinstance(end, Summary) and story.duck.torque.any():
        assert "torque may be on, switch the servos' power off" in end.reason
    stepped.sleep(WATCHDOG_S)
    assert not story.duck.torque.any()
    assert max(story.steps(), default=0.0) < LARGEST_STEP


def exit_code(end: Mode, strike: Strike) -> int:
    """Return the exit code that docs/run.md tells of."""
    return 4 if end is Mode.FAULT else 128 + (strike.signal or 0)


def test_the_matrix_has_every_fault_that_the_emulator_knows() -> None:
    struck = {
        fault.kind for name, _, _ in (cell.values for cell in cells()) for fault in STRIKES[name].faults
    }
    assert struck == set(FaultKind)
