"""Files from anyone: read as far as they are whole, never further, and nothing in them is carried out."""

from __future__ import annotations

import io
import json
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firmware_bridge.recording import part
from firmware_bridge.recording.log import Log, read_log, write_log
from hardware.errors import ArchiveError

EXAMPLES = settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])


def same(one: np.ndarray, other: np.ndarray) -> bool:
    return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")


def unknown(array: np.ndarray) -> bool:
    return bool((np.isnan(array) if array.dtype.kind == "f" else array == 0).all())


def is_prefix(damaged: Log, whole: Log) -> bool:
    return all(same(array, whole.arrays[name][: damaged.ticks]) for name, array in damaged.arrays.items())


def spoiled(path: Path, data: bytes) -> Log | None:
    """Return what is read of changed bytes, None when they are refused."""
    copy = path.with_name("spoiled")
    copy.write_bytes(data)
    try:
        return read_log(copy)
    except ArchiveError as error:
        assert str(copy) in str(error)
        return None


@EXAMPLES
@given(share=st.floats(0, 1))
def test_an_unfinished_recording_cut_anywhere_gives_the_ticks_before_the_cut(
    cut_short: Path, share: float
) -> None:
    data, whole = cut_short.read_bytes(), read_log(cut_short)
    length = round(share * len(data))
    log = spoiled(cut_short, data[:length])
    if log is None:
        assert length < 3000  # within the description
    else:
        assert is_prefix(log, whole)
        assert log.ticks >= (length - 3000) // (25 * 673) * 25  # all but a block that is not whole
        assert not log.complete


@EXAMPLES
@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_a_wrong_bit_in_an_unfinished_recording_ends_it_there(
    cut_short: Path, place: float, bit: int
) -> None:
    data, whole = bytearray(cut_short.read_bytes()), read_log(cut_short)
    data[int(place * len(data))] ^= 1 << bit
    log = spoiled(cut_short, bytes(data))
    if log is not None:
        assert is_prefix(log, whole)
        assert log.ticks == whole.ticks or "breaks off at byte" in str(log.problem)


@EXAMPLES
@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7), cut=st.booleans())
def test_of_a_damaged_finished_recording_each_array_is_whole_or_unknown_and_named(
    drive: Path, place: float, bit: int, cut: bool
) -> None:
    data, whole = bytearray(drive.read_bytes()), read_log(drive)
    at = int(place * len(data))
    data[at] ^= 1 << bit
    log = spoiled(drive, bytes(data[:at] if cut else data))
    if log is None:
        return
    if log.ticks == 0:  # nothing can be placed without its time
        assert "without time" in str(log.problem)
        return
    for name, array in log.arrays.items():
        if not same(array, whole.arrays[name]):
            assert unknown(array)
            assert name in str(log.problem) and not log.complete


