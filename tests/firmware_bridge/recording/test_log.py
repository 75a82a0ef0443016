"""The file: what it holds, how small it is, and that others can read it."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from firmware_bridge.recording.fields import FIELDS, row_type
from firmware_bridge.recording.log import read_log, write_log
from hardware import contract
from hardware.errors import ArchiveError, ConfigError

TICKS_OF_AN_HOUR = 180_000


def test_an_hour_takes_less_than_150_megabytes_in_any_layout() -> None:
    widest = max(contract.width(layout) for layout in contract.LAYOUTS)
    assert row_type(widest).itemsize * TICKS_OF_AN_HOUR < 150e6


def test_a_file_takes_no_more_than_its_rows_and_a_few_kilobytes(drive: Path, cut_short: Path) -> None:
    for path in (drive, cut_short):
        assert 60 * 672 < path.stat().st_size < 60 * 672 + 8000


def test_arrays_have_the_documented_types_and_shapes(drive: Path) -> None:
    log = read_log(drive)
    found = {name: (array.dtype.str, array.shape[1:]) for name, array in log.arrays.items()}
    numbers = {name: ("<f4", (14,)) for name in ("action", "requested", "applied", "position", "velocity")}
    numbers |= {name: ("<f4", (14,)) for name in ("current", "voltage", "temperature")}
    numbers |= {
        name: ("<f4", (3,)) for name in ("angular_velocity", "gravity", "command", "command_requested")
    }
    assert found == {
        **numbers,
        "time": ("<f8", ()),
        "periods": ("<i2", ()),
        "mode": ("|u1", ()),
        "skill": ("<i2", ()),
        "fresh": ("|b1", ()),
        "alerts": ("|b1", (14,)),
        "observation": ("<f4", (55,)),
        "head": ("<f4", (4,)),
        "stages": ("<f4", (4,)),
        "missed": ("<i4", ()),
        "bus_errors": ("<i4", ()),
    }
    assert not any(array.flags.writeable for array in log.arrays.values())


@pytest.mark.parametrize("counts", [-267, -1, 1, 100, 267])
def test_two_bytes_keep_a_speed_to_a_tenth_of_the_servos_step(tmp_path: Path, counts: int) -> None:
    step = 0.229 * 2 * np.pi / 60  # manual: 0.229 rev/min a count; 61 rev/min without load are 267 counts
    write_log(tmp_path / "a.tdz", {"time": np.zeros(1), "velocity": np.full((1, 14), counts * step)}, {})
    read = read_log(tmp_path / "a.tdz").arrays["velocity"]
    assert np.abs(read - counts * step).max() < step / 10


@pytest.mark.parametrize("milliamperes", [1, 333, 999, 1470])
def test_two_bytes_keep_a_current_to_half_the_servos_step(tmp_path: Path, milliamperes: int) -> None:
    current = np.full((1, 14), milliamperes / 1000)
    write_log(tmp_path / "a.tdz", {"time": np.zeros(1), "current": current}, {})
    read = read_log(tmp_path / "a.tdz").arrays["current"]
    assert np.abs(read - current).max() <= 0.0005


def test_the_description_tells_what_drove(drive: Path) -> None:
    meta = read_log(drive).meta
    assert meta["modes"] == ["limp", "rise", "stand", "run", "sit", "fallen", "stopped", "fault"]
    assert (meta["skills"], meta["bundle"], meta["layout"]) == (["walk", "stand"], "test-bundle", "sensor")
    assert (meta["schema"], meta["p_gain"], meta["action_scale"]) == (1, 200, 0.8)
    assert meta["contract_digest"] == contract.digest(contract.describe("sensor", 0.8))
    assert meta["calibration"]["joint_offsets"] == [0.0] * 14
    assert meta["joints"][3] == "left_knee" and meta["started"].endswith("+00:00")


def test_zipfile_and_numpy_are_enough_to_read_a_recording(drive: Path) -> None:
    with zipfile.ZipFile(drive) as archive:
        assert archive.testzip() is None
        shapes = json.loads(archive.read("meta.json"))
        position = np.frombuffer(archive.read("position.memmap"), "<f4").reshape(shapes["position"]["shape"])
        assert json.loads(archive.read("log.json"))["skills"] == ["walk", "stand"]
    assert position.shape == (60, 14) and position[59, 13] == 59 + 13 / 16


def test_a_written_log_reads_back_equal(tmp_path: Path, drive: Path) -> None:
    log = read_log(drive)
    write_log(tmp_path / "again.tdz", log.arrays, log.meta)
    again = read_log(tmp_path / "again.tdz")
    assert again.meta == log.meta and again.complete
    for name, array in log.arrays.items():
        assert np.array_equal(again.arrays[name], array, equal_nan=array.dtype.kind == "f"), name


def test_arrays_that_a_writer_leaves_out_are_unknown(tmp_path: Path) -> None:
    write_log(tmp_path / "a.tdz", {"time": np.arange(5) * 0.02}, {"modes": ["run"]})
    log = read_log(tmp_path / "a.tdz")
    assert log.complete and set(log.arrays) == {field.name for field in FIELDS}
    assert np.isnan(log.arrays["applied"]).all() and log.arrays["applied"].shape == (5, 14)
    assert log.arrays["missed"].tolist() == [0] * 5 and log.names("mode").tolist() == ["run"] * 5
    assert log.names("skill").tolist() == ["?"] * 5


def test_a_log_of_no_ticks_is_a_log(tmp_path: Path) -> None:
    write_log(tmp_path / "a.tdz", {"time": np.zeros(0)}, {})
    log = read_log(tmp_path / "a.tdz")
    assert log.complete and log.ticks == 0 and log.seconds.shape == (0,)


@pytest.mark.parametrize(
    ("arrays", "text"),
    [
        ({"time": np.zeros(3), "pose": np.zeros(3)}, "a log has no .'pose'."),
        ({"position": np.zeros((3, 14))}, "at least 'time'"),
        ({"time": np.zeros(3), "position": np.zeros((4, 14))}, r"position has the shape \(4, 14\)"),
        ({"time": np.zeros(3), "gravity": np.zeros((3, 4))}, r"it must be \(3, 3\)"),
    ],
)
def test_arrays_of_no_log_are_refused(tmp_path: Path, arrays: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        write_log(tmp_path / "a.tdz", arrays, {})
    assert list(tmp_path.iterdir()) == []


def test_a_name_whose_recording_was_never_finished_leads_to_the_file_that_was(cut_short: Path) -> None:
    with pytest.raises(ArchiveError, match=r"never finished; name .*killed\.tdz\.part"):
        read_log(cut_short.with_suffix(""))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match=r"a\.tdz is not a file"):
        read_log(tmp_path / "a.tdz")


def test_the_documentation_lists_every_array_as_it_is() -> None:
    page = (Path(__file__).parents[3] / "docs" / "recording.md").read_text(encoding="utf-8")
    for field in FIELDS:
        shape = str(("n", *field.shape(99))).replace("'", "").replace("99", "width")
        row = (f"`{field.name}`", shape, np.dtype(field.dtype).name, field.unit or "-", field.text)
        assert f"| {' | '.join(row)} |" in page
