from __future__ import annotations

from typing import Any

import pytest


def test_ticks_start_at_multiples_of_the_period_whatever_the_work(fake_time: Any) -> None:
    ticker = fake_time.ticker()
    starts = []
    for work in (0.0, 0.003, 0.019, 0.0001, 0.007):
        assert ticker.wait() == 0
        starts.append(fake_time.now_s - 100.0)
        fake_time.now_s += work
    assert starts == pytest.approx([0.0, 0.02, 0.04, 0.06, 0.08], abs=1e-6)
    assert ticker.rate_hz == pytest.approx(50.0)


def test_an_hour_of_late_wake_ups_does_not_drift(fake_time: Any) -> None:
    ticker = fake_time.ticker()
    oversleep = fake_time.sleep
    ticker._sleep = lambda seconds: oversleep(seconds + 0.0015)
    for _ in range(180_000):
        ticker.wait()
        fake_time.now_s += 0.004
    assert ticker.missed == 0
    assert fake_time.now_s - 100.0 == pytest.approx(179_999 * 0.02 + 0.0015 + 0.004, abs=1e-6)
    assert ticker.worst_lateness_s == pytest.approx(0.0015, abs=1e-6)


def test_a_slightly_late_tick_starts_at_once_and_the_next_is_on_time(fake_time: Any) -> None:
    ticker = fake_time.ticker()
    ticker.wait()
    fake_time.now_s += 0.028  # 8 ms past the next deadline
    assert ticker.wait() == 0
    assert fake_time.now_s == pytest.approx(100.028)
    assert ticker.wait() == 0
    assert fake_time.now_s == pytest.approx(100.040)
    assert ticker.worst_lateness_s == pytest.approx(0.008)


def test_a_stall_skips_ticks_and_counts_them_instead_of_a_burst(fake_time: Any) -> None:
    ticker = fake_time.ticker()
    ticker.wait()
    fake_time.now_s += 0.112  # past 0.02 to 0.10
    assert ticker.wait() == 5
    starts = [fake_time.now_s]
    for _ in range(3):
        assert ticker.wait() == 0
        starts.append(fake_time.now_s)
    assert starts == pytest.approx([100.12, 100.14, 100.16, 100.18])
    assert (ticker.ticks, ticker.missed) == (5, 5)


def test_two_ticks_are_never_closer_than_half_a_period(fake_time: Any) -> None:
    ticker = fake_time.ticker()
    last = None
    for i in range(2000):
        ticker.wait()
        if last is not None:
            assert fake_time.now_s - last > 0.00999
        last = fake_time.now_s
        fake_time.now_s += (i * 0.00137) % 0.05
    assert ticker.missed > 100


def test_a_sleep_that_ends_early_is_resumed(fake_time: Any) -> None:
    ticker = fake_time.ticker()
    whole = fake_time.sleep
    ticker._sleep = lambda seconds: whole(min(seconds, 0.004))
    ticker.wait()
    ticker.wait()
    assert fake_time.now_s == pytest.approx(100.02)


def test_work_is_the_time_from_a_ticks_start_to_the_next_wait(fake_time: Any) -> None:
    ticker = fake_time.ticker()
    for work in (0.002, 0.006, 0.0):
        ticker.wait()
        fake_time.now_s += work
    assert ticker.mean_work_s * 3 == pytest.approx(0.008)
    assert ticker.worst_work_s == pytest.approx(0.006)


def test_a_ticker_that_never_ticked_has_no_rate(fake_time: Any) -> None:
    ticker = fake_time.ticker()
    assert (ticker.rate_hz, ticker.mean_work_s) == (0.0, 0.0)