def test_a_copy_that_was_cut_in_half_keeps_the_arrays_of_its_first_half(drive: Path) -> None:
    data, whole = drive.read_bytes(), read_log(drive)
    log = spoiled(drive, data[: len(data) // 2])
    assert log is not None and log.ticks == 60
    assert same(log.arrays["observation"], whole.arrays["observation"])
    assert np.isnan(log.arrays["gravity"]).all()
    assert str(log.problem).startswith(f"cut short or damaged at byte {len(data) // 2} of {len(data) // 2}")
    assert "without " in str(log.problem) and "gravity" in str(log.problem)


def rewritten(
    path: Path, change: Callable[[dict[str, bytes]], None], method: int = zipfile.ZIP_STORED
) -> Path:
    """Write a recording anew with changed members."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    copy = path.with_name("rewritten.tdz")
    copy.write_bytes(data.getvalue())
    return copy


def described(path: Path, **changes: Any) -> Path:
    def change(members: dict[str, bytes]) -> None:
        members["log.json"] = json.dumps({**json.loads(members["log.json"]), **changes}).encode()

    return rewritten(path, change)


@pytest.mark.parametrize(
    "name", ["../../evil.memmap", "/etc/passwd", "a.pkl", "position.pickle", "a/b.memmap"]
)
def test_a_member_that_belongs_to_no_recording_is_refused(drive: Path, name: str) -> None:
    with pytest.raises(ArchiveError, match="belongs to no recording; do not use this file"):
        read_log(rewritten(drive, lambda members: members.update({name: b"x"})))


def test_a_compressed_recording_is_not_unpacked(drive: Path) -> None:
    with pytest.raises(ArchiveError, match=r"it has no log\.json"):
        read_log(rewritten(drive, lambda members: None, zipfile.ZIP_DEFLATED))


def test_a_recording_of_a_later_version_gives_what_this_one_knows(drive: Path) -> None:
    def change(members: dict[str, bytes]) -> None:
        members["log.json"] = members["log.json"].replace(b'"schema": 1', b'"schema": 2')
        leaves = json.loads(members["meta.json"])
        leaves["mood"] = {"device": "cpu", "shape": [60], "dtype": "torch.uint8", "is_nested": False}
        del leaves["head"], members["head.memmap"]
        members["meta.json"], members["mood.memmap"] = json.dumps(leaves).encode(), bytes(60)

    log = read_log(rewritten(drive, change))
    assert log.ticks == 60 and same(log.arrays["position"], read_log(drive).arrays["position"])
    assert not log.complete and "schema 2" in str(log.problem) and "without head" in str(log.problem)
    assert np.isnan(log.arrays["head"]).all() and "mood" not in log.arrays


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"schema": None}, "schema None"),
        ({"schema": True}, "schema True"),
        ({"modes": "run"}, "its modes are 'run'"),
        ({"skills": ["walk\x1b[2J"]}, "list of short names"),
        ({"skills": ["x" * 65]}, "list of short names"),
        ({"joints": ["left_knee"]}, "this duck's are"),
    ],
)
def test_a_description_that_makes_no_sense_is_refused(
    drive: Path, changes: dict[str, Any], text: str
) -> None:
    with pytest.raises(ArchiveError, match=text):
        read_log(described(drive, **changes))


@pytest.mark.parametrize(
    "leaf",
    [
        {"shape": [10**15, 14], "dtype": "torch.float32"},
        {"shape": [60, 15], "dtype": "torch.float32"},
        {"shape": [60, 14], "dtype": "torch.float64"},
        {"shape": "many", "dtype": []},
        None,
        "position",
    ],
)
def test_an_array_that_is_not_what_it_must_be_is_unknown(drive: Path, leaf: Any) -> None:
    def change(members: dict[str, bytes]) -> None:
        members["meta.json"] = json.dumps({**json.loads(members["meta.json"]), "position": leaf}).encode()

    log = read_log(rewritten(drive, change))
    assert log.problem == "without position" and np.isnan(log.arrays["position"]).all()


@pytest.mark.parametrize("count", [[10**12], [-1], [60, 14], "60", None, [True]])
def test_a_number_of_ticks_that_is_none_is_refused(drive: Path, count: Any) -> None:
    def change(members: dict[str, bytes]) -> None:
        members["meta.json"] = json.dumps({**json.loads(members["meta.json"]), "shape": count}).encode()

    with pytest.raises(ArchiveError, match=r"it must be \[number of ticks\]"):
        read_log(rewritten(drive, change))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1e300, 1e300, 0.0])
def test_ticks_from_the_first_whose_time_is_not_in_order_are_left_out(drive: Path, bad: float) -> None:
    def change(members: dict[str, bytes]) -> None:
        time = np.frombuffer(members["time.memmap"]).copy()
        time[40] = bad
        members["time.memmap"] = time.tobytes()

    log = read_log(rewritten(drive, change))
    assert log.ticks == 40 and "tick 40 is at" in str(log.problem)


def test_arrays_that_a_file_lacks_take_no_memory(tmp_path: Path) -> None:
    time = np.arange(200_000) * 0.02
    write_log(tmp_path / "a.tdz", {"time": time}, {})

    def change(members: dict[str, bytes]) -> None:
        for name in [name for name in members if name not in ("log.json", "meta.json", "time.memmap")]:
            del members[name]

    path = rewritten(tmp_path / "a.tdz", change)
    tracemalloc.start()
    log = read_log(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert log.arrays["applied"].shape == (200_000, 14) and np.isnan(log.arrays["applied"][-1]).all()
    assert peak < 4 * path.stat().st_size


def test_a_mode_without_a_name_has_a_question_mark(drive: Path) -> None:
    log = read_log(described(drive, modes=["limp", "rise"]))
    assert log.names("mode").tolist() == ["limp"] * 10 + ["rise"] * 20 + ["?"] * 30


@pytest.mark.parametrize(
    "rows", [None, [], [["time", "O", []]], [["time", "<f8", [10**9]]], [["a", "<f8", [[1]]]], 7]
)
def test_rows_that_are_none_are_refused(tmp_path: Path, rows: Any) -> None:
    meta = json.dumps({"schema": 1, "rows": rows}).encode()
    path = tmp_path / "a.tdz.part"
    path.write_bytes(part.MAGIC + part.frame(part.META, meta))
    with pytest.raises(ArchiveError, match=r"a\.tdz\.part: its description tells of no rows"):
        read_log(path)


@pytest.mark.parametrize("data", [b"", b"PK", b"DUCKREC\n", b"DUCKREC\nM", bytes(1000), b"{}"])
def test_other_files_are_no_recordings(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.tdz").write_bytes(data)
    with pytest.raises(ArchiveError):
        read_log(tmp_path / "a.tdz")


@pytest.mark.parametrize(
    "bad",
    [b"no JSON", b"[]", b'{"time": 1e999}', b"{" + b" " * 9000 + b"}", b'{"a":' * 20 + b"1" + b"}" * 20],
)
def test_a_change_of_the_mode_that_makes_no_sense_costs_no_tick(cut_short: Path, bad: bytes) -> None:
    data, whole = cut_short.read_bytes(), read_log(cut_short)
    place = 17 + int.from_bytes(data[9:13], "little")  # behind the description
    log = spoiled(cut_short, data[:place] + part.frame(part.EVENT, bad) + data[place:])
    assert log is not None and log.ticks == 60 and log.meta["events"] == whole.meta["events"]
    assert "1 changes of the mode make no sense and are left out" in str(log.problem)


def test_ticks_before_some_of_another_length_are_kept(cut_short: Path) -> None:
    log = spoiled(cut_short, cut_short.read_bytes() + part.frame(part.TICKS, b"x"))
    assert log is not None and log.ticks == 60
    assert "some ticks are no rows" in str(log.problem)


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        (b'"dropped": 0', b'"dropped": 1e999', "1e999 is more than a number can be"),
        (b'"dropped": 0', b'"dropped": -1e400', "-1e400 is more than a number can be"),
        (b'"dropped": 0', b'"dropped": ' + b"[" * 20 + b"]" * 20, "nested deeper than 16 levels"),
        (b'"dropped": 0', b'"dropped": "' + b"x" * 2**20 + b'"', "larger than 1048576 bytes"),
    ],
)
def test_a_description_that_could_not_be_written_again_is_refused(
    drive: Path, old: bytes, new: bytes, text: str
) -> None:
    def change(members: dict[str, bytes]) -> None:
        assert old in members["log.json"]
        members["log.json"] = members["log.json"].replace(old, new)

    with pytest.raises(ArchiveError, match=text):
        read_log(rewritten(drive, change))


def test_what_no_text_can_hold_is_a_question_mark_in_a_description(drive: Path) -> None:
    strange = "nine\udcff"  # how Python calls a file whose name ends with the byte 0xff
    log = read_log(
        described(drive, bundle=strange, **{strange: [strange, {"a": strange}], "\U0001f986": "\U0001f986"})
    )
    assert log.meta["bundle"] == "nine?" and log.meta["nine?"] == ["nine?", {"a": "nine?"}]
    assert log.meta["\U0001f986"] == "\U0001f986" and log.complete


@pytest.mark.parametrize("name", ["\ud800", "walk\udcff"])
def test_a_name_that_is_no_text_has_a_question_mark(drive: Path, name: str) -> None:
    log = read_log(described(drive, skills=[name, "stand"]))
    assert log.names("skill")[-1] == name[:-1] + "?"


@pytest.mark.parametrize(
    "moment", ["9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00", "2500-01-01", 7]
)
def test_a_start_that_is_no_date_is_told_of(drive: Path, moment: Any) -> None:
    log = read_log(described(drive, started=moment))
    assert f"it began at {moment!r}, which is no date" in str(log.problem) and log.ticks == 60


def test_names_take_a_reference_a_tick_however_long_they_are(tmp_path: Path) -> None:
    write_log(tmp_path / "a.tdz", {"time": np.arange(100_000) * 0.02}, {"skills": ["x" * 64]})
    log = read_log(tmp_path / "a.tdz")
    tracemalloc.start()
    names = log.names("skill")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert names[-1] == "x" * 64
    assert peak < 30 * 100_000  # as characters of four bytes they would take 256 a tick


def test_small_frames_without_number_take_no_memory_without_bound(tmp_path: Path, cut_short: Path) -> None:
    data = cut_short.read_bytes() + part.frame(b"X", b"") * 10**6
    tracemalloc.start()
    log = spoiled(cut_short, data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert log is not None and log.ticks == 60 and "breaks off at byte" in str(log.problem)
    assert peak < 8 * len(data)
