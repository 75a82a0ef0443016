"""One duck, and its file."""

import math
import re

import pytest

from hardware.errors import ConfigError
from microduck.cli.twin import twin as write_twin
from microduck.randomization import Randomization, Twin, load_twin, save_twin


def written(tmp_path, text):
    path = tmp_path / "duck.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("seed", range(5))
def test_what_is_written_reads_back_equal(tmp_path, seed):
    twin = Twin.draw(Randomization.full(), seed)
    save_twin(twin, tmp_path / "duck.toml")
    assert load_twin(tmp_path / "duck.toml") == twin
    assert [path.name for path in tmp_path.iterdir()] == ["duck.toml"]


def test_equal_seeds_give_equal_ducks_and_others_differ():
    full = Randomization.full()
    assert Twin.draw(full, 3) == Twin.draw(full, 3)
    assert Twin.draw(full, 3) != Twin.draw(full, 4)
    for seed in range(20):
        twin = Twin.draw(full, seed)
        assert 0.7 <= twin.sole_friction <= 1.3 and 6.5 <= twin.voltage <= 8.2
        assert all(abs(offset) <= 0.015 for offset in twin.encoder_offset)
    assert len(set(twin.encoder_offset)) == 14


def test_a_nominal_range_draws_the_nominal_duck():
    assert Twin.draw(Randomization.off(), 0) == Twin()
    with pytest.raises(ConfigError, match="seed is -1"):
        Twin.draw(Randomization.off(), -1)


def test_the_file_names_units_and_joints(tmp_path):
    save_twin(Twin(voltage=6.8), tmp_path / "duck.toml")
    text = (tmp_path / "duck.toml").read_text()
    assert "# Voltage of the battery without load [V].\nvoltage = 6.8\n" in text
    assert "[twin.encoder_offset]\nleft_hip_yaw = 0.0\n" in text


def test_what_a_file_leaves_out_is_nominal(tmp_path):
    path = written(tmp_path, "[twin]\nvoltage = 7\n[twin.encoder_offset]\nleft_knee = 0.1\n")
    twin = load_twin(path)
    assert twin == Twin(voltage=7.0, encoder_offset=(0, 0, 0, 0.1, *[0] * 10))
    assert isinstance(twin.voltage, float)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("[twin]\nsag = 0.1\ncolour = 1\n", 3, "unknown key 'colour'; valid keys are .'sole_friction'"),
        ("[twin]\n[other]\n", 2, "unknown key 'other'; valid keys are .'twin'"),
        ("[twin]\nvoltage = '7'\n", 2, "voltage is '7'; it must be a number in .6, 8.4. V"),
        ("[twin]\n\nvoltage = true\n", 3, "voltage is True"),
        ("[twin]\nvoltage = 12\n", 2, "voltage is 12; it must be a number in"),
        ("[twin]\nvoltage = nan\n", 2, "voltage is nan"),
        (f"[twin]\nvoltage = 1{'0' * 400}\n", 2, "voltage is 1000"),
        ("[twin]\n[twin.trunk_com]\nx = 0\ny = 0.5\n", 4, "y: trunk_com is 0.5; it must be .* m"),
        ("[twin]\n[twin.trunk_com]\nx = 0\nw = 0\n", 4, "unknown key 'w'; valid keys are .'x', 'y', 'z'"),
        ("[twin]\ntrunk_com = [0, 0, 0]\n", 2, r"trunk_com is \[0, 0, 0\]; it must be a table"),
        ("[twin.encoder_offset]\nleft_knee = -1.0\n", 2, "left_knee: encoder_offset is -1.0"),
        ("twin = 3\n", 1, "twin is 3; it must be a table"),
    ],
)
def test_a_bad_file_is_refused_with_its_line(tmp_path, text, line, message):
    path = written(tmp_path, text)
    with pytest.raises(ConfigError, match=f"^{re.escape(str(path))}:{line}: .*{message}"):
        load_twin(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "twin is absent; it must be a table"),
        ("[twin\n", "is no valid twin: .*line 1"),
        ("[twin]\nsag = 1\nsag = 2\n", "is no valid twin: .*line 3"),
        ("[twin]\nsag" + " " * 70_000 + "= 0\n", "is larger than 65536 bytes"),
        ("x = " + "[" * 5000, "is no valid twin"),
    ],
)
def test_what_is_no_twin_is_refused(tmp_path, text, message):
    with pytest.raises(ConfigError, match=message):
        load_twin(written(tmp_path, text))


def test_a_missing_file_and_a_place_that_cannot_be_written_are_told(tmp_path):
    with pytest.raises(ConfigError, match="is not a file; check the path"):
        load_twin(tmp_path / "duck.toml")
    with pytest.raises(ConfigError, match=r"cannot write .*; choose another place"):
        save_twin(Twin(), tmp_path / "absent" / "duck.toml")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sole_friction": math.inf}, "sole_friction is inf"),
        ({"trunk_com": 0.0}, "trunk_com is 0.0; it must be 3 numbers"),
        ({"encoder_offset": (0.0,) * 13}, "it must be 14 numbers"),
        ({"gyro_bias": (0.0, 2.0, 0.0)}, r"gyro_bias is 2.0; it must be a number in \[-1, 1\] rad/s"),
    ],
)
def test_impossible_twins_are_refused(arguments, message):
    with pytest.raises(ConfigError, match=message):
        Twin(**arguments)


def test_a_twin_replaces_a_twin_and_nothing_else(tmp_path):
    path = tmp_path / "odd.toml"
    write_twin(path, seed=1)
    write_twin(path, seed=2)
    assert load_twin(path) == Twin.draw(Randomization.full(), 2)
    path.write_bytes(b"a recording")
    with pytest.raises(ConfigError, match="is there and no twin"):
        write_twin(path, seed=3)
    assert path.read_bytes() == b"a recording"


def test_a_twin_takes_no_name_of_a_recording(tmp_path):
    with pytest.raises(ConfigError, match="a recording's name"):
        write_twin(tmp_path / "walk.tdz")
    assert not list(tmp_path.iterdir())
