"""How large a gap is, by hand: what counts as a unit, and what nobody can know is allowed for."""

import pytest
import torch

from microduck.replay.size import sizes
from microduck.replay.windows import LENGTH, PAST, WARM_UP, Windows

WIDTH = 34
KNEE = 3


def windows(took_s, speed=0.0):
    """One window of a duck whose knee turns, and whose loop took a time from measurement to target."""
    time = 0.02 * torch.arange(LENGTH, dtype=torch.float64)[None]
    written = torch.cat([time[:, :1].expand(1, PAST) - 0.02, time + took_s], dim=1)
    measured = torch.zeros(1, LENGTH, WIDTH, dtype=torch.float64)
    measured[..., 14 + KNEE] = speed
    counted = (torch.arange(LENGTH) >= WARM_UP)[None]
    return Windows(torch.zeros(1, PAST + LENGTH, 14), measured, counted, counted, time, written)


def size(of, angle):
    """Return the size of a gap of the knee's angle alone."""
    told = of.measured.float().clone()[:, None]
    told[..., KNEE] -= angle
    return float(sizes(of, told)[0])


EVEN = torch.full((LENGTH,), 0.005, dtype=torch.float64)
UNEVEN = EVEN + torch.linspace(-0.005, 0.005, 11, dtype=torch.float64).repeat(10)[:LENGTH]


def test_reads_that_take_equally_long_leave_no_doubt_of_their_moment():
    assert windows(EVEN).unsure_s == pytest.approx(0.0, abs=1e-9)


def test_of_uneven_reads_the_moment_is_known_to_half_of_what_nine_in_ten_differ_by():
    assert windows(UNEVEN).unsure_s == pytest.approx(0.005, abs=0.0006)


@pytest.mark.parametrize("speed", [0.0, 3.0])
def test_two_encoder_counts_are_a_unit_where_the_moment_is_known(speed):
    # One signal of 34 is a unit off: 18 (sqrt(1 + 1/9) - 1) / 34.
    assert size(windows(EVEN, speed), 0.002) == pytest.approx(0.02863, rel=1e-3)


def test_an_angle_that_turned_in_the_unknown_time_is_no_gap_but_one_at_rest_is():
    still, turning = windows(UNEVEN), windows(UNEVEN, speed=3.0)
    # In 5 ms the knee turns by 0.015 rad, so 0.015 rad are about a unit; at rest they are 7.5.
    assert size(turning, 0.015) == pytest.approx(0.0286, rel=0.2)
    assert size(still, 0.015) == pytest.approx(0.896, rel=1e-3)
