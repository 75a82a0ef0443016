"""Which ticks of a recording are replayed."""

import numpy as np
import pytest

from firmware_bridge.drive.modes import Mode
from hardware.contract import CONTROL_PERIOD_S
from hardware.errors import ArchiveError, ConfigError, ContractError
from microduck.replay.driven import find_driven
from microduck.replay.study import ReplayOptions, study
from microduck.replay.windows import COUNTED, LENGTH, WARM_UP, cut

PLACES = [mode.value for mode in Mode]


def nobody(done, text):
    pass


def test_every_driven_tick_is_in_one_stretch(made_log):
    driven = find_driven(made_log(200))
    assert [len(stretch.seen) for stretch in driven.stretches] == [200]
    assert driven.left_out == {}
    assert driven.seconds == pytest.approx(4.0)


def test_limp_ticks_split_and_are_told(made_log):
    log = made_log(300)
    applied = log.arrays["applied"].copy()
    applied[140:150] = np.nan
    driven = find_driven(made_log(300, applied=applied))
    assert [len(stretch.seen) for stretch in driven.stretches] == [140, 150]
    assert driven.stretches[1].measured_s[0] == pytest.approx(3.0)
    assert driven.left_out == {"limp, or nothing was written": 10}


def test_what_a_hand_may_hold_is_left_out(made_log):
    mode = np.full(300, PLACES.index("run"))
    mode[:100] = PLACES.index("rise")
    driven = find_driven(made_log(300, mode=mode))
    assert [len(stretch.seen) for stretch in driven.stretches] == [200]
    assert sum(driven.left_out.values()) == 100


def test_missed_ticks_are_bridged_with_the_target_that_the_servos_held(made_log):
    periods = np.ones(200)
    periods[120] = 3
    time = CONTROL_PERIOD_S * np.cumsum(periods)
    applied = np.tile(np.arange(200.0)[:, None] / 100, (1, 14))
    (stretch,) = find_driven(made_log(200, periods=periods, time=time, applied=applied)).stretches
    assert len(stretch.seen) == 202
    assert stretch.targets[118:124, 0] == pytest.approx([1.18, 1.19, 1.19, 1.19, 1.2, 1.21])
    assert stretch.seen[118:124].tolist() == [True, True, False, False, True, True]


def test_a_longer_silence_splits(made_log):
    periods = np.ones(300)
    periods[150] = 6
    driven = find_driven(made_log(300, periods=periods, time=CONTROL_PERIOD_S * np.cumsum(periods)))
    assert [len(stretch.seen) for stretch in driven.stretches] == [150, 150]


def test_a_tick_off_the_beat_splits(made_log):
    time = CONTROL_PERIOD_S * np.arange(300)
    time[150:] += 0.008
    driven = find_driven(made_log(300, time=time))
    assert [len(stretch.seen) for stretch in driven.stretches] == [150, 150]


def test_a_tick_without_a_fresh_sample_is_not_compared(made_log):
    fresh = np.ones(200)
    fresh[60:63] = 0
    (stretch,) = find_driven(made_log(200, fresh=fresh)).stretches
    assert np.flatnonzero(~stretch.seen).tolist() == [60, 61, 62]
    windows = cut([stretch], CONTROL_PERIOD_S)
    assert int(windows.counted.sum()) == 200 - WARM_UP - 3


