from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from firmware_bridge.skills.archive import MAX_MEMBERS, parse_archive, read_archive
from hardware.errors import ArchiveError


def pack(members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as file:
        for name, data in members.items():
            file.writestr(name, data)
    return buffer.getvalue()


def one_leaf(**changes: object) -> dict[str, bytes]:
    """Members of an archive with the single leaf `x` = (1.0, -2.0) in float32."""
    entry = {"device": "cpu", "shape": [2], "dtype": "torch.float32", "is_nested": False, **changes}
    meta = {"x": entry, "shape": [], "device": "cpu", "_type": "TensorDict"}
    return {"meta.json": json.dumps(meta).encode(), "x.memmap": bytes.fromhex("0000803f000000c0")}


def test_a_leaf_is_read_from_its_little_endian_bytes() -> None:
    assert parse_archive(pack(one_leaf()), "a")["x"].tolist() == [1.0, -2.0]


def test_arrays_of_an_archive_cannot_be_changed() -> None:
    array = parse_archive(pack(one_leaf()), "a")["x"]
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 5


def test_archives_of_the_trainers_library_read_back(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    tensordict = pytest.importorskip("tensordict")

    @tensordict.tensorclass
    class Task:
        command_low: torch.Tensor
        weights: tensordict.TensorDict
        ids: torch.Tensor
        flags: torch.Tensor
        nothing: torch.Tensor
        name: str

    def task(name: str, low: float) -> Task:
        return Task(
            command_low=torch.tensor([low, -1.5]),
            weights=tensordict.TensorDict({"alive": torch.tensor(0.25, dtype=torch.float64)}),
            ids=torch.tensor(7),
            flags=torch.tensor(low > 0),
            nothing=torch.zeros(0, 3),
            name=name,
            batch_size=[],
        )

    torch.stack([task("walk", 0.5), task("stand", -2.0)]).save(str(tmp_path / "tasks.tdz"))
    tree = read_archive(tmp_path / "tasks.tdz")
    assert tree["name"] == ["walk", "stand"]
    assert tree["command_low"].tolist() == [[0.5, -1.5], [-2.0, -1.5]]
    assert tree["weights"]["alive"].tolist() == [0.25, 0.25]
    assert (tree["ids"].tolist(), tree["flags"].tolist()) == ([7, 7], [True, False])
    assert tree["nothing"].shape == (2, 0, 3)


def test_a_pickle_of_the_trainers_library_is_refused_by_name(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    tensordict = pytest.importorskip("tensordict")
    tree = tensordict.TensorDict(thing=tensordict.NonTensorData(Path))  # a class has no JSON form
    tree.save(str(tmp_path / "x.tdz"))
    with pytest.raises(ArchiveError, match=r"thing/other\.pickle.*pickle"):
        read_archive(tmp_path / "x.tdz")


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)])
def test_empty_leaves_are_kept_without_a_payload(shape: tuple[int, ...]) -> None:
    members = one_leaf(shape=list(shape))
    del members["x.memmap"]
    assert parse_archive(pack(members), "a")["x"].shape == shape


def test_text_leaves_are_read_from_json() -> None:
    members = {
        "meta.json": b'{"t": {"type": "NonTensorData"}, "shape": []}',
        "t/meta.json": b'{"data": "text", "_is_non_tensor": true}',
    }
    assert parse_archive(pack(members), "a") == {"t": "text"}


def test_a_removed_payload_is_an_error_that_names_the_leaf() -> None:
    members = one_leaf()
    del members["x.memmap"]
    with pytest.raises(ArchiveError, match="payload of 'x' is missing"):
        parse_archive(pack(members), "a")


@pytest.mark.parametrize("payload", [b"", bytes(7), bytes(12)])
def test_a_payload_of_another_size_is_an_error_that_names_the_leaf(payload: bytes) -> None:
    with pytest.raises(ArchiveError, match=f"'x' has {len(payload)} bytes .* needs 8"):
        parse_archive(pack({**one_leaf(), "x.memmap": payload}), "a")


