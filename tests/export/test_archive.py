import json
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from export import archive
from export.archive import write_archive
from firmware_bridge.skills.archive import read_archive
from hardware.errors import ArchiveError, TaskError
from microduck.tasks import (
    MicroDuckTask,
    load_library,
    save_library,
    stack_tasks,
    standing_task,
    tracking_task,
)

Members = dict[str, bytes]


@pytest.fixture
def library() -> MicroDuckTask:
    return stack_tasks([standing_task(turn_rate=-0.0), tracking_task(0.2)])


def members_of(path: Path) -> Members:
    with zipfile.ZipFile(path) as file:
        return {name: file.read(name) for name in file.namelist()}


def test_library_reads_back_equal_in_training(library: MicroDuckTask, tmp_path: Path) -> None:
    write_archive(library, tmp_path / "tasks.tdz")
    again = load_library(tmp_path / "tasks.tdz")
    assert again.names == ("standing", "tracking+0.20")
    assert bool((again == library).all())


def test_library_reads_back_on_the_robot(library: MicroDuckTask, tmp_path: Path) -> None:
    write_archive(library, tmp_path / "tasks.tdz")
    read = read_archive(tmp_path / "tasks.tdz")
    assert read["name"] == ["standing", "tracking+0.20"]
    assert read["command_high"].tolist() == [[0.0, 0.0], [pytest.approx(0.2), 0.0]]


def test_archive_holds_numbers_and_json_only(library: MicroDuckTask, tmp_path: Path) -> None:
    write_archive(library, tmp_path / "tasks.tdz")
    names = set(members_of(tmp_path / "tasks.tdz"))
    assert "library.json" in names
    assert all(name.endswith((".memmap", "meta.json")) for name in names - {"library.json"})
    assert [path.name for path in tmp_path.iterdir()] == ["tasks.tdz"]


def test_bits_survive_that_equality_hides(tmp_path: Path) -> None:
    row = standing_task(pose_std=-0.0, turn_rate=1e-45, turn_rate_std=0.1)
    write_archive(row, tmp_path / "tasks.tdz")
    params = read_archive(tmp_path / "tasks.tdz")["params"]
    for name, value in (("pose_std", -0.0), ("turn_rate", 1e-45), ("turn_rate_std", 0.1)):
        assert params[name].tobytes() == struct.pack("<f", value)


def test_library_that_is_not_valid_is_refused_before_a_byte_is_written(
    library: MicroDuckTask, tmp_path: Path
) -> None:
    rows = list(library.unbind(0))
    rows[1].name = Path
    with pytest.raises(TaskError, match="a task is named <class"):
        write_archive(torch.stack(rows), tmp_path / "tasks.tdz")
    assert not list(tmp_path.iterdir())


def without_payload(members: Members) -> Members:
    return {name: data for name, data in members.items() if name != "_tensordict/weight.memmap"}


def without_leaf(members: Members) -> Members:
    meta = json.loads(members["_tensordict/meta.json"])
    del meta["weight"]
    return {**without_payload(members), "_tensordict/meta.json": json.dumps(meta).encode()}


def with_other_bits(members: Members) -> Members:
    return {**members, "_tensordict/params/pose_std.memmap": bytes(8)}


def with_another_zero(members: Members) -> Members:
    return {**members, "_tensordict/params/turn_rate.memmap": bytes(8)}


def with_other_names(members: Members) -> Members:
    return {**members, "_tensordict/name/meta.json": b'{"data": ["standing", "walking"]}'}


def with_pickle(members: Members) -> Members:
    return {**members, "other.pickle": b""}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without_payload, r"payload of '_tensordict/weight' is missing"),
        (without_leaf, r"tasks\.tdz has lost 'weight'"),
        (with_other_bits, r"tasks\.tdz holds another 'params/pose_std'"),
        (with_another_zero, r"tasks\.tdz holds another 'params/turn_rate'"),
        (with_other_names, r"tasks\.tdz holds another 'name'"),
        (with_pickle, r"'other\.pickle' is a pickle"),
    ],
)
def test_damage_names_the_part_and_the_old_file_stays(
    change: Callable[[Members], Members],
    message: str,
    library: MicroDuckTask,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_archive(standing_task(), tmp_path / "tasks.tdz")
    before = (tmp_path / "tasks.tdz").read_bytes()

    def save_damaged(tasks: MicroDuckTask, path: Path) -> None:
        save_library(tasks, path)
        members = change(members_of(path))
        with zipfile.ZipFile(path, "w") as file:
            for name, data in members.items():
                file.writestr(name, data)

    monkeypatch.setattr(archive, "save_library", save_damaged)
    with pytest.raises(ArchiveError, match=message):
        write_archive(library, tmp_path / "tasks.tdz")
    assert (tmp_path / "tasks.tdz").read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["tasks.tdz"]
