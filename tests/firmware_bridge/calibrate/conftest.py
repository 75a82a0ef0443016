"""A duck with parts that deviate, a person at a terminal, and `duck calibrate` as a process of its own."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from firmware_bridge.emulator.devices import EmulatedImuBoard
from firmware_bridge.emulator.duck import EmulatedDuck
from firmware_bridge.wire import registers
from hardware import rotations
from hardware.joints import JOINT_NAMES, NUM_JOINTS, SERVO_IDS

RUNNER = """
import os, sys
os.login_tty(0)  # so that Ctrl-C at this terminal is meant for this program
from firmware_bridge.calibrate import tasks
from firmware_bridge.cli import calibration
from firmware_bridge.robot import servos
from firmware_bridge.robot.imu import board
from firmware_bridge.wire import transport
transport.HOST_MARGIN_S, transport.ACK_MARGIN_S = 0.05, 0.2  # a busy machine must not look like a lost duck,
servos.WATCHDOG_S = 2.0  # nor like a dead program
board.SAMPLE_PERIOD_S = 0.001
calibration.TICK_S = 0.004
tasks.JOINT_READS, tasks.POSE_READS, tasks.REST_READS = 10, 30, 60
{patch}
from firmware_bridge.cli import main
sys.exit(main())
"""
HANG_S = 60
"""Time after which what should have happened is given up [s]."""
SHAKE = 0.001
"""How far a hand trembles while it holds a pose, about each axis [rad]."""


@dataclass
class Watched:
    """What the duck's servos were seen to do at every instruction on the bus.

    Attributes:
        driven: ids whose torque was on.
        together: most servos with torque at one time.
        most_pwm: largest goal PWM of a driven servo.
        most_gain: largest P register of a driven servo.
        goals: times [s] and goals [counts] of each driven servo, by id.
        unwatched: whether a servo was driven without its bus watchdog.
    """

    driven: set[int] = field(default_factory=set)
    together: int = 0
    most_pwm: int = 0
    most_gain: int = 0
    goals: dict[int, list[tuple[float, int]]] = field(default_factory=dict)
    unwatched: bool = False

    def look(self, duck: EmulatedDuck) -> None:
        servos = [duck.servo(device) for device in SERVO_IDS]
        driven = [servo for servo in servos if servo.torque]
        self.together = max(self.together, len(driven))
        for servo in driven:
            self.driven.add(servo.id)
            self.most_pwm = max(self.most_pwm, servo.peek(registers.GOAL_PWM))
            self.most_gain = max(self.most_gain, servo.peek(registers.POSITION_P_GAIN))
            self.unwatched |= servo.peek(registers.BUS_WATCHDOG) <= 0
            goal = (time.monotonic(), servo.peek(registers.GOAL_POSITION))
            self.goals.setdefault(servo.id, []).append(goal)


class Person:
    """Reads what the program shows at a terminal, and presses keys.

    Args:
        duck: the duck in the person's hands.
        command: the program and its arguments.
    """

    def __init__(self, duck: EmulatedDuck, command: list[str]) -> None:
        self.duck, self.shown = duck, ""
        self._read = 0
        self._rng = np.random.default_rng(1)
        self.end, program = pty.openpty()
        self.process = subprocess.Popen(command, stdin=program, stdout=program, stderr=program)
        os.close(program)

    def press(self, *keys: str) -> None:
        os.write(self.end, "".join(keys).encode())

    def see(self, pattern: str, meanwhile: Callable[[], None] = lambda: None) -> re.Match[str]:
        """Wait until the program shows something new that matches."""
        give_up = time.monotonic() + HANG_S
        while (found := re.compile(pattern).search(self.shown, self._read)) is None:
            assert time.monotonic() < give_up, self.shown[-2000:]
            meanwhile()
            assert self._take(0.002), f"the program ended before it showed {pattern}:\n{self.shown[-2000:]}"
        self._read = found.end()
        return found

    def finish(self) -> int:
        """Wait for the end of the program, and return its exit code."""
        while self._take(HANG_S):
            pass
        return self.process.wait(timeout=HANG_S)

    @staticmethod
    def about(axis: tuple[float, float, float], angle: float) -> np.ndarray:
        """Return the quaternion of a turn by an angle [rad]."""
        return np.array([np.cos(angle / 2), *(np.sin(angle / 2) * np.array(axis))])

    def nudge_to_zero(self, joint: str) -> None:
        """Press arrows until a held joint is at its zero."""
        index = JOINT_NAMES.index(joint)
        give_up = time.monotonic() + HANG_S
        while abs(left := self.duck.goals[index]) > 0.0016:
            assert time.monotonic() < give_up
            large = abs(left) > 0.04
            self.press("\x1b[" + (("B" if left > 0 else "A") if large else ("D" if left > 0 else "C")))
            time.sleep(0.25 if large else 0.06)
            self._take(0.0)

    def pose(self, quaternion: np.ndarray, shake: float = SHAKE) -> Callable[[], None]:
        """Bring the trunk into a pose, and return what keeps it there, as still as a hand is."""

        def hold() -> None:
            tremor = self._rng.normal(0.0, shake / 2, 3)
            shaken = rotations.multiply(quaternion, np.array([1.0, *tremor]))
            self.duck.set_imu(np.zeros(3), shaken / np.linalg.norm(shaken))

        hold()
        return hold

    def measure_pose(self, *poses: np.ndarray, shake: float = SHAKE) -> None:
        """Hold a pose while it is measured, and do what the program says where it is not good.

        Args:
            poses: quaternions that will do; the next one is taken where another angle is asked for.
            shake: as `SHAKE`.
        """
        for quaternion in poses:
            for quarter in range(4):
                turn = self.about((0, 0, 1), quarter * np.pi / 2)
                hold = self.pose(rotations.multiply(turn, quaternion), shake)
                self.press("\r")
                answer = self.see("by another angle|turn the duck by a quarter|Enter keeps it", hold).group()
                if answer == "Enter keeps it":
                    return
                if answer == "by another angle":
                    break
        pytest.fail("no pose was good")

    def _take(self, wait: float) -> bool:
        """Take in what is shown, and return whether the terminal is still there."""
        if not select.select([self.end], [], [], wait)[0]:
            return True
        try:
            data = os.read(self.end, 65_536)
        except OSError:  # the program has ended
            return False
        self.shown += data.decode()
        return bool(data)


@dataclass(frozen=True)
class Truth:
    """How one duck's parts deviate, as in `Calibration`."""

    offsets: np.ndarray
    mounting: np.ndarray
    bias: np.ndarray


