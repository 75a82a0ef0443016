"""Recording beside the loop: what is kept, and what is given up so that the drive never has to be."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from firmware_bridge.drive.summary import Tick
from firmware_bridge.recording import recorder as recorder_module
from firmware_bridge.recording import space
from firmware_bridge.recording.log import read_log
from firmware_bridge.recording.recorder import Dealings, Recorder, create
from firmware_bridge.recording.space import Space
from hardware.errors import ArchiveError, ConfigError

Make = Callable[..., Tick]


class Disk:
    """Makes files that fail or wait as a test says; what they took is on the real disk.

    Args:
        room: bytes until the disk is full.
    """

    def __init__(self, room: float = float("inf")) -> None:
        self.room = room
        self.works = threading.Event()
        self.works.set()

    def create(self, path: Path) -> Any:
        file = create(path)

        def write(data: bytes) -> int:
            self.works.wait()
            self.room -= len(data)
            if self.room < 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return file.write(data)

        return SimpleNamespace(write=write, fileno=file.fileno, close=file.close)


def test_every_value_of_a_tick_is_in_the_recording(tmp_path: Path, record: Any, make_tick: Make) -> None:
    log = read_log(record(tmp_path / "a.tdz", [make_tick(n) for n in range(70)]))
    assert (log.ticks, log.complete, log.problem) == (70, True, None)
    third = {name: array[3] for name, array in log.arrays.items()}
    assert third["time"] == 100.06 and log.seconds[3] == pytest.approx(0.06)
    assert third["position"].tolist() == [3 + j / 16 for j in range(14)]
    assert third["requested"].tolist() == [3.5 + j / 16 for j in range(14)]
    assert third["applied"].tolist() == [3.25 + j / 16 for j in range(14)]
    assert set(third["velocity"]) == {-1.25} and set(third["current"]) == {0.125}
    assert third["angular_velocity"].tolist() == [0.5, 0.25, 3] and third["gravity"].tolist() == [0, 0, -1]
    assert third["observation"].tolist() == list(range(55)) and set(third["action"]) == {0.75}
    assert third["command_requested"] == pytest.approx([0.2, 0, 0.3])
    assert third["command"] == pytest.approx([0.15, 0, 0.3])
    assert third["head"] == pytest.approx([0, 0.1, 0.2, 0.3])
    assert third["stages"] == pytest.approx([0.003, 0.0002, 0.001, 0.0158])
    assert third["voltage"] == pytest.approx(np.full(14, 7.4), abs=0.05)  # half a step of the servo
    assert third["temperature"].tolist() == list(range(30, 44))
    assert third["fresh"] and (third["periods"], third["missed"], third["bus_errors"]) == (1, 0, 0)
    assert (log.names("mode")[3], log.names("skill")[3]) == ("run", "walk")


def test_what_a_tick_did_not_have_is_nan_and_each_mode_is_told_once_with_its_reason(drive: Path) -> None:
    log = read_log(drive)
    assert log.names("mode").tolist() == ["limp"] * 10 + ["rise"] * 20 + ["run"] * 30
    known = {name: np.isfinite(log.arrays[name]).all(axis=1) for name in ("position", "applied", "action")}
    assert known["position"].tolist() == known["applied"].tolist() == [False] * 10 + [True] * 50
    assert known["action"].tolist() == [False] * 30 + [True] * 30
    assert np.isnan(log.arrays["observation"][:30]).all() and np.isnan(log.arrays["voltage"][:10]).all()
    told = [(event["mode"], event["reason"], event["time"]) for event in log.meta["events"]]
    assert told == [
        ("limp", "waiting for START", 100.0),
        ("rise", "torque on", 100.2),
        ("run", "the policy does what is asked", 100.6),
    ]


def test_joints_that_report_a_fault_are_marked(tmp_path: Path, record: Any, make_tick: Make) -> None:
    sample = make_tick(0).sample
    assert sample is not None
    hot = sample._replace(alerts=("left_knee", "head_yaw"))
    log = read_log(record(tmp_path / "a.tdz", [make_tick(0), make_tick(1, sample=hot)]))
    assert np.flatnonzero(log.arrays["alerts"][1]).tolist() == [3, 7] and not log.arrays["alerts"][0].any()


def test_missed_ticks_show_as_more_than_one_period(tmp_path: Path, record: Any, make_tick: Make) -> None:
    ticks = [make_tick(0, missed=5), make_tick(1, missed=5), make_tick(4, missed=7), make_tick(5, missed=7)]
    assert read_log(record(tmp_path / "a.tdz", ticks)).arrays["periods"].tolist() == [1, 1, 3, 1]


def test_the_append_only_file_gives_way_to_the_finished_one(
    tmp_path: Path, meta: dict[str, Any], make_tick: Make
) -> None:
    news: list[str] = []
    with Recorder(tmp_path / "a.tdz", meta, dealings=Dealings(news.append)) as recorder:
        assert [path.name for path in tmp_path.iterdir()] == ["a.tdz.part"]
        recorder.add(make_tick(0))
    assert [path.name for path in tmp_path.iterdir()] == ["a.tdz"]
    assert len(news) == 1 and news[0].startswith("recorded 1 ticks, 0.0 MB: ")


def test_a_drive_without_a_tick_leaves_no_file(tmp_path: Path, record: Any) -> None:
    record(tmp_path / "a.tdz", [])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a.tdz", "a.tdz.part"])
def test_a_recording_that_exists_is_never_written_over(
    tmp_path: Path, meta: dict[str, Any], name: str
) -> None:
    (tmp_path / name).write_text("precious")
    with pytest.raises(ConfigError, match=f"{name} exists already"):
        Recorder(tmp_path / "a.tdz", meta).__enter__()
    assert (tmp_path / name).read_text() == "precious"


def test_a_folder_that_is_not_there_is_an_error_before_the_drive(
    tmp_path: Path, meta: dict[str, Any]
) -> None:
    with pytest.raises(ConfigError, match="No such file or directory; choose another"):
        Recorder(tmp_path / "no" / "a.tdz", meta).__enter__()


def test_a_disk_that_is_full_from_the_start_is_only_told_of(
    tmp_path: Path, meta: dict[str, Any], make_tick: Make
) -> None:
    def full(path: Path) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    news: list[str] = []
    with Recorder(tmp_path / "a.tdz", meta, dealings=Dealings(news.append, create=full)) as recorder:
        recorder.add(make_tick(0))
    assert news == ["the recording ends here, the drive goes on: No space left on device"]


def test_a_disk_that_runs_full_ends_the_recording_with_one_line_and_keeps_what_was_written(
    tmp_path: Path, meta: dict[str, Any], make_tick: Make
) -> None:
    disk, news = Disk(room=60_000), []
    with Recorder(tmp_path / "a.tdz", meta, dealings=Dealings(news.append, create=disk.create)) as recorder:
        for number in range(400):
            recorder.add(make_tick(number))
    assert len([line for line in news if "ends here" in line]) == 1
    log = read_log(tmp_path / "a.tdz")
    assert log.ticks == 75  # three blocks of 25 ticks of 672 bytes fit, a fourth does not
    assert log.arrays["position"][-1, 0] == 74
    assert log.problem == "it ended before its drive did: 'No space left on device'"


def test_a_recording_stops_at_the_size_it_may_have(
    tmp_path: Path, meta: dict[str, Any], make_tick: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder_module, "MOST_WAITING", 10_000)
    news: list[str] = []
    with Recorder(tmp_path / "a.tdz", meta, Space(most_mb=1.0), Dealings(news.append)) as recorder:
        for number in range(2000):
            recorder.add(make_tick(number))
    log = read_log(tmp_path / "a.tdz")
    assert 1400 < log.ticks < 1_000_000 / 672
    assert news[0].endswith("the drive goes on: it has reached 1 MB, the most it may take")


def test_room_is_left_on_the_disk_for_others_and_for_the_finished_file(
    tmp_path: Path, meta: dict[str, Any], make_tick: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def disk_usage(folder: Path) -> Any:
        return SimpleNamespace(free=5_090_000 - sum(path.stat().st_size for path in folder.iterdir()))

    monkeypatch.setattr(space, "shutil", SimpleNamespace(disk_usage=disk_usage))
    news: list[str] = []
    with Recorder(tmp_path / "a.tdz", meta, Space(keep_free_mb=5.0), Dealings(news.append)) as recorder:
        for number in range(400):
            recorder.add(make_tick(number))
    # 90 kB may be used: half by the append-only file, half by the finished one that is made of it.
    assert 25 * 672 < (tmp_path / "a.tdz").stat().st_size < 45_000
    assert news[0].endswith("the disk has 5 MB left, of which 5 MB stay free")


def test_a_disk_that_stalls_costs_ticks_and_not_memory(
    tmp_path: Path, meta: dict[str, Any], make_tick: Make
) -> None:
    disk, news = Disk(), []
    disk.works.clear()
    with Recorder(tmp_path / "a.tdz", meta, dealings=Dealings(news.append, create=disk.create)) as recorder:
        for number in range(700):
            recorder.add(make_tick(number))
        assert recorder.dropped == 200
        disk.works.set()
    assert news[0] == "the disk is too slow for the recording, which leaves ticks out"
    assert "recorded 500 ticks, without 200 for which" in news[1]
    log = read_log(tmp_path / "a.tdz")
    assert log.arrays["position"][:, 0].tolist() == list(range(500)) and log.meta["dropped"] == 200


def test_dropped_ticks_count_as_periods(
    tmp_path: Path, meta: dict[str, Any], make_tick: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder_module, "MOST_WAITING", 3)
    disk = Disk()
    disk.works.clear()
    with Recorder(tmp_path / "a.tdz", meta, dealings=Dealings(create=disk.create)) as recorder:
        for number in range(8):
            recorder.add(make_tick(number))
        disk.works.set()
        before = -1
        while recorder.dropped != before:  # until there is room again
            before = recorder.dropped
            time.sleep(0.01)
            recorder.add(make_tick(8))
    log = read_log(tmp_path / "a.tdz")
    assert log.arrays["position"][:, 0].tolist() == [0, 1, 2, 8]
    assert log.arrays["periods"].tolist() == [1, 1, 1, 1 + recorder.dropped]


def test_a_user_who_gives_up_keeps_the_append_only_file_with_all_its_ticks(
    tmp_path: Path, meta: dict[str, Any], make_tick: Make
) -> None:
    news: list[str] = []
    dealings = Dealings(news.append, give_up=lambda: True)
    with Recorder(tmp_path / "a.tdz", meta, dealings=dealings) as recorder:
        for number in range(30):
            recorder.add(make_tick(number))
    assert [path.name for path in tmp_path.iterdir()] == ["a.tdz.part"]
    assert "interrupted" in news[0] and "a.tdz.part has 30 of its ticks; `duck convert`" in news[0]
    log = read_log(tmp_path / "a.tdz.part")
    assert log.ticks == 30 and not log.complete and log.problem == "its drive never ended it"


def test_a_finished_file_that_cannot_be_made_leaves_the_append_only_one(
    tmp_path: Path, meta: dict[str, Any], make_tick: Make
) -> None:
    news: list[str] = []
    with Recorder(tmp_path / "a.tdz", meta, dealings=Dealings(news.append)) as recorder:
        recorder.add(make_tick(0))
        (tmp_path / "a.tdz").mkdir()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tdz", "a.tdz.part"]
    assert "a.tdz was not made (a file of that name has come there meanwhile)" in news[0]
    assert read_log(tmp_path / "a.tdz.part").ticks == 1


def no_links(*names: Any) -> None:
    raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))  # what link() gives on a VFAT stick


@pytest.mark.parametrize("links", [True, False])
def test_a_file_that_comes_there_during_the_drive_stays_and_so_do_the_ticks(
    tmp_path: Path, meta: dict[str, Any], make_tick: Make, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    if not links:
        monkeypatch.setattr(os, "link", no_links)
    news: list[str] = []
    with Recorder(tmp_path / "a.tdz", meta, dealings=Dealings(news.append)) as recorder:
        recorder.add(make_tick(0))
        (tmp_path / "a.tdz").write_text("precious")
    assert (tmp_path / "a.tdz").read_text() == "precious"
    assert "a file of that name has come there meanwhile" in news[0] and "`duck convert`" in news[0]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tdz", "a.tdz.part"]
    assert read_log(tmp_path / "a.tdz.part").ticks == 1


def test_a_disk_without_hard_links_gets_the_finished_file(
    tmp_path: Path, record: Any, make_tick: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", no_links)
    assert read_log(record(tmp_path / "a.tdz", [make_tick(0)])).complete
    assert [path.name for path in tmp_path.iterdir()] == ["a.tdz"]


def test_a_link_to_nothing_is_no_place_for_a_recording(tmp_path: Path, meta: dict[str, Any]) -> None:
    (tmp_path / "a.tdz").symlink_to("gone")
    with pytest.raises(ConfigError, match=r"a\.tdz exists already"):
        Recorder(tmp_path / "a.tdz", meta).__enter__()


def test_an_append_only_file_that_was_removed_meanwhile_is_not_called_readable(
    tmp_path: Path, meta: dict[str, Any], make_tick: Make
) -> None:
    news: list[str] = []
    path = tmp_path / "a.tdz.part"
    with Recorder(tmp_path / "a.tdz", meta, dealings=Dealings(news.append)) as recorder:
        recorder.add(make_tick(0))
        path.unlink()
    assert "was not made" in news[0] and news[0].endswith(
        "its ticks are lost, none can be read in " + str(path)
    )


def test_a_finished_file_is_not_denied_when_the_append_only_one_is_removed_meanwhile(
    tmp_path: Path, meta: dict[str, Any], make_tick: Make
) -> None:
    news: list[str] = []

    def removed() -> bool:
        (tmp_path / "a.tdz.part").unlink(missing_ok=True)
        return False

    with Recorder(tmp_path / "a.tdz", meta, dealings=Dealings(news.append, removed)) as recorder:
        recorder.add(make_tick(0))
    assert len(news) == 1 and news[0].startswith("recorded 1 ticks") and read_log(tmp_path / "a.tdz").complete


def test_ticks_behind_a_spoiled_place_are_not_thrown_away_with_the_append_only_file(
    tmp_path: Path, meta: dict[str, Any], make_tick: Make
) -> None:
    news: list[str] = []
    path = tmp_path / "a.tdz.part"
    with Recorder(tmp_path / "a.tdz", meta, dealings=Dealings(news.append)) as recorder:
        for number in range(50):
            recorder.add(make_tick(number))
        while path.stat().st_size < 50 * 672:
            time.sleep(0.01)
        with path.open("r+b") as file:
            file.seek(30 * 672)
            file.write(b"spoiled")
    assert "a.tdz was not made (breaks off at byte" in news[0] and "a.tdz.part has 25 of its ticks" in news[0]
    assert read_log(path).ticks == 25 and path.stat().st_size > 50 * 672


@pytest.mark.parametrize("ticks_after", [0, 25])
def test_an_append_only_file_that_was_emptied_is_not_called_readable(
    tmp_path: Path, meta: dict[str, Any], make_tick: Make, ticks_after: int
) -> None:
    news: list[str] = []
    path = tmp_path / "a.tdz.part"
    with Recorder(tmp_path / "a.tdz", meta, dealings=Dealings(news.append)) as recorder:
        for number in range(25):
            recorder.add(make_tick(number))
        while path.stat().st_size < 25 * 672:
            time.sleep(0.01)
        os.truncate(path, 0)
        for number in range(ticks_after):  # what is written behind a gap makes the file as large as ever
            recorder.add(make_tick(number))
    assert "a.tdz was not made" in news[0]
    assert news[0].endswith(f"its ticks are lost, none can be read in {path}") and "convert" not in news[0]
    with pytest.raises(ArchiveError):
        read_log(path)


def test_ticks_that_a_disk_that_hangs_has_taken_can_be_read(
    tmp_path: Path, meta: dict[str, Any], make_tick: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder_module, "CLOSE_S", 0.1)
    disk, news = Disk(), []
    path = tmp_path / "a.tdz.part"
    with Recorder(tmp_path / "a.tdz", meta, dealings=Dealings(news.append, create=disk.create)) as recorder:
        for number in range(25):
            recorder.add(make_tick(number))
        while recorder._readable < 25:
            time.sleep(0.01)
        disk.works.clear()
        recorder.add(make_tick(25))
    disk.works.set()
    assert f"(the disk takes nothing more); {path} has 25 of its ticks" in news[0]
    assert read_log(path).ticks >= 25


def test_a_file_that_somebody_spoiled_meanwhile_is_told_of(
    tmp_path: Path, meta: dict[str, Any], make_tick: Make
) -> None:
    news: list[str] = []
    with Recorder(tmp_path / "a.tdz", meta, dealings=Dealings(news.append)) as recorder:
        recorder.add(make_tick(0))
        while not (tmp_path / "a.tdz.part").stat().st_size:
            time.sleep(0.01)
        with (tmp_path / "a.tdz.part").open("r+b") as file:
            file.seek(20)
            file.write(b"spoiled")
    assert "a.tdz was not made (nothing of this recording can be read (breaks off at byte 8" in news[0]
    assert news[0].endswith("its ticks are lost, none can be read in " + str(tmp_path / "a.tdz.part"))


@pytest.mark.parametrize("limits", [{"most_mb": 0.5}, {"most_mb": 2000.0}, {"keep_free_mb": -1.0}])
def test_limits_of_the_room_are_checked(limits: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=next(iter(limits))):
        Space(**limits)
