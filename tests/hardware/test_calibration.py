from collections.abc import Callable
from math import sqrt
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardware import rotations
from hardware.calibration import Calibration, load_calibration, save_calibration
from hardware.errors import ConfigError

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_text(text: str) -> Path:
        path = tmp_path / "duck.toml"
        path.write_text(text)
        return path

    return write_text


offsets = st.lists(st.floats(-0.5, 0.5), min_size=14, max_size=14).map(tuple)
mountings = st.sampled_from(
    [(1.0, 0.0, 0.0, 0.0), (0.6, -0.8, 0.0, 0.0), (sqrt(1 / 3), 0.0, sqrt(2 / 3), -0.0)]
)


biases = st.tuples(*[st.floats(-0.2, 0.2)] * 3)


@given(offsets, mountings, biases)
def test_what_is_saved_reads_back_equal(
    tmp_path_factory: pytest.TempPathFactory,
    joint_offsets: tuple[float, ...],
    mounting: tuple[float, float, float, float],
    bias: tuple[float, float, float],
) -> None:
    path = tmp_path_factory.mktemp("duck") / "duck.toml"
    calibration = Calibration(joint_offsets, mounting, bias)
    save_calibration(calibration, path)
    assert load_calibration(path) == calibration


def test_saving_replaces_the_file_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "duck.toml"
    save_calibration(Calibration(), path)
    save_calibration(Calibration((0.1,) * 14), path)
    assert load_calibration(path).joint_offsets == (0.1,) * 14
    assert list(tmp_path.iterdir()) == [path]


def test_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"cannot write .*nowhere.*: No such file or directory; choose another place"
    ):
        save_calibration(Calibration(), tmp_path / "nowhere" / "duck.toml")
    with pytest.raises(ConfigError, match="Is a directory"):
        save_calibration(Calibration(), tmp_path)
    assert not list(tmp_path.iterdir())


def test_empty_file_is_a_duck_without_deviations(write: Write) -> None:
    calibration = load_calibration(write(""))
    assert calibration == Calibration()
    assert calibration.joint_offsets == (0.0,) * 14
    assert calibration.gyro_bias == (0.0, 0.0, 0.0)


def test_every_number_in_the_file_is_explained_by_the_comment_above_it(tmp_path: Path) -> None:
    path = tmp_path / "duck.toml"
    save_calibration(Calibration((0.1,) * 14, gyro_bias=(0.01, 0.0, -0.02)), path)
    lines = path.read_text().splitlines()
    above = dict(zip(lines[1:], lines, strict=False))
    assert above["[joint_offsets]"] == "# Angle of each servo where its joint is at zero [rad]."
    assert above["gyro_bias = [0.01, 0.0, -0.02]"].endswith("about the IMU's axes (x, y, z) [rad/s].")
    assert next(above[line] for line in lines if line.startswith("mounting")).endswith("(w, x, y, z).")


def test_file_may_name_some_joints_only(write: Write) -> None:
    path = write("[joint_offsets]\nright_ankle = -0.02\nleft_hip_yaw = 0\n[imu]\nmounting = [1, 0, 0, 0]\n")
    calibration = load_calibration(path)
    assert calibration.joint_offsets == (0.0,) * 13 + (-0.02,)
    assert calibration.imu_mounting == (1.0, 0.0, 0.0, 0.0)


