import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tensordict import NonTensorData, TensorDict

from export.archive import write_archive
from firmware_bridge.archive import read_archive
from hardware.errors import ArchiveError
from microduck.tasks import MicroDuckTask, load_library, stack_tasks, standing_task, tracking_task


@pytest.fixture
def library() -> MicroDuckTask:
    return stack_tasks([standing_task(), tracking_task(0.2)])


def test_library_reads_back_equal_in_training(library: MicroDuckTask, tmp_path: Path) -> None:
    write_archive(library, tmp_path / "tasks.tdz")
    again = load_library(tmp_path / "tasks.tdz")
    assert list(again.name) == ["standing", "tracking+0.20"]
    assert bool((again == library).all())


def test_library_reads_back_on_the_robot(library: MicroDuckTask, tmp_path: Path) -> None:
    write_archive(library, tmp_path / "tasks.tdz")
    read = read_archive(tmp_path / "tasks.tdz")
    assert read["name"] == ["standing", "tracking+0.20"]
    assert read["command_high"].tolist() == [[0.0, 0.0], [pytest.approx(0.2), 0.0]]


def test_archive_holds_numbers_and_json_only(library: MicroDuckTask, tmp_path: Path) -> None:
    write_archive(library, tmp_path / "tasks.tdz")
    with zipfile.ZipFile(tmp_path / "tasks.tdz") as file:
        names = file.namelist()
    assert names and all(name.endswith((".memmap", "meta.json")) for name in names)
    assert [path.name for path in tmp_path.iterdir()] == ["tasks.tdz"]


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)])
def test_empty_leaf_is_kept(shape: tuple[int, ...], tmp_path: Path) -> None:
    write_archive(TensorDict(empty=torch.zeros(shape), full=torch.ones(2)), tmp_path / "a.tdz")
    assert read_archive(tmp_path / "a.tdz")["empty"].shape == shape


def test_bits_survive_that_equality_hides(tmp_path: Path) -> None:
    values = torch.tensor([float("nan"), -0.0, 1e-45, 0.1])
    write_archive(TensorDict(values=values), tmp_path / "a.tdz")
    assert read_archive(tmp_path / "a.tdz")["values"].tobytes() == values.numpy().tobytes()


@pytest.mark.parametrize("value", [object, b"bytes", {"a", "set"}, 3, None], ids=repr)
def test_python_objects_are_refused_before_a_byte_is_written(value: object, tmp_path: Path) -> None:
    data = TensorDict(row=TensorDict(thing=NonTensorData(value)))
    with pytest.raises(
        ArchiveError, match=r"'row/thing' holds a \w+; an archive holds tensors and text only"
    ):
        write_archive(data, tmp_path / "a.tdz")
    assert not list(tmp_path.iterdir())


def test_object_among_the_names_of_a_library_is_refused(library: MicroDuckTask, tmp_path: Path) -> None:
    rows = list(library.unbind(0))
    rows[1].name = Path
    with pytest.raises(ArchiveError, match="'name' holds a type"):
        write_archive(torch.stack(rows), tmp_path / "a.tdz")


def test_type_no_robot_reads_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match=r"'values' is torch\.bfloat16, which no robot reads"):
        write_archive(TensorDict(values=torch.zeros(2, dtype=torch.bfloat16)), tmp_path / "a.tdz")


def without_payload(members: dict[str, bytes]) -> dict[str, bytes]:
    return {name: data for name, data in members.items() if name != "b.memmap"}


def without_key(members: dict[str, bytes]) -> dict[str, bytes]:
    meta = json.loads(members["meta.json"])
    del meta["b"]
    return {**without_payload(members), "meta.json": json.dumps(meta).encode()}


def with_other_bits(members: dict[str, bytes]) -> dict[str, bytes]:
    return {**members, "b.memmap": bytes(8)}


def with_pickle(members: dict[str, bytes]) -> dict[str, bytes]:
    return {**members, "other.pickle": b""}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without_payload, r"payload of 'b' is missing"),
        (without_key, r"a\.tdz has lost 'b'"),
        (with_other_bits, r"holds another 'b'"),
        (with_pickle, r"'other\.pickle' is a pickle"),
    ],
)
def test_damage_names_the_part_and_the_old_file_stays(
    change: Callable[[dict[str, bytes]], dict[str, bytes]],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_archive(TensorDict(old=torch.ones(1)), tmp_path / "a.tdz")
    before = (tmp_path / "a.tdz").read_bytes()
    save = TensorDict.save

    def save_damaged(self: TensorDict, path: Path, archive: bool) -> None:
        save(self, path, archive=archive)
        with zipfile.ZipFile(path) as file:
            members = change({name: file.read(name) for name in file.namelist()})
        with zipfile.ZipFile(path, "w") as file:
            for name, data in members.items():
                file.writestr(name, data)

    monkeypatch.setattr(TensorDict, "save", save_damaged)
    with pytest.raises(ArchiveError, match=message):
        write_archive(TensorDict(a=torch.ones(2), b=torch.ones(2)), tmp_path / "a.tdz")
    assert (tmp_path / "a.tdz").read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.tdz"]
