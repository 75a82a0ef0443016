"""The whole of `duck calibrate`, on a duck whose parts deviate, with a person at a terminal."""

from __future__ import annotations

from collections.abc import Callable
from math import degrees
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from firmware_bridge.emulator.duck import EmulatedDuck
from hardware import rotations, servo
from hardware.calibration import load_calibration
from hardware.joints import JOINT_NAMES

NUDGED = {"left_knee", "head_roll"}
"""Joints that are brought to their zero by their servo; the others by hand."""


def turned(first: np.ndarray, second: np.ndarray) -> float:
    return 2 * np.arccos(min(1.0, abs(float(first @ second))))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_random_offsets_mounting_and_bias_are_found(
    person: Callable[..., Any],
    duck: EmulatedDuck,
    truth: Any,
    watched: Any,
    place: Path,
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)
    calibrate = person()
    for joint in JOINT_NAMES:
        calibrate.see(rf": {joint} \(id")
        if joint in NUDGED:
            duck.turn(joint, rng.uniform(-0.06, 0.06))
            calibrate.press("h")
            calibrate.see("held")
            calibrate.nudge_to_zero(joint)
        else:
            duck.turn(joint, 0.0)
        calibrate.press("\r")
        calibrate.see("Enter keeps it")
        calibrate.press("\r")
    calibrate.see("IMU, upright")
    upright = calibrate.about((0, 0, 1), rng.uniform(-np.pi, np.pi))
    calibrate.measure_pose(upright)
    calibrate.press("\r")
    for name, axis in (("forward", (0, 1, 0)), ("left", (-1, 0, 0))):
        calibrate.see(f"IMU, {name}")
        heading = calibrate.about((0, 0, 1), rng.uniform(-np.pi, np.pi))
        tips = np.radians(rng.uniform((35, 80), (75, 120)))  # a tip need not be of any exact angle
        poses = [rotations.multiply(heading, calibrate.about(axis, tip)) for tip in tips]
        calibrate.measure_pose(*poses)
        calibrate.press("\r")
    calibrate.see("IMU, rest")
    calibrate.measure_pose(*poses, upright, shake=0.0)
    calibrate.press("\r")
    calibrate.see("Enter writes")
    assert not (place / "calibration.toml").exists()
    calibrate.press("\r")
    assert calibrate.finish() == 0, calibrate.shown

    found = load_calibration(place / "calibration.toml")
    assert np.abs(found.joint_offsets - truth.offsets).max() < 0.005
    assert degrees(turned(np.array(found.imu_mounting), truth.mounting)) < 0.5
    assert np.abs(found.gyro_bias - truth.bias).max() < 0.001
    check_motion(watched)
    assert not duck.torque.any()


def check_motion(watched: Any) -> None:
    """Hold what the servos did against what they may."""
    assert watched.driven == {23, 33}  # left_knee, head_roll
    assert watched.together == 1 and not watched.unwatched
    assert 0 < watched.most_pwm <= 0.15 * 885 + 1
    assert 0 < watched.most_gain <= 100
    for goals in watched.goals.values():
        times, counts = np.array(goals).T
        # 0.25 rad/s, and the rounding to a count at both ends.
        reach = 0.25 * (times[:, None] - times) + 2 * servo.RADIANS_PER_COUNT + 0.25 * 0.1
        later = times[:, None] >= times
        moved = np.abs(counts[:, None] - counts) * servo.RADIANS_PER_COUNT
        assert (moved[later] <= reach[later]).all()
