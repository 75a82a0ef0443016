from __future__ import annotations

import numpy as np
import pytest

from firmware_bridge.calibrate.readings import AT_REST, BY_HAND, joint_offset, still_imu
from hardware.errors import CalibrationError

DOWN = np.array([0.0, 0.0, -1.0])


def test_the_offset_is_the_mean_of_a_still_joint() -> None:
    assert joint_offset([0.100, 0.102, 0.098, 0.104], "left_knee") == pytest.approx(0.101)


def test_a_joint_that_moves_while_it_is_read_is_refused() -> None:
    with pytest.raises(CalibrationError, match=r"left_knee moved by 0\.015 rad while it was read"):
        joint_offset([0.0] * 3 + [0.02], "left_knee")


def test_an_offset_that_no_file_may_hold_is_refused_with_its_causes() -> None:
    assert joint_offset([-0.5] * 4, "left_knee") == -0.5
    with pytest.raises(CalibrationError, match=r"offset of -0\.785 rad, and \+-0\.5 rad is the most.*homing"):
        joint_offset([-0.785] * 4, "left_knee")


def test_means_of_a_still_imu_are_taken() -> None:
    rates = np.array([[0.01, 0.0, 0.02], [0.03, 0.0, 0.0]])
    rate, gravity = still_imu(rates, np.array([DOWN, DOWN]), AT_REST)
    assert np.allclose(rate, [0.02, 0.0, 0.01]) and np.allclose(gravity, DOWN)


def test_a_hand_may_tremble_where_a_rest_may_not() -> None:
    rates = np.array([[0.05, 0.0, 0.0], [-0.05, 0.0, 0.0]])
    still_imu(rates, np.array([DOWN, DOWN]), BY_HAND)
    with pytest.raises(CalibrationError, match=r"moved while it was measured: .* up to 0\.05 rad/s"):
        still_imu(rates, np.array([DOWN, DOWN]), AT_REST)


def test_a_duck_that_slowly_sinks_is_refused_though_its_gyroscope_is_quiet() -> None:
    sunk = np.array([np.sin(0.07), 0.0, -np.cos(0.07)])  # four degrees, two from the mean
    with pytest.raises(CalibrationError, match=r"turned by 2\.0 degrees"):
        still_imu(np.zeros((2, 3)), np.array([DOWN, sunk]), BY_HAND)
