from __future__ import annotations

import pytest

from firmware_bridge.estimate.landing import GIVE_S, RESTING, Sole, held

PERIOD_S = 0.02
WEIGHT = 9.81


def falling(last: Sole) -> Sole:
    """Free fall over a period."""
    drop = last.speed - WEIGHT * PERIOD_S / 2
    return Sole(last.height + drop * PERIOD_S, last.speed - WEIGHT * PERIOD_S)


def kept(sole: Sole, periods: int) -> list[Sole]:
    track = []
    for _ in range(periods):
        sole = held(sole, falling(sole), PERIOD_S)
        track.append(sole)
    return track


def test_the_floor_of_a_sole_in_the_air_is_below_it() -> None:
    high = Sole(0.02, 0.1)
    assert held(high, falling(high), PERIOD_S).height < falling(high).height


def test_a_standing_sole_rests_as_deep_as_its_weight_presses_the_spring() -> None:
    rest = kept(Sole(), 50)[-1]
    assert rest == pytest.approx(RESTING, abs=1e-6)
    # A spring that swings as 1 / GIVE_S^2 [1/s2] carries 1 g where it gives by g GIVE_S^2.
    assert rest.height == pytest.approx(-WEIGHT * GIVE_S**2, rel=1e-3)
    assert rest.speed == pytest.approx(0.0, abs=1e-4)


def test_a_sole_that_comes_down_stops_and_does_not_bounce() -> None:
    # 2 mm above the floor at 0.4 m/s: it touches after about 5 ms of the period.
    track = kept(Sole(0.002, -0.4), 6)
    assert all(-0.01 < sole.height < 0.0 for sole in track)
    assert abs(track[-1].speed) < 0.01


def test_the_floor_never_pulls() -> None:
    # What rises faster than the floor springs back leaves it: no push downwards holds the floor's surface.
    last = Sole(0.0, 0.0)
    risen = held(last, Sole(0.01, 1.0), PERIOD_S)
    assert risen == pytest.approx(last)


def test_a_mean_of_two_soles_is_between_them() -> None:
    assert Sole(1.0, 4.0).mixed(Sole(3.0, 0.0), 0.75) == pytest.approx(Sole(1.5, 3.0))
