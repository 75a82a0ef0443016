from __future__ import annotations

from typing import Any

import pytest

from firmware_bridge.drive.clock import Ticker


def test_ticks_start_at_multiples_of_the_period_whatever_the_work(fake_time: Any) -> None:
    ticker = fake_time.ticker()
    starts = []
    for work in (0.0, 0.003, 0.019, 0.0001, 0.007):
        assert ticker.wait() == 0
        starts.append(fake_time.now_s - 100.0)
        fake_time.now_s += work
    assert starts == pytest.approx([0.0, 0.02, 0.04, 0.06, 0.08], abs=1e-6)
    assert ticker.rate_hz == pytest.approx(50.0)


def test_ten_minutes_of_late_wake_ups_do_not_drift(fake_time: Any) -> None:
    ticker = fake_time.ticker()
    oversleep = fake_time.sleep
    ticker._sleep = lambda seconds: oversleep(seconds + 0.0015)
    for _ in range(30_000):
        ticker.wait()
        fake_time.now_s += 0.004
    assert ticker.missed == 0
    assert fake_time.now_s - 100.0 == pytest.approx(29_999 * 0.02 + 0.0015 + 0.004, abs=1e-6)
    assert ticker.worst_lateness_s == pytest.approx(0.0015, abs=1e-6)


def starts_after_a_first_tick_of(work_s: float, ticks: int, fake_time: Any) -> tuple[Ticker, list[float]]:
    ticker = fake_time.ticker()
    ticker.wait()
    fake_time.now_s += work_s
    starts = []
    for _ in range(ticks):
        ticker.wait()
        starts.append(fake_time.now_s - 100.0)
    return ticker, starts


def test_a_late_tick_starts_at_once_and_the_next_ones_make_up_for_it_a_millisecond_each(
    fake_time: Any,
) -> None:
    ticker, starts = starts_after_a_first_tick_of(0.024, 6, fake_time)  # 4 ms past the next deadline
    assert starts == pytest.approx([0.024, 0.043, 0.062, 0.081, 0.100, 0.120], abs=1e-6)
    assert ticker.missed == 0
    assert ticker.worst_lateness_s == pytest.approx(0.004)


def test_a_stall_skips_ticks_and_counts_them_instead_of_a_burst(fake_time: Any) -> None:
    ticker, starts = starts_after_a_first_tick_of(0.112, 4, fake_time)  # past 0.02 to 0.10
    assert starts == pytest.approx([0.12, 0.14, 0.16, 0.18])
    assert (ticker.ticks, ticker.missed) == (5, 5)


def test_whatever_the_work_no_tick_is_shorter_than_19_ms_and_the_phase_is_kept(fake_time: Any) -> None:
    ticker = fake_time.ticker()
    ticker.wait()
    periods = 0
    for i in range(5000):
        before = fake_time.now_s
        fake_time.now_s += (i * 0.00137) % 0.05
        periods += 1 + ticker.wait()
        assert fake_time.now_s - before >= 0.019 - 1e-9
        assert -1e-9 <= fake_time.now_s - 100.0 - periods * 0.02 <= 0.010 + 1e-9
    assert ticker.missed > 100
    while fake_time.now_s - 100.0 - periods * 0.02 > 1e-6:
        periods += 1 + ticker.wait()
    assert ticker.wait() == 0


def test_a_wake_up_that_is_always_late_does_not_make_ticks_later_and_later(fake_time: Any) -> None:
    ticker = fake_time.ticker()
    whole = fake_time.sleep
    ticker._sleep = lambda seconds: whole(seconds + 0.0009)
    ticker.wait()
    fake_time.now_s += 0.028
    late = []
    for tick in range(1, 200):
        ticker.wait()
        late.append(fake_time.now_s - 100.0 - tick * 0.02)
    assert ticker.missed == 0
    assert late[0] == pytest.approx(0.008)
    assert late[-1] == pytest.approx(0.0009)


def test_a_sleep_that_ends_early_is_resumed(fake_time: Any) -> None:
    ticker = fake_time.ticker()
    whole = fake_time.sleep
    ticker._sleep = lambda seconds: whole(min(seconds, 0.004))
    ticker.wait()
    ticker.wait()
    assert fake_time.now_s == pytest.approx(100.02)


def test_work_and_idle_time_add_up_to_the_period(fake_time: Any) -> None:
    ticker = fake_time.ticker()
    idle = []
    for work in (0.002, 0.006, 0.0):
        ticker.wait()
        idle.append(ticker.idle_s)
        fake_time.now_s += work
    assert ticker.mean_work_s * 3 == pytest.approx(0.008)
    assert ticker.worst_work_s == pytest.approx(0.006)
    assert idle == pytest.approx([0.0, 0.018, 0.014])


def test_the_end_of_a_tick_is_known_at_its_start(fake_time: Any) -> None:
    ticker = fake_time.ticker()
    ticker.wait()
    assert ticker.next_s == pytest.approx(100.02)
    fake_time.now_s += 0.025
    ticker.wait()  # starts 5 ms late, so the next may start 19 ms after it
    assert ticker.next_s == pytest.approx(100.044)


def test_the_rate_of_the_last_second_forgets_an_old_stall(fake_time: Any) -> None:
    ticker = fake_time.ticker()
    ticker.wait()
    fake_time.now_s += 1.0
    for _ in range(60):
        ticker.wait()
    assert ticker.recent_hz == pytest.approx(50.0)
    assert ticker.rate_hz < 30.0


def test_a_ticker_that_never_ticked_has_no_rate(fake_time: Any) -> None:
    ticker = fake_time.ticker()
    assert (ticker.rate_hz, ticker.recent_hz, ticker.mean_work_s) == (0.0, 0.0, 0.0)
