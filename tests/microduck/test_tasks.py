import zipfile

import pytest
import torch

from hardware.errors import ArchiveError, TaskError
from microduck import tasks
from microduck.learning.recipes import walking_task
from microduck.rewards import REWARD_TERMS


def weight(row, term):
    return float(row.reward_weights[..., list(REWARD_TERMS).index(term)])


def test_tracking_preset_walks_at_one_speed_on_the_documented_clock():
    row = tasks.tracking_task(0.03)
    assert row.name == "tracking+0.03"
    assert row.command_low.tolist() == row.command_high.tolist() == pytest.approx([0.03, 0.0])
    assert float(row.gait_frequency_hz) == pytest.approx(1.8913)
    assert float(row.gait_frequency_per_mps) == 0
    assert float(row.params["pose_std"]) == 0.5
    assert row.yaw_rate_interval.tolist() == [0, 0]


def test_tracking_at_up_to_a_centimetre_a_second_is_standing():
    assert tasks.tracking_task(0.01).name == "standing"
    assert tasks.tracking_task(0.011).name == "tracking+0.01"


def test_standing_preset_drops_the_gait_terms_and_narrows_the_pose():
    row = tasks.standing_task()
    assert [weight(row, term) for term in tasks.GAIT_TERMS] == [0, 0, 0, 0]
    assert float(row.params["pose_std"]) == pytest.approx(0.1)
    assert weight(row, "tracking") == 2


def test_speed_range_preset_quickens_its_clock_with_the_command():
    row = tasks.speed_range_task(0.1, 0.3)
    assert row.name == "speed_range+0.10..+0.30"
    assert (float(row.gait_frequency_hz), float(row.gait_frequency_per_mps)) == (1.0, 5.0)


def test_the_walkers_own_weights_stay_beside_overrides():
    row = walking_task(name="peck", reward_weights={"air_time": 0.5})
    assert (weight(row, "air_time"), weight(row, "tracking"), weight(row, "progress")) == (0.5, 5.0, 0.0)


def test_overrides_win_over_the_preset():
    row = tasks.standing_task(name="still", pose_std=0.2, reward_weights={"air_time": 1.5, "upright": 3.0})
    assert row.name == "still"
    assert float(row.params["pose_std"]) == pytest.approx(0.2)
    assert (weight(row, "air_time"), weight(row, "upright"), weight(row, "swing_height")) == (1.5, 3.0, 0.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"command_low": (0.3, 0), "command_high": (0.1, 0)}, "command of task 'x' has low .* above high"),
        ({"gait_frequency_hz": 0.0}, "gait_frequency_hz of task 'x' is 0.0; it must be above 0"),
        ({"reward_weights": {"pose": float("nan")}}, "reward_weights of task 'x' .* must be finite"),
        ({"reward_weights": {"grace": 1.0}}, "'grace' is no reward term; choose one of"),
        ({"pose_sdt": 0.1}, "'pose_sdt' is no task field; choose one of .*'pose_std'"),
        ({"pose_std": float("inf")}, "pose_std of task 'x' is inf; it must be finite"),
        ({"warm_start_fraction": 1.5}, r"warm_start_fraction of task 'x' is 1.5; it must be in \[0, 1\]"),
        ({"warm_start_velocity": (0.2, 0.1)}, "warm_start_velocity of task 'x' has low"),
        ({"warm_start_velocity": (-0.2, 0.1)}, "warm_start_velocity of task 'x' is .* must be in"),
        ({"joint_reset_noise_scale": -0.1}, "joint_reset_noise_scale of task 'x'"),
        ({"yaw_rate_interval": (1.0, -1.0)}, "yaw_rate_interval of task 'x' has low"),
        ({"command_low": (0.1,)}, r"command_low must hold two values per row; its shape is \(1, 1\)"),
        ({"command_low": "fast"}, "command_low must be a number or a pair of numbers, not 'fast'"),
        ({"weight": -1.0}, "weight of task 'x' is -1.0"),
        ({"name": ""}, "every task needs a name"),
    ],
)
def test_a_bad_row_is_refused_when_it_is_made(arguments, message):
    good = {"command_low": (0.0, 0.0), "command_high": (0.1, 0.0), "name": "x"}
    with pytest.raises(TaskError, match=message):
        tasks.make_task(**{**good, **arguments})


def test_stacking_refuses_what_is_no_library():
    with pytest.raises(TaskError, match="one or more MicroDuckTask rows, not \\[\\]"):
        tasks.stack_tasks([])
    with pytest.raises(TaskError, match="not \\['walk'\\]"):
        tasks.stack_tasks(["walk"])
    with pytest.raises(TaskError, match="every weight is zero"):
        tasks.stack_tasks([tasks.standing_task(weight=0.0)])
    short = tasks.stack_tasks([tasks.standing_task()])
    short.reward_weights = short.reward_weights[:, :3]
    with pytest.raises(TaskError, match="reward_weights is \\(1, 3\\)"):
        tasks.stack_tasks(short)
    lacking = tasks.stack_tasks([tasks.standing_task()])
    del lacking.params["pose_std"]
    with pytest.raises(TaskError, match="params lack \\['pose_std'\\]"):
        tasks.stack_tasks(lacking)


def test_no_tasks_means_slow_tracking():
    assert list(tasks.stack_tasks(None).name) == ["tracking+0.03"]


def test_a_single_row_is_a_library_of_one(tmp_path):
    assert list(tasks.stack_tasks(tasks.standing_task()).name) == ["standing"]
    tasks.save_library([tasks.standing_task()], str(tmp_path / "one.tdz"))
    assert list(tasks.load_library(str(tmp_path / "one.tdz")).name) == ["standing"]


def test_a_library_reads_back_equal(tmp_path):
    library = tasks.stack_tasks([tasks.speed_range_task(), tasks.standing_task()])
    tasks.save_library(library, tmp_path / "two.tdz")
    again = tasks.load_library(tmp_path / "two.tdz")
    assert list(again.name) == ["speed_range+0.10..+0.30", "standing"]
    for name, value in library.items(include_nested=True, leaves_only=True):
        if isinstance(value, torch.Tensor):
            assert torch.equal(again.get(name), value), name
    assert [path.name for path in tmp_path.iterdir()] == ["two.tdz"]


def test_a_damaged_library_is_refused(tmp_path):
    path = tmp_path / "one.tdz"
    tasks.save_library(tasks.stack_tasks(None), path)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(ArchiveError):
        tasks.load_library(path)


def test_a_pickle_in_a_library_is_refused(tmp_path):
    path = tmp_path / "one.tdz"
    tasks.save_library(tasks.stack_tasks(None), path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("params/other.pickle", b"cos\nsystem\n(S'true'\ntR.")
    with pytest.raises(ArchiveError, match="pickle"):
        tasks.load_library(path)
