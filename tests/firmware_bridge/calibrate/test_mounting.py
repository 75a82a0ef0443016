from __future__ import annotations

from math import cos, radians, sin

import numpy as np
import pytest

from firmware_bridge.calibrate.mounting import Poses, best_rotation, check_bias, fit_mounting, turned
from hardware import rotations
from hardware.calibration import IMU_BOARD_MOUNTING
from hardware.errors import CalibrationError

DOWN = np.array([0.0, 0.0, -1.0])


def tipped(forward: float, left: float = 0.0) -> np.ndarray:
    """Return gravity in the trunk frame: down moves towards the beak, or towards the left side."""
    return np.array([sin(radians(forward)), sin(radians(left)), -cos(radians(forward + left))])


def test_an_imu_in_the_trunks_axes_needs_no_turn() -> None:
    fit = fit_mounting(Poses(DOWN, tipped(90), tipped(0, 90)))
    assert np.allclose(fit.quaternion, [1, 0, 0, 0], atol=1e-12)
    assert np.allclose(fit.residuals, 0, atol=1e-7) and np.allclose(fit.tips, radians(90))


def test_the_boards_usual_place_is_found_from_what_it_says() -> None:
    # Its z is the trunk's x, its x the trunk's down and its y the trunk's left.
    upright, forward, left = [1, 0, 0], [0, 0, 1], [0, 1, 0]
    fit = fit_mounting(Poses(*map(np.array, (upright, forward, left))))
    assert turned(fit.quaternion, IMU_BOARD_MOUNTING) < 1e-6


def test_an_upside_down_imu_that_feels_one_g_along_its_own_z_is_turned_about_x() -> None:
    # Turned by half about x: y points right and z down. Down is +z, the beak +x, and the left side -y.
    fit = fit_mounting(Poses(np.array([0, 0, 1.0]), np.array([1.0, 0, 0]), np.array([0, -1.0, 0])))
    mounting = np.array(fit.quaternion)
    assert np.allclose(rotations.rotate(mounting, np.array([0.0, 0.0, 1.0])), [0, 0, -1])
    assert np.allclose(rotations.rotate(mounting, np.array([0.0, 1.0, 0.0])), [0, -1, 0])


@pytest.mark.parametrize(("forward", "left"), [(30, 30), (45, 100), (120, 26)])
def test_how_far_it_is_tipped_does_not_matter(forward: float, left: float) -> None:
    fit = fit_mounting(Poses(DOWN, tipped(forward), tipped(0, left)))
    assert np.allclose(fit.quaternion, [1, 0, 0, 0], atol=1e-9)
    assert np.allclose(fit.tips, np.radians([forward, left]))


def test_tips_that_are_four_degrees_off_square_turn_the_mounting_by_less_and_show_in_the_residuals() -> None:
    askew = rotations.rotate(np.array([cos(radians(2)), 0, 0, sin(radians(2))]), tipped(0, 90))
    fit = fit_mounting(Poses(DOWN, tipped(90), askew))
    assert turned(fit.quaternion, (1, 0, 0, 0)) == pytest.approx(radians(2), abs=1e-6)
    assert np.allclose(fit.residuals, np.radians([0, 2, 2]), atol=1e-6)


@pytest.mark.parametrize(
    ("forward", "left", "message"),
    [
        (tipped(20), tipped(0, 90), "the tip forward is 20 degrees; make it 25 to 135"),
        (tipped(90), tipped(0, 10), "the tip to the left is 10 degrees"),
        (tipped(140), tipped(0, 90), "the tip forward is 140 degrees"),
        (DOWN, DOWN, "the tip forward is 0 degrees"),
        (tipped(90), tipped(0, -90), "went the other way, or they were exchanged"),
        (tipped(-90), tipped(0, 90), "went the other way"),
        (tipped(0, 90), tipped(90), "they were exchanged"),
        (tipped(90), tipped(90), "90 degrees off a right angle, and 10 are allowed"),
    ],
)
def test_poses_that_are_not_those_asked_for_are_refused(
    forward: np.ndarray, left: np.ndarray, message: str
) -> None:
    with pytest.raises(CalibrationError, match=message):
        fit_mounting(Poses(DOWN, forward, left))


def test_the_best_rotation_of_a_mirror_image_is_a_rotation() -> None:
    axes = np.eye(3)
    quaternion = best_rotation(axes, -axes)
    turned_axes = rotations.rotate(quaternion, axes)
    assert np.linalg.norm(quaternion) == pytest.approx(1.0)
    assert np.linalg.det(turned_axes) == pytest.approx(1.0)


def test_a_quarter_turn_between_mountings_is_half_pi_whatever_the_sign() -> None:
    assert turned((1, 0, 0, 0), IMU_BOARD_MOUNTING) == pytest.approx(np.pi / 2)
    w, x, y, z = IMU_BOARD_MOUNTING
    assert turned(IMU_BOARD_MOUNTING, (-w, -x, -y, -z)) == pytest.approx(0.0, abs=1e-7)


def test_a_rate_that_is_too_large_for_a_bias_is_refused() -> None:
    assert check_bias(np.array([0.2, -0.1, 0.0])) == (0.2, -0.1, 0.0)
    with pytest.raises(CalibrationError, match=r"says 0\.21 rad/s at rest, more than the 0\.2"):
        check_bias(np.array([0.0, -0.21, 0.0]))