def draw(seed: int) -> Truth:
    """Draw a duck."""
    rng = np.random.default_rng(seed)
    mounting = rng.normal(size=4)
    return Truth(
        rng.uniform(-0.45, 0.45, NUM_JOINTS), mounting / np.linalg.norm(mounting), rng.uniform(-0.05, 0.05, 3)
    )


@pytest.fixture
def seed() -> int:
    return 0


@pytest.fixture
def truth(seed: int) -> Truth:
    return draw(seed)


@pytest.fixture
def watched() -> Watched:
    return Watched()


@pytest.fixture
def duck(truth: Truth, watched: Watched, seed: int) -> Iterator[EmulatedDuck]:
    """A duck whose parts deviate, hanging limp, watched at every instruction."""
    board = EmulatedImuBoard(truth.mounting.tolist(), seed, gyro_bias=truth.bias.tolist())
    with EmulatedDuck(imu_board=board, joint_offsets=truth.offsets.tolist()) as emulated:
        emulated.set_state(np.random.default_rng(seed).uniform(-0.3, 0.3, NUM_JOINTS))

        def look(reply: bytes) -> bytes:
            watched.look(emulated)
            return reply

        emulated.filter = look
        yield emulated


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the settings, which do not exist."""
    monkeypatch.delenv("MICRODUCK_CONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path / ".config" / "microduck"


@pytest.fixture
def person(duck: EmulatedDuck, place: Path) -> Iterator[Callable[..., Person]]:
    """Starts `duck calibrate` with a person at its terminal; ends what a failed test leaves."""
    started: list[Person] = []

    def start(*arguments: str, patch: str = "") -> Person:
        program = [sys.executable, "-c", RUNNER.format(patch=patch), "calibrate", "--port", duck.port]
        started.append(Person(duck, [*program, *arguments]))
        return started[-1]

    yield start
    for each in started:
        if each.process.poll() is None:
            each.process.send_signal(signal.SIGKILL)
            each.process.wait()
        os.close(each.end)
