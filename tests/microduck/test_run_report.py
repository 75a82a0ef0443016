"""A run's figures, for tracks whose figures are known."""

import mujoco
import numpy as np
import pytest

from firmware_bridge.drive.poses import SEAT, sit_pose
from hardware.errors import ConfigError
from hardware.joints import STAND
from microduck.run_report import RunRecorder, RunReport, save_reports, told_to_sit
from microduck.virtual_body import VirtualBody


@pytest.fixture
def track():
    """Drives a body along a path without physics and returns the report."""

    def drive(poses, sat=False):
        body = VirtualBody()
        recorder = RunRecorder(body)
        for x, y, yaw, height, tilt in poses:
            body.data.qpos[:3] = x, y, height
            yawed, tilted = (
                [np.cos(yaw / 2), 0, 0, np.sin(yaw / 2)],
                [np.cos(tilt / 2), 0, np.sin(tilt / 2), 0],
            )
            mujoco.mju_mulQuat(body.data.qpos[3:7], np.array(yawed), np.array(tilted))
            recorder.watch()
            recorder.sample()
        return recorder.report(sat)

    return drive


def test_swaying_straight_walk_is_measured_without_its_sway(track):
    """10 s at 0.2 m/s with 3 cm of sideways sway at 2 Hz: 2 m of path, not the wavy line's 4.3 m."""
    times = np.arange(501) * 0.02
    report = track((0.2 * t, 0.03 * np.sin(4 * np.pi * t), 0.0, 0.115, 0.0) for t in times)
    assert report.seconds == pytest.approx(10.0)
    assert report.path_m == pytest.approx(2.0, abs=0.07)
    assert report.displacement_m == pytest.approx(2.0, abs=1e-6)
    assert report.mean_speed_mps == pytest.approx(0.2)
    assert report.heading_drift_deg == pytest.approx(0.0)
    assert not report.fell


def test_circle_has_path_but_no_displacement(track):
    """Radius 0.3 m, once around in 20 s to the left: 1.885 m at 0.0942 m/s along the heading."""
    angles = np.arange(1001) * (2 * np.pi / 1000)
    report = track((0.3 * np.sin(a), 0.3 * (1 - np.cos(a)), a, 0.115, 0.0) for a in angles)
    assert report.path_m == pytest.approx(1.885, abs=0.01)
    assert report.displacement_m == pytest.approx(0.0, abs=1e-9)
    assert report.mean_speed_mps == pytest.approx(0.0942, abs=1e-3)
    assert report.heading_drift_deg == pytest.approx(351, abs=1)


def test_walking_backwards_is_negative_speed(track):
    report = track((-0.1 * t, 0.0, 0.0, 0.115, 0.0) for t in np.arange(101) * 0.02)
    assert report.mean_speed_mps == pytest.approx(-0.1)


def test_drift_to_the_right_is_negative(track):
    report = track((0.0, 0.0, -np.radians(30) * min(t, 1), 0.115, 0.0) for t in np.arange(151) * 0.02)
    assert report.heading_drift_deg == pytest.approx(-30, abs=0.01)


@pytest.mark.parametrize(
    ("height", "tilt_deg", "fell"), [(0.12, 59, False), (0.12, 61, True), (0.067, 0, False), (0.065, 0, True)]
)
def test_fall_is_a_tilt_beyond_60_degrees_or_a_sunken_trunk(track, height, tilt_deg, fell):
    poses = [(0, 0, 0, 0.12, 0), (0, 0, 0.5, height, np.radians(tilt_deg)), (0, 0, 0, 0.12, 0)]
    assert track(poses).fell is fell


@pytest.mark.parametrize("count", [0, 1])
def test_a_run_of_no_length_is_all_zeros(track, count):
    assert track([(0, 0, 0, 0.12, 0)] * count) == RunReport(0.0, False, 0.0, 0.0, 0.0, 0.0)


def test_a_duck_that_sat_down_is_judged_by_its_walk_alone(track):
    """2 s at 0.2 m/s, then 1.86 s in which it halts and goes down."""
    walk = [(0.2 * t, 0.0, 0.0, 0.115, 0.0) for t in np.arange(101) * 0.02]
    report = track([*walk, *[(0.4, 0.0, 0.0, 0.08, 0.0)] * 93], sat=True)
    assert report.seconds == pytest.approx(2.0)
    assert report.mean_speed_mps == pytest.approx(0.2)


def test_a_duck_that_sits_down_at_once_has_a_run_of_no_length(track):
    assert track([(0, 0, 0, 0.1, 0)] * 20, sat=True).seconds == 0.0


def test_sitting_is_told_by_the_goals_before_the_trunk_is_low():
    assert told_to_sit(SEAT + 0.1)
    assert told_to_sit(sit_pose(STAND, 1.4)) and not told_to_sit(sit_pose(STAND, 0.6))
    assert not told_to_sit(STAND)


def test_report_in_a_place_that_cannot_hold_it_is_refused(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ConfigError, match="choose another place"):
        save_reports(tmp_path / "file" / "report.json", [])