def test_a_removed_level_is_an_error_that_names_it() -> None:
    members = {"meta.json": b'{"inner": {"type": "TensorDict"}, "shape": []}'}
    with pytest.raises(ArchiveError, match="'inner' is missing"):
        parse_archive(pack(members), "a")


def test_an_archive_cut_in_half_is_refused(tmp_path: Path) -> None:
    data = pack(one_leaf())
    path = tmp_path / "half.tdz"
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(ArchiveError, match=r"half\.tdz.*not a whole"):
        read_archive(path)


def test_a_missing_archive_is_refused_by_path(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match=r"none\.tdz is not a file"):
        read_archive(tmp_path / "none.tdz")


@pytest.mark.parametrize("name", ["../x.memmap", "/etc/x", "a/../../x", "a\\x"])
def test_members_that_point_outside_are_refused(name: str) -> None:
    with pytest.raises(ArchiveError, match="points outside"):
        parse_archive(pack({**one_leaf(), name: b"1"}), "a")


def test_compressed_members_are_refused_before_they_are_unpacked() -> None:
    bomb = pack({**one_leaf(), "x.memmap": bytes(8_000_000)}, zipfile.ZIP_DEFLATED)
    assert len(bomb) < 50_000
    with pytest.raises(ArchiveError, match="compressed"):
        parse_archive(bomb, "a")


def test_too_many_members_are_refused() -> None:
    many = {f"m{i}": b"" for i in range(MAX_MEMBERS)}
    with pytest.raises(ArchiveError, match=f"{MAX_MEMBERS + 2} members"):
        parse_archive(pack({**one_leaf(), **many}), "a")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_members_of_one_name_are_refused() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for data in (b"1", b"2"):
            file.writestr("x.memmap", data)
    with pytest.raises(ArchiveError, match="two members of one name"):
        parse_archive(buffer.getvalue(), "a")


def test_endless_nesting_is_refused() -> None:
    level = b'{"a": {"type": "TensorDict"}, "shape": []}'
    members = {f"{'a/' * depth}meta.json": level for depth in range(50)}
    with pytest.raises(ArchiveError, match="deeper than 8"):
        parse_archive(pack(members), "a")


def test_nested_json_that_would_overflow_the_stack_is_refused() -> None:
    with pytest.raises(ArchiveError, match="not valid JSON"):
        parse_archive(pack({"meta.json": b"[" * 200_000}), "a")


@pytest.mark.parametrize("dtype", ["torch.bfloat16", "O", "object", 5, ["torch.float32"]])
def test_an_unknown_type_is_refused_with_the_known_ones(dtype: object) -> None:
    with pytest.raises(ArchiveError, match=r"'x' has the type .*torch\.float32"):
        parse_archive(pack(one_leaf(dtype=dtype)), "a")


@pytest.mark.parametrize("shape", [None, "2", [2.0], [-2], [True, 2], [10**30], [1] * 9, {"n": 2}])
def test_a_shape_that_is_none_is_refused(shape: object) -> None:
    with pytest.raises(ArchiveError, match="'x' has the shape"):
        parse_archive(pack(one_leaf(shape=shape)), "a")


def test_data_other_than_text_is_refused() -> None:
    members = {"meta.json": b'{"t": {"type": "NonTensorData"}}', "t/meta.json": b'{"data": {"a": 1}}'}
    with pytest.raises(ArchiveError, match="'t' must be a text"):
        parse_archive(pack(members), "a")


def test_a_flipped_byte_never_gives_anything_but_the_leaf_or_a_refusal() -> None:
    data = pack(one_leaf())
    rng = np.random.default_rng(0)
    refused = 0
    for place in range(len(data)):
        broken = bytearray(data)
        broken[place] ^= int(rng.integers(1, 256))
        try:
            tree = parse_archive(bytes(broken), "a")
        except ArchiveError:
            refused += 1
        else:
            assert tree["x"].tolist() == [1.0, -2.0]
    assert refused > len(data) // 4