def test_boards_z_axis_points_forward(close: Callable[..., bool]) -> None:
    mounting = np.array(Calibration().imu_mounting)
    assert close(rotations.rotate(mounting, np.array([0.0, 0.0, 1.0])), [1.0, 0.0, 0.0])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[joint_offsets]\nleft_elbow = 0.1",
            r"\[joint_offsets\] holds the unknown key 'left_elbow'; valid keys are",
        ),
        (
            "offsets = 1",
            r"the file holds the unknown key 'offsets'; valid keys are \['imu', 'joint_offsets'\]",
        ),
        (
            "[imu]\nyaw = 0",
            r"\[imu\] holds the unknown key 'yaw'; valid keys are \['gyro_bias', 'mounting'\]",
        ),
        ("joint_offsets = 3", "joint_offsets must be a table, not 3"),
        ("imu = []", r"imu must be a table, not \[\]"),
        ("[joint_offsets]\nleft_knee = 'small'", "left_knee must be a number, not 'small'"),
        ("[joint_offsets]\nleft_knee = true", "left_knee must be a number, not True"),
        (
            "[joint_offsets]\nleft_knee = 0.51",
            r"offset of left_knee is 0\.51 rad; it must be within \+-0\.5 rad",
        ),
        ("[joint_offsets]\nleft_knee = nan", "offset of left_knee is nan rad"),
        ("[joint_offsets]\nleft_knee = -inf", "offset of left_knee is -inf rad"),
        ("[imu]\nmounting = [1, 0, 0]", r"mounting must be four numbers \(w, x, y, z\), not \[1, 0, 0\]"),
        ("[imu]\nmounting = 'flat'", "mounting must be four numbers .*, not 'flat'"),
        ("[imu]\nmounting = [1, 0, 0, false]", "mounting must be a number, not False"),
        ("[imu]\nmounting = [1, 1, 0, 0]", "has norm 1.41421; a rotation has norm 1"),
        ("[imu]\nmounting = [0, 0, 0, 0]", "has norm 0; a rotation has norm 1"),
        ("[imu]\nmounting = [1e308, 1e308, 0, 0]", "has norm inf"),
        ("[imu]\nmounting = [nan, 0, 0, 0]", "has norm nan"),
        ("[imu]\ngyro_bias = [0, 0]", r"gyro_bias must be three numbers \(x, y, z\), not \[0, 0\]"),
        ("[imu]\ngyro_bias = 0", "gyro_bias must be three numbers .*, not 0"),
        ("[imu]\ngyro_bias = [0, 0, '0']", "gyro_bias must be a number, not '0'"),
        ("[imu]\ngyro_bias = [0, 0.21, 0]", r"gyro_bias about y is 0\.21 rad/s; .* within \+-0\.2 rad/s"),
        ("[imu]\ngyro_bias = [0, 0, nan]", "gyro_bias about z is nan rad/s"),
    ],
)
def test_bad_value_is_named_with_the_file(write: Write, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=rf"duck\.toml is no valid calibration: .*{message}"):
        load_calibration(write(text))


@pytest.mark.parametrize(
    "text",
    [
        "joint_offsets",
        "[joint_offsets]\nleft_knee = 0.1\nleft_knee = 0.2",
        "a = " + "[" * 10_000,
        "[joint_offsets]\nleft_knee." + "a." * 3_000 + "b = 1",
        "[joint_offsets]\nleft_knee = " + "9" * 400,
        "[joint_offsets]\nleft_knee = " + "9" * 5_000,
        "[joint_offsets]\nleft_knee = 0x" + "f" * 5_000,
        "[imu]\nmounting = [0x" + "f" * 5_000 + "]",
        "a = '\0'",
    ],
    ids=lambda text: text[:40].split("=")[-1],
)
def test_hostile_file_is_refused_as_a_calibration(write: Write, text: str) -> None:
    with pytest.raises(ConfigError, match=r"duck\.toml is no valid calibration"):
        load_calibration(write(text))


def test_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "duck.toml").write_bytes(b"\xff\xfe[imu]")
    with pytest.raises(ConfigError, match="is no valid calibration"):
        load_calibration(tmp_path / "duck.toml")


def test_large_file_is_refused_unread(write: Write) -> None:
    with pytest.raises(ConfigError, match="is larger than 16384 bytes, the most that is read"):
        load_calibration(write("#" * 16_385))


def test_absent_file_and_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent\.toml is not a file; check the path"):
        load_calibration(tmp_path / "absent.toml")
    with pytest.raises(ConfigError, match="is not a file; check the path"):
        load_calibration(tmp_path)


def test_calibration_made_in_code_is_checked_too() -> None:
    with pytest.raises(ConfigError, match="joint_offsets needs 14 values, not 13"):
        Calibration((0.0,) * 13)
    with pytest.raises(ConfigError, match=r"imu_mounting needs 4 values \(w, x, y, z\), not 3"):
        Calibration(imu_mounting=(1.0, 0.0, 0.0))  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"gyro_bias needs 3 values \(x, y, z\), not 2"):
        Calibration(gyro_bias=(0.0, 0.0))  # type: ignore[arg-type]
