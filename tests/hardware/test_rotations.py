from collections.abc import Callable
from math import cos, pi, radians, sin, sqrt
from typing import Any

import numpy as np
import pytest
import torch

from hardware import rotations

MakeArray = Callable[[Any], Any]
Close = Callable[..., bool]
HALF = sqrt(0.5)
IDENTITY, ABOUT_X, ABOUT_Y, ABOUT_Z = (
    [1.0, 0.0, 0.0, 0.0],
    [HALF, HALF, 0.0, 0.0],
    [HALF, 0.0, HALF, 0.0],
    [HALF, 0.0, 0.0, HALF],
)
"""No turn, and +90 degrees about each axis."""
X, Y, Z = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("quaternion", "vector", "turned"),
    [(IDENTITY, X, X), (ABOUT_Z, X, Y), (ABOUT_X, Y, Z), (ABOUT_Y, Z, X), (ABOUT_Y, X, [0.0, 0.0, -1.0])],
)
def test_quarter_turn_follows_the_right_hand(
    array: MakeArray, close: Close, quaternion: list[float], vector: list[float], turned: list[float]
) -> None:
    assert close(rotations.rotate(array(quaternion), array(vector)), turned)
    assert close(rotations.rotate_inverse(array(quaternion), array(turned)), vector)


def test_third_of_a_turn_about_the_diagonal(array: MakeArray, close: Close) -> None:
    # 120 degrees about (1, 1, 1) carry x to y, y to z and z to x.
    quaternion = array([0.5, 0.5, 0.5, 0.5])
    assert close(rotations.rotate(quaternion, array([1.0, 2.0, 3.0])), [3.0, 1.0, 2.0])


@pytest.mark.parametrize(
    ("quaternion", "gravity"),
    [
        (IDENTITY, [0.0, 0.0, -1.0]),
        (ABOUT_Y, [1.0, 0.0, 0.0]),  # nose down
        (ABOUT_X, [0.0, -1.0, 0.0]),  # on its right side
        ([0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0]),  # on its back
        (ABOUT_Z, [0.0, 0.0, -1.0]),
        ([0.5, 0.5, 0.5, 0.5], [0.0, -1.0, 0.0]),  # x to y, y to z, z to x
        ([cos(radians(15)), 0.0, sin(radians(15)), 0.0], [0.5, 0.0, -sqrt(0.75)]),  # pitched by 30 degrees
    ],
)
def test_gravity_in_the_body_frame(
    array: MakeArray, close: Close, quaternion: list[float], gravity: list[float]
) -> None:
    assert close(rotations.projected_gravity(array(quaternion)), gravity)
    assert close(rotations.rotate_inverse(array(quaternion), array([0.0, 0.0, -1.0])), gravity)


def test_upside_down_imu_is_put_right_by_its_mounting(array: MakeArray, close: Close) -> None:
    mounting = array([0.0, 1.0, 0.0, 0.0])  # half a turn about x
    assert close(rotations.rotate(mounting, array([0.0, 0.0, 9.81])), [0.0, 0.0, -9.81])
    assert close(rotations.rotate(mounting, array([0.1, 0.2, 0.3])), [0.1, -0.2, -0.3])


@pytest.mark.parametrize("degrees", [-170, -90, 0, 30, 179])
def test_heading_is_the_yaw_whatever_the_pitch(array: MakeArray, close: Close, degrees: float) -> None:
    half = radians(degrees) / 2
    yaw, pitch = array([cos(half), 0.0, 0.0, sin(half)]), array([cos(0.2), 0.0, sin(0.2), 0.0])
    assert close(rotations.heading(yaw), radians(degrees))
    assert close(rotations.heading(rotations.multiply(yaw, pitch)), radians(degrees))


def test_product_turns_by_the_right_factor_first(array: MakeArray, close: Close) -> None:
    product = rotations.multiply(array(ABOUT_Z), array(ABOUT_X))
    assert close(product, [0.5, 0.5, 0.5, 0.5])
    assert close(rotations.rotate(product, array(Y)), Z)  # about x to z, which the turn about z leaves


def test_product_follows_hamiltons_rules(array: MakeArray, close: Close) -> None:
    i, j, k = ([0.0, *axis] for axis in (X, Y, Z))
    for left, right, result in ((i, j, k), (j, k, i), (k, i, j)):
        assert close(rotations.multiply(array(left), array(right)), result)
        assert close(rotations.multiply(array(right), array(left)), [-value for value in result])


def test_conjugate_undoes_a_turn(array: MakeArray, close: Close) -> None:
    quaternion = array([0.1, -0.7, 0.5, 0.5])
    quaternion = quaternion / (quaternion**2).sum() ** 0.5
    assert close(rotations.multiply(quaternion, rotations.conjugate(quaternion)), IDENTITY)


def test_rows_are_turned_one_by_one_and_alike_in_both_libraries() -> None:
    rng = np.random.default_rng(2)
    quaternions, vectors = rng.normal(size=(4, 3, 4)), rng.normal(size=(4, 3, 3))
    quaternions /= np.linalg.norm(quaternions, axis=-1, keepdims=True)
    turned = rotations.rotate(quaternions, vectors)
    assert np.allclose(np.linalg.norm(turned, axis=-1), np.linalg.norm(vectors, axis=-1))
    assert np.allclose(turned[2, 1], rotations.rotate(quaternions[2, 1], vectors[2, 1]), atol=1e-15)
    as_torch = rotations.rotate(torch.from_numpy(quaternions), torch.from_numpy(vectors))
    assert np.allclose(as_torch.numpy(), turned, atol=1e-15)
    assert np.abs(rotations.heading(quaternions)).max() <= pi
    assert rotations.projected_gravity(quaternions.astype(np.float32)).dtype == np.float32
