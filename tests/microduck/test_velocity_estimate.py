"""The estimated velocity against the simulator's, for the shipped skills on the nominal virtual duck.

`VELOCITY_S=10 pytest -rP tests/microduck/test_velocity_estimate.py` prints the figures of docs/velocity.md.
"""

import os
import sys
from typing import NamedTuple

import numpy as np
import pytest

from firmware_bridge.drive.controller import Controller
from firmware_bridge.estimate.velocity import VelocityEstimator
from firmware_bridge.robot.body import BodySample
from firmware_bridge.skills.bundle import load_bundle, shipped_bundle
from hardware import rotations, servo
from hardware.contract import CONTROL_PERIOD_S
from hardware.joints import STAND
from microduck.randomization import Randomization, Twin
from microduck.randomization.body_senses import BodySenses, TwinSenses
from microduck.randomization.twin_body import twin_body
from microduck.virtual_body import STEP_S, VirtualBody

SECONDS = float(os.environ.get("VELOCITY_S", "3"))
STARTED = 10
"""Periods after which the filter has settled."""
STEPS = round(CONTROL_PERIOD_S / STEP_S)
ON = np.ones(14, bool)
FALLS = 0.7
"""Tilt of a duck that falls [rad]; what follows is no skill any more."""
MOST = 0.05
"""Largest RMS error along each axis of the trunk [m/s]."""
SKILLS = [
    ("walk", "walk", (0.1, 0.0, 0.0)),
    ("walk", "walk", (0.3, 0.0, 0.0)),
    ("walk", "walk", (0.2, 0.0, 0.5)),
    ("walk", "walk", (0.0, 0.0, -0.5)),
    ("nine-skills", "walk", (0.3, 0.0, 0.4)),
    ("nine-skills", "walk", (0.35, 0.0, 0.6)),
    ("nine-skills", "walk", (0.35, 0.0, -0.6)),
    ("nine-skills", "stand", (0.0, 0.0, 0.0)),
    ("nine-skills", "walk_backward", (-0.2, 0.0, 0.0)),
    ("nine-skills", "sidestep_left", (0.0, 0.12, 0.0)),
    ("nine-skills", "sidestep_right", (0.0, -0.12, 0.0)),
    ("nine-skills", "turn_left", (0.0, 0.0, 1.0)),
    ("nine-skills", "turn_right", (0.0, 0.0, -1.0)),
    ("nine-skills", "hop", (0.0, 0.0, 0.0)),
    ("nine-skills", "hop_forward", (0.15, 0.0, 0.0)),
]


def tell(line):
    """Put a line where `pytest -rP` shows it."""
    sys.stdout.write(f"{line}\n")


class Drive(NamedTuple):
    """Some seconds of a skill: RMS error (3,) [m/s], and how far odometry is off in place and heading."""

    seconds: float
    rms: np.ndarray
    path_m: float
    off_m: float
    off_rad: float

    def __str__(self):
        x, y, z = 1000 * self.rms
        off = f"{self.off_m:.2f} m, {self.off_rad:+.2f} rad off after {self.path_m:.2f} m"
        return f"{self.seconds:.1f} s: {x:.0f} {y:.0f} {z:.0f} mm/s; {off}"


def sampled(told):
    """What the bus brings of a reading: whole counts."""
    position = np.round(told.position / servo.RADIANS_PER_COUNT) * servo.RADIANS_PER_COUNT
    velocity = np.round(told.velocity / servo.RAD_PER_S_PER_COUNT) * servo.RAD_PER_S_PER_COUNT
    gravity = rotations.projected_gravity(told.orientation)
    return BodySample(0.0, position, velocity, np.zeros(14), told.angular_velocity.copy(), gravity, ())


def drive(bundle_name, skill, command, twin=None):
    bundle = load_bundle(shipped_bundle(bundle_name))
    body = VirtualBody() if twin is None else twin_body(twin)
    senses = BodySenses(body) if twin is None else TwinSenses(body, twin)
    gains = np.full(14, bundle.p_gain)
    controller, estimator = Controller(bundle, bundle.skill(skill)), VelocityEstimator()
    body.set_servos(ON, STAND, gains)
    true, found, track = [], [], []
    for _ in range(round(SECONDS / CONTROL_PERIOD_S)):
        sample = sampled(senses.read())
        found.append(estimator.update(sample, 1).copy())
        true.append(rotations.rotate_inverse(body.orientation, body.data.qvel[:3]))
        track.append([*body.data.qpos[:2], float(rotations.heading(body.orientation))])
        body.set_servos(ON, senses.goals(controller.targets(sample)), gains)
        for step in range(STEPS):
            body.step()
            if step < STEPS - 1:
                senses.read()  # a twin's sensors remember each physics step
        controller.advance(np.array(command), np.zeros(4), sample, 1)
        if body.tilt > FALLS:
            break
    return compared(np.array(true), np.array(found), np.array(track), estimator.odometry)


def compared(true, found, track, odometry):
    error = (found - true)[STARTED:]
    (x, y), turned = track[-1, :2] - track[0, :2], np.unwrap(track[:, 2])
    ahead, aside = np.cos(turned[0]), np.sin(turned[0])
    off = np.hypot(odometry.x - (ahead * x + aside * y), odometry.y - (ahead * y - aside * x))
    strides = np.diff(track[::25, :2], axis=0)
    path = np.linalg.norm(strides, axis=1).sum()
    rms = np.sqrt((error**2).mean(axis=0))
    return Drive(len(true) * CONTROL_PERIOD_S, rms, path, off, odometry.heading - (turned[-1] - turned[0]))


@pytest.mark.parametrize(("bundle", "skill", "command"), SKILLS)
def test_the_velocity_is_known_to_5_cm_a_second_along_each_axis(bundle, skill, command):
    done = drive(bundle, skill, command)
    tell(f"{bundle} {skill} {command}: {done}")
    assert done.seconds > SECONDS - CONTROL_PERIOD_S
    assert done.rms.max() <= MOST


@pytest.mark.parametrize(
    "command",
    [("walk", (0.3, 0.0, 0.0)), ("walk_backward", (-0.2, 0.0, 0.0)), ("sidestep_left", (0.0, 0.12, 0.0))],
)
def test_servos_that_tell_their_speed_a_period_late_change_nothing(command):
    done = drive("nine-skills", *command, Twin(joint_velocity_lateness=1.0))
    tell(f"late {command}: {done}")
    assert done.rms.max() <= MOST


def test_odometry_is_off_by_a_tenth_of_the_way():
    done = drive("nine-skills", "walk", (0.2, 0.0, 0.3))
    assert done.path_m > 0.15 * SECONDS
    assert done.off_m < 0.1 * done.path_m
    assert abs(done.off_rad) < 0.15


@pytest.mark.skipif("VELOCITY_S" not in os.environ, reason="figures for docs/velocity.md")
@pytest.mark.parametrize("seed", range(1, 5))
@pytest.mark.parametrize(("skill", "command"), [row[1:] for row in SKILLS if row[0] == "nine-skills"])
def test_a_duck_that_deviates_from_the_model_is_known_less_well(skill, command, seed):
    done = drive("nine-skills", skill, command, Twin.draw(Randomization.full(), seed))
    tell(f"duck {seed} {skill} {command}: {done}")
    assert done.rms.max() < 2.2 * MOST
