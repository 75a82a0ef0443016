from __future__ import annotations

from math import cos, pi, sin

import numpy as np
import pytest

from firmware_bridge.estimate.odometry import Odometry

UPRIGHT = np.array([0.0, 0.0, -1.0])
AHEAD, ASIDE = np.array([0.2, 0.0, 0.0]), np.array([0.0, 0.2, 0.0])


def go(velocity: np.ndarray, turn: tuple[float, float, float], gravity: np.ndarray = UPRIGHT) -> Odometry:
    """Move for five seconds."""
    found = Odometry()
    for _ in range(250):
        found = found.moved(velocity, np.array(turn), gravity, 0.02)
    return found


@pytest.mark.parametrize(("velocity", "place"), [(AHEAD, (1.0, 0.0)), (ASIDE, (0.0, 1.0))])
def test_without_a_turn_it_goes_straight(velocity: np.ndarray, place: tuple[float, float]) -> None:
    assert go(velocity, (0.0, 0.0, 0.0)) == pytest.approx((*place, 0.0))


def test_a_quarter_turn_to_the_left_ends_ahead_and_to_the_left() -> None:
    # A quarter of a circle 1 m long: its radius is 2/pi.
    found = go(AHEAD, (0.0, 0.0, pi / 10))
    assert found == pytest.approx((2 / pi, 2 / pi, pi / 2), abs=1e-4)


def test_whole_turns_are_counted() -> None:
    assert go(AHEAD, (0.0, 0.0, 2.0)).heading == pytest.approx(10.0)


def test_a_duck_that_leans_forward_goes_as_far_over_the_floor() -> None:
    lean = 0.4
    velocity = np.array([0.2 * cos(lean), 0.0, 0.2 * sin(lean)])  # level: its nose points down
    found = go(velocity, (0.0, 0.0, 0.0), np.array([sin(lean), 0.0, -cos(lean)]))
    assert found == pytest.approx((1.0, 0.0, 0.0))


def test_a_turn_about_the_vertical_is_felt_by_two_gyros_of_a_duck_that_leans_sideways() -> None:
    lean = 0.5
    up = np.array([0.0, sin(lean), cos(lean)])
    found = go(np.zeros(3), tuple(0.3 * up), -up)
    assert found.heading == pytest.approx(1.5)


def test_a_climb_is_no_way_over_the_floor() -> None:
    assert go(np.array([0.0, 0.0, 0.5]), (0.0, 0.0, 0.0)) == (0.0, 0.0, 0.0)


def test_a_duck_on_its_bill_keeps_the_heading_it_had() -> None:
    before = Odometry(1.0, 2.0, 0.5)
    assert before.moved(AHEAD, np.ones(3), np.array([1.0, 0.0, 0.0]), 0.02) == before
