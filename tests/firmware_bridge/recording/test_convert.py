"""Recordings in the formats of other tools, read back by those tools."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from firmware_bridge.cli import main
from firmware_bridge.recording.columns import columns
from firmware_bridge.recording.convert import convert
from firmware_bridge.recording.log import Log, read_log, write_log
from firmware_bridge.recording.times import tick_nanoseconds
from hardware.errors import ConfigError


def table(path: Path) -> dict[str, list[str]]:
    with path.open(newline="") as file:
        head, *lines = csv.reader(file)
    return {name: [line[place] for line in lines] for place, name in enumerate(head)}


def test_columns_are_called_after_joints_axes_and_parts_of_the_observation_and_have_units(
    drive: Path,
) -> None:
    units = {column.name: column.unit for column in columns(read_log(drive))}
    assert units["position.left_knee"] == "rad" and units["current.right_ankle"] == "A"
    assert (units["command.vx"], units["command.yaw_rate"]) == ("m/s", "rad/s")
    assert units["angular_velocity.z"] == "rad/s" and units["stages.read"] == "s"
    assert units["observation.joint_error.head_yaw"] == "rad"
    assert units["observation.command.2"] == "rad/s" and units["observation.gait_clock.0"] == "1"
    assert len([name for name in units if name.startswith("observation.")]) == 55


def test_an_observation_of_an_unknown_layout_has_numbered_columns(tmp_path: Path) -> None:
    arrays = {"time": np.zeros(2), "observation": np.zeros((2, 7))}
    write_log(tmp_path / "a.tdz", arrays, {"layout": "sensor"})
    names = [column.name for column in columns(read_log(tmp_path / "a.tdz"))]
    assert [name for name in names if "observation" in name] == [f"observation.{n}" for n in range(7)]


def test_csv_has_each_number_as_it_was_and_nothing_where_nothing_is_known(
    tmp_path: Path, drive: Path
) -> None:
    convert(drive, tmp_path / "a.csv")
    cells = table(tmp_path / "a.csv")
    assert len(cells["time"]) == 60
    assert [float(cells["time"][n]) for n in (0, 59)] == pytest.approx([0.0, 1.18])
    assert cells["mode"][9:11] == ["limp", "rise"] and set(cells["skill"]) == {"walk"}
    assert cells["position.left_hip_roll"][9:11] == ["", "10.0625"]
    assert cells["action.head_yaw"][28:31] == ["", "", "0.75"]
    assert cells["fresh"][0] == "1" and cells["alerts.left_knee"][0] == "0"
    single = read_log(drive).arrays["command"][:, 0]
    assert [np.float32(cell) for cell in cells["command.vx"]] == single.tolist()


def test_a_name_with_a_comma_or_a_quote_stays_one_cell(tmp_path: Path) -> None:
    skills = ['walk, "fast"', "x"]
    write_log(tmp_path / "a.tdz", {"time": np.zeros(2), "skill": np.array([0, 1])}, {"skills": skills})
    convert(tmp_path / "a.tdz", tmp_path / "a.csv")
    assert table(tmp_path / "a.csv")["skill"] == skills


def test_a_recording_that_was_cut_short_can_be_finished(cut_short: Path, capsys: Any) -> None:
    assert main(["convert", str(cut_short), str(cut_short.with_suffix(""))]) == 0
    out, err = capsys.readouterr()
    assert out.endswith("killed.tdz: 60 ticks\n") and "its drive never ended it" in err
    assert read_log(cut_short.with_suffix("")).arrays["position"][59, 0] == 59


def test_parquet_holds_the_columns_with_their_units(tmp_path: Path, drive: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    log = convert(drive, tmp_path / "a.parquet")
    read = parquet.read_table(tmp_path / "a.parquet")
    knee = read.column("position.left_knee").to_numpy()
    assert np.array_equal(knee, log.arrays["position"][:, 3], equal_nan=True)
    assert read.column("mode").to_pylist() == ["limp"] * 10 + ["rise"] * 20 + ["run"] * 30
    assert read.schema.field("current.left_knee").metadata[b"unit"] == b"A"
    assert json.loads(read.schema.metadata[b"microduck"])["skills"] == ["walk", "stand"]


def test_mcap_holds_a_message_a_tick_for_each_topic_that_its_schema_describes(
    tmp_path: Path, drive: Path
) -> None:
    reader = pytest.importorskip("mcap.reader")
    log = convert(drive, tmp_path / "a.mcap")
    with (tmp_path / "a.mcap").open("rb") as file:
        found = list(reader.make_reader(file).iter_messages())
    topics = [channel.topic for _, channel, _ in found]
    assert {name: topics.count(name) for name in topics} == dict.fromkeys(
        ["/joints", "/imu", "/command", "/loop", "/policy"], 60
    )
    schema, _, message = [item for item in found if item[1].topic == "/joints"][45]
    data, fields = json.loads(message.data), json.loads(schema.data)["properties"]["left_knee"]["properties"]
    assert data["left_knee"]["position"] == 45 + 3 / 16 and fields["position"]["description"] == "[rad]"
    times = [message.log_time for _, channel, message in found if channel.topic == "/imu"]
    assert times[45] - times[0] == pytest.approx(0.9e9, abs=1000)
    assert set(json.loads(found[topics.index("/joints")][2].data)["left_knee"]) == {
        "alerts"
    }  # all else unknown
    assert log.ticks == 60


def test_rerun_holds_a_scalar_for_each_number(tmp_path: Path, drive: Path) -> None:
    chunk = pytest.importorskip("rerun.chunk")
    convert(drive, tmp_path / "a.rrd")
    batches = {str(c.entity_path): c.to_record_batch() for c in chunk.RrdReader(tmp_path / "a.rrd").stream()}
    knee = batches["/position/left_knee"]
    (name,) = [name for name in knee.schema.names if "Scalars" in name]
    assert knee.column(name).to_pylist()[45] == [45 + 3 / 16]
    (name,) = [name for name in batches["/mode"].schema.names if "text" in name.lower()]
    assert batches["/mode"].column(name).to_pylist() == [["limp"], ["rise"], ["run"]]


@pytest.mark.parametrize(
    ("ending", "package", "extra"),
    [("parquet", "pyarrow", "parquet"), ("mcap", "mcap", "mcap"), ("rrd", "rerun", "rerun")],
)
def test_a_package_that_is_not_installed_is_named_with_what_brings_it(
    tmp_path: Path, drive: Path, monkeypatch: pytest.MonkeyPatch, ending: str, package: str, extra: str
) -> None:
    for module in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ConfigError, match=rf"package {package} .*pip install 'microduck-toolkit\[{extra}\]'"):
        convert(drive, tmp_path / f"a.{ending}")
    assert [path.name for path in tmp_path.iterdir()] == ["drive.tdz"]


@pytest.mark.parametrize("ending", ["parquet", "mcap", "rrd", "csv"])
@pytest.mark.parametrize("started", ["9999-12-31T23:59:59-14:00", "2099-12-31T23:59:59+00:00", 7])
@pytest.mark.parametrize("clock", [-1e9, 1e9, 0, 1e300])
def test_a_start_that_cannot_have_been_is_converted_all_the_same(
    tmp_path: Path, ending: str, started: Any, clock: Any
) -> None:
    pytest.importorskip({"parquet": "pyarrow", "rrd": "rerun", "csv": "csv"}.get(ending, ending))
    meta = {"started": started, "clock": clock}
    write_log(tmp_path / "a.tdz", {"time": np.array([100.0, 9.9e8])}, meta)
    assert convert(tmp_path / "a.tdz", tmp_path / f"a.{ending}").ticks == 2


def test_times_follow_from_the_start_and_without_one_count_from_1970() -> None:
    arrays = {"time": np.array([101.0, 101.5])}
    clocked = Log(arrays, {"started": "2026-05-04T03:02:01+02:00", "clock": 100.0})
    begin = 1_777_856_521  # date --date 2026-05-04T03:02:01+02:00 +%s
    assert tick_nanoseconds(clocked).tolist() == [(begin + 1) * 10**9, (begin + 1) * 10**9 + 5 * 10**8]
    assert tick_nanoseconds(Log(arrays, {"clock": 100.0})).tolist() == [10**9, 15 * 10**8]
    late = Log(arrays, {"started": "2026-05-04T01:02:01+00:00", "clock": 102.0})
    assert tick_nanoseconds(late)[0] == begin * 10**9
    far = Log(arrays, {"started": "9999-12-31T23:59:59-14:00", "clock": 102.0})
    assert tick_nanoseconds(far).tolist() == [0, 5 * 10**8]


def test_mcap_leaves_out_what_json_cannot_hold(tmp_path: Path) -> None:
    reader = pytest.importorskip("mcap.reader")
    arrays = {"time": np.zeros(1), "gravity": np.array([[np.inf, np.nan, -1.0]])}
    write_log(tmp_path / "a.tdz", arrays, {"k\ud800": "\ud800"})
    convert(tmp_path / "a.tdz", tmp_path / "a.mcap")
    with (tmp_path / "a.mcap").open("rb") as file:
        found = list(reader.make_reader(file).iter_messages(topics=["/imu"]))
    assert json.loads(found[0][2].data)["gravity"] == {"z": -1.0}


@pytest.mark.parametrize("ending", ["parquet", "mcap", "csv", "tdz"])
def test_a_file_whose_name_is_no_text_is_converted(drive: Path, ending: str) -> None:
    pytest.importorskip({"parquet": "pyarrow", "mcap": "mcap"}.get(ending, "csv"))
    strange = drive.rename(drive.with_name("drive\udcff.tdz"))
    assert main(["convert", str(strange), str(strange.with_name(f"out\udcff.{ending}"))]) == 0
    assert strange.with_name(f"out\udcff.{ending}").stat().st_size > 0


def test_rerun_takes_no_name_that_is_no_text(drive: Path) -> None:
    pytest.importorskip("rerun")
    with pytest.raises(ConfigError, match="Rerun takes only names that are UTF-8"):
        convert(drive, drive.with_name("out\udcff.rrd"))
    assert list(drive.parent.iterdir()) == [drive]


def test_an_ending_that_stands_for_no_format_is_refused(tmp_path: Path, drive: Path) -> None:
    with pytest.raises(ConfigError, match=r"ends in one of \.csv, \.parquet, \.mcap, \.rrd, \.tdz"):
        convert(drive, tmp_path / "a.xlsx")


def test_the_recording_itself_is_never_the_target(tmp_path: Path, drive: Path) -> None:
    (tmp_path / "link.tdz").symlink_to(drive)
    with pytest.raises(ConfigError, match="is the recording itself"):
        convert(drive, tmp_path / "link.tdz")


def test_another_recording_is_never_the_target(
    tmp_path: Path, drive: Path, cut_short: Path, capsys: Any
) -> None:
    older = drive.read_bytes()
    (tmp_path / "link.tdz").symlink_to("gone")
    for target in (drive, tmp_path / "link.tdz"):
        assert main(["convert", str(cut_short), str(target)]) == 1
        assert f"{target} exists already; name another file" in capsys.readouterr().err
    assert drive.read_bytes() == older and not (tmp_path / "gone").exists()


@pytest.mark.parametrize("command", [("convert", "a.csv"), ("plot", "-o", "a.html")])
def test_a_link_to_another_recording_is_never_the_target(
    tmp_path: Path, drive: Path, cut_short: Path, capsys: Any, command: tuple[str, ...]
) -> None:
    older = drive.read_bytes()
    link = tmp_path / command[-1]
    link.symlink_to(drive)
    assert main([command[0], str(cut_short), *command[1:-1], str(link)]) == 1
    assert f"cannot write {link}: that is a recording's name" in capsys.readouterr().err
    assert drive.read_bytes() == older


def test_a_recording_that_comes_there_during_the_conversion_stays(
    tmp_path: Path, cut_short: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "new.tdz"

    def read(path: Path) -> Log:
        target.write_text("precious")
        return read_log(path)

    monkeypatch.setattr("firmware_bridge.recording.convert.read_log", read)
    assert main(["convert", str(cut_short), str(target)]) == 1
    assert "cannot write" in capsys.readouterr().err and target.read_text() == "precious"
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize(
    ("name", "text"),
    [("no/a.csv", "there is no folder {0}/no; make it"), ("a.csv", "it is a folder; name a file in it")],
)
def test_a_place_where_nothing_can_be_written_is_told_with_what_to_do(
    tmp_path: Path, drive: Path, capsys: Any, name: str, text: str
) -> None:
    (tmp_path / "a.csv").mkdir()
    assert main(["convert", str(drive), str(tmp_path / name)]) == 1
    assert text.format(tmp_path) in capsys.readouterr().err


def test_a_name_that_the_system_refuses_is_told_by_the_name_that_was_given(
    tmp_path: Path, drive: Path, capsys: Any
) -> None:
    name = "x" * 300 + ".csv"
    assert main(["convert", str(drive), str(tmp_path / name)]) == 1
    assert f"{name}: File name too long; choose another file" in capsys.readouterr().err


def test_a_conversion_that_fails_leaves_the_older_file_and_no_half_one(
    tmp_path: Path, drive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "a.csv"
    target.write_text("older")
    monkeypatch.setattr("firmware_bridge.recording.formats.csv._texts", lambda values: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        convert(drive, target)
    assert target.read_text() == "older"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "drive.tdz"]


def test_a_damaged_recording_is_converted_as_far_as_it_is_whole_saying_so(drive: Path, capsys: Any) -> None:
    drive.write_bytes(drive.read_bytes()[:30_000])
    assert main(["convert", str(drive), str(drive.with_suffix(".csv"))]) == 0
    assert "cut short or damaged at byte 30000 of 30000" in capsys.readouterr().err
    assert table(drive.with_suffix(".csv"))["observation.command.0"][59] == "6"
