"""What there is to measure at a duck: fourteen joints, three poses, and a rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import degrees

import numpy as np

from firmware_bridge.calibrate.dialogue import Console, Task
from firmware_bridge.calibrate.draft import Draft
from firmware_bridge.calibrate.duck import RawImu
from firmware_bridge.calibrate.mounting import MountingFit, Poses, check_bias, fit_mounting, tip_angle
from firmware_bridge.calibrate.mover import JointMover
from firmware_bridge.calibrate.readings import AT_REST, BY_HAND, Stillness, joint_offset, still_imu
from firmware_bridge.calibrate.zero_poses import ZEROS
from firmware_bridge.wire.bus import Bus
from hardware import servo
from hardware.calibration import Vector
from hardware.errors import CalibrationError
from hardware.joints import JOINTS, Joint

SMALL_STEP = 2 * servo.RADIANS_PER_COUNT
"""The finest step of a servo that moves it for sure [rad]."""
LARGE_STEP = 0.05
JOINT_READS, POSE_READS, REST_READS = 40, 80, 200
"""Readings of a joint, of a pose and of the rest."""
SETTLED_TICKS = 15
"""Ticks that a held joint has stood at its goal before it is read."""
MOST_TICKS = 1000
"""Ticks after which it is read anyway: a blocked joint never arrives."""
_STEP_KEYS = {
    **{"right": SMALL_STEP, "+": SMALL_STEP, "=": SMALL_STEP, "left": -SMALL_STEP, "-": -SMALL_STEP},
    **{"up": LARGE_STEP, ">": LARGE_STEP, ".": LARGE_STEP},
    **{"down": -LARGE_STEP, "<": -LARGE_STEP, ",": -LARGE_STEP},
}
_JOINT_HELP = "h hold | l let go | right/left or +/- small steps | up/down or >/< large steps"


@dataclass(frozen=True)
class Surroundings:
    """What tasks work with.

    Attributes:
        bus: the bus.
        console: where the person is.
        pause: waits for a tick; raises StoppedError when the calibration is to end.
        draft: what they fill.
    """

    bus: Bus
    console: Console
    pause: Callable[[], None]
    draft: Draft


class JointTask:
    """The zero of one joint."""

    def __init__(self, around: Surroundings, joint: Joint, place: str) -> None:
        self._around, self._joint, self._place = around, joint, place
        self._mover = JointMover(around.bus, joint)
        self._found = 0.0

    def task(self) -> Task:
        """Return it as something to walk through."""
        steps = {key: partial(self._mover.nudge, step) for key, step in _STEP_KEYS.items()}
        return Task(
            begin=self._begin,
            measure=self._measure,
            keep=self._keep,
            skip=self._skip,
            end=self._mover.release,
            idle=self._idle,
            keys={"h": self._mover.hold, "l": self._mover.release, **steps},
            help=_JOINT_HELP,
        )

    def _begin(self) -> str:
        name = self._joint.name
        zero, way = ZEROS[name]
        return (
            f"\n{self._place}: {name} (id {self._joint.servo_id}), limp\n"
            f"  zero: {zero}\n"
            f"  a larger angle moves {way}\n"
            "  Turn it there by hand and press Enter, or press h and nudge it; ? shows the keys."
        )

    def _idle(self) -> str:
        motion = self._mover.tick()
        goal = "limp" if motion.goal is None else f"held, goal {motion.goal:+.4f}"
        return f"{self._joint.name} {motion.angle:+.4f} rad, {goal}"

    def _measure(self) -> str:
        self._settle()
        angles = []
        for _ in range(JOINT_READS):
            self._around.pause()
            angles.append(self._mover.tick().angle)
        self._found = joint_offset(angles, self._joint.name)
        old = dict(zip((j.name for j in JOINTS), self._around.draft.old.joint_offsets, strict=True))
        return f"offset {self._found:+.4f} rad, before {old[self._joint.name]:+.4f}"

    def _settle(self) -> None:
        """Wait until a held joint stands at its goal; a limp one is where it is."""
        stood, last = 0, None
        for _ in range(MOST_TICKS):
            motion = self._mover.tick()
            if motion.goal is None:
                return
            stood = stood + 1 if motion.arrived and motion.angle == last else 0
            last = motion.angle
            if stood >= SETTLED_TICKS:
                return
            self._around.pause()

    def _keep(self) -> None:
        self._around.draft.offsets[self._joint.name] = self._found

    def _skip(self) -> None:
        self._around.draft.offsets.pop(self._joint.name, None)


class ImuTasks:
    """The mounting, from three poses, and the gyroscope's bias.

    Args:
        around: what they work with.
        imu: what the IMU says.
    """

    def __init__(self, around: Surroundings, imu: RawImu) -> None:
        self._around, self._imu = around, imu
        self._poses: dict[str, np.ndarray] = {}
        self._fit: MountingFit | None = None
        self._bias: Vector = (0.0, 0.0, 0.0)

    def tasks(self) -> list[Task]:
        """Return those whose result is still open as something to walk through."""
        draft = self._around.draft
        return [
            *(self._pose_tasks() if draft.mounting is None else ()),
            *((self._rest_task(),) if draft.bias is None else ()),
        ]

    def _pose_tasks(self) -> list[Task]:
        return [
            self._pose(
                "upright",
                "Hold the trunk upright: level from beak to tail and from side to side, as a spirit level\n"
                "  shows it. Lean it against something, and press Enter.",
            ),
            self._pose(
                "forward",
                "Tip it forward, straight over the beak, by 30 to 70 degrees; lean it against something.\n"
                "  Keep it still, and press Enter.",
            ),
            self._pose(
                "left",
                "Stand it up again, then tip it over its own left side by 30 degrees or more; lying on that\n"
                "  side is best. Keep it still, and press Enter.",
            ),
        ]

    def _rest_task(self) -> Task:
        return Task(
            begin=lambda: "\nIMU, rest\n  Lay the duck down, take your hands away, and press Enter.",
            measure=self._measure_rest,
            keep=self._keep_bias,
            skip=self._skip_bias,
        )

    def _pose(self, name: str, text: str) -> Task:
        return Task(
            begin=lambda: f"\nIMU, {name}\n  {text}",
            measure=partial(self._measure_pose, name),
            keep=partial(self._keep_pose, name),
            skip=self._skip_mounting,
        )

    def _measure_pose(self, name: str) -> str:
        self._poses.pop(name, None)
        if name != "upright" and "upright" not in self._poses:
            raise CalibrationError(
                "this pose needs the upright one; b goes back to it, s leaves the old mounting"
            )
        _, gravity = self._measure(POSE_READS, BY_HAND)
        self._poses[name] = gravity
        if name == "upright":
            return "measured"
        try:
            way = {"forward": "forward", "left": "to the left"}[name]
            tip = tip_angle(self._poses["upright"], gravity, way)
            if name == "left":
                self._fit_poses()
        except CalibrationError:
            del self._poses[name]
            raise
        return f"tipped by {degrees(tip):.1f} degrees"

    def _fit_poses(self) -> None:
        if "forward" not in self._poses:
            raise CalibrationError(
                "this pose needs the tip forward; b goes back to it, s leaves the old mounting"
            )
        self._fit = fit_mounting(Poses(**self._poses))

    def _keep_pose(self, name: str) -> None:
        if name == "left":
            self._around.draft.mount(self._fit)

    def _skip_mounting(self) -> None:
        self._poses.clear()
        self._around.draft.mount(None)

    def _measure_rest(self) -> str:
        rate, _ = self._measure(REST_READS, AT_REST)
        self._bias = check_bias(rate)
        return f"bias {' '.join(f'{value:+.4f}' for value in self._bias)} rad/s about the IMU's axes"

    def _keep_bias(self) -> None:
        self._around.draft.bias = self._bias

    def _skip_bias(self) -> None:
        self._around.draft.bias = None

    def _measure(self, reads: int, still: Stillness) -> tuple[np.ndarray, np.ndarray]:
        return read_imu(self._imu, reads, still, self._around.pause)


def read_imu(
    imu: RawImu, reads: int, still: Stillness, pause: Callable[[], None]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean angular velocity (3,) [rad/s] and unit gravity (3,) about the IMU's axes.

    Raises:
        CalibrationError: it moved.
        BusError: the IMU does not answer.
    """
    rates, gravities = [], []
    for _ in range(reads):
        pause()
        rate, gravity = imu.raw()
        rates.append(rate)
        gravities.append(gravity)
    return still_imu(np.array(rates), np.array(gravities), still)


def joint_tasks(around: Surroundings, names: Sequence[str]) -> list[Task]:
    """Return the tasks of the joints with these names whose offsets are still open, in joint order."""
    joints = [joint for joint in JOINTS if joint.name in names and joint.name not in around.draft.offsets]
    return [
        JointTask(around, joint, f"joint {number} of {len(joints)}").task()
        for number, joint in enumerate(joints, start=1)
    ]