@pytest.mark.parametrize("count", [100, 101, 174, 175, 176, 250, 333])
def test_windows_count_every_period_once_after_the_first_warm_up(made_log, count):
    windows = cut(find_driven(made_log(count)).stretches, CONTROL_PERIOD_S)
    counted = np.sort(windows.time.numpy()[windows.counted.numpy()])
    assert np.allclose(counted, CONTROL_PERIOD_S * np.arange(WARM_UP, count))
    assert windows.targets.shape[1] == LENGTH + 3
    assert len(windows) == -(-(count - WARM_UP) // COUNTED)


def test_a_log_of_another_period_is_of_another_contract(made_log):
    with pytest.raises(ContractError, match="10 ms apart, this duck's 20 ms"):
        find_driven(made_log(400, time=0.01 * np.arange(400)))


def test_a_log_without_driven_ticks_says_what_it_has(made_log):
    with pytest.raises(ArchiveError, match=r"200 limp.*record a drive"):
        study(made_log(200, applied=np.full((200, 14), np.nan)), ReplayOptions(), nobody)


def test_a_log_that_is_too_short_says_how_long_it_must_be(made_log):
    with pytest.raises(ArchiveError, match=r"60 in a stretch of less than 2 s"):
        find_driven(made_log(60))
    with pytest.raises(ArchiveError, match="has 1 ticks"):
        find_driven(made_log(1))


def test_a_p_gain_that_is_none_is_refused(made_log):
    log = made_log(200)
    log.meta["p_gain"] = "much"
    with pytest.raises(ArchiveError, match="p_gain is 'much'"):
        study(log, ReplayOptions(), nobody)


def test_a_twin_has_no_position_servos():
    from microduck.randomization.twin import Twin

    with pytest.raises(ConfigError, match="leave the actuator or the twin out"):
        ReplayOptions("position", Twin())
    with pytest.raises(ConfigError, match="choose one of"):
        ReplayOptions("hydraulic")


@pytest.mark.parametrize("stages", [-1.0, -1e30, np.nan, np.inf])
def test_stages_that_are_no_times_are_taken_for_none_or_a_period(made_log, stages):
    (stretch,) = find_driven(made_log(200, stages=np.full((200, 4), stages))).stretches
    late = stretch.written_s - CONTROL_PERIOD_S * np.arange(200)
    assert late == pytest.approx(np.full(200, CONTROL_PERIOD_S if stages > 0 else 0.0))
    assert (np.diff(stretch.measured_s) > 0).all()


def test_a_tick_happens_when_the_log_says(made_log):
    time, stages = CONTROL_PERIOD_S * np.arange(200), np.tile([0.002, 0.0005, 0.001, 0.0], (200, 1))
    time[100] += 0.003
    stages[100] = [0.004, 0.0005, 0.002, 0.0]  # it tried again; nobody knows when it was heard
    (stretch,) = find_driven(made_log(200, time=time, stages=stages)).stretches
    assert stretch.measured_s[[99, 100, 101]] == pytest.approx([1.9805, 2.0035, 2.0205])
    assert stretch.written_s[[99, 100, 101]] == pytest.approx([1.9835, 2.0095, 2.0235])


@pytest.mark.parametrize(
    ("name", "value"),
    [("position", 1e38), ("velocity", -1e38), ("gravity", 0.0), ("gravity", 2.0), ("applied", 50.0)],
)
def test_numbers_that_no_duck_measures_are_left_out_and_told(made_log, name, value):
    values = made_log(300).arrays[name].copy()
    values[150] = value
    driven = find_driven(made_log(300, **{name: values}))
    assert [len(stretch.seen) for stretch in driven.stretches] == [150, 149]
    assert driven.left_out == {"with numbers that no duck measures or is told": 1}


@pytest.mark.parametrize("count", [0, 1, 49])
def test_hardly_a_fresh_measurement_is_too_little_to_compare(made_log, count):
    fresh = np.zeros(200)
    fresh[100 : 100 + count] = 1
    with pytest.raises(ArchiveError, match=f"^{count} ticks .* fresh measurement, and 50 are needed"):
        study(made_log(200, fresh=fresh), ReplayOptions(), nobody)


def test_the_command_refuses_what_is_no_recording_before_it_makes_a_folder(tmp_path):
    from microduck.cli.replay import replay

    (tmp_path / "walk.tdz").write_bytes(b"no recording")
    with pytest.raises(ArchiveError, match="no recording"):
        replay(tmp_path / "walk.tdz")
    assert [path.name for path in tmp_path.iterdir()] == ["walk.tdz"]
