"""Archives of libraries that are damaged, foreign or of another time are refused, or told, by name."""

import json
import random
import zipfile

import numpy as np
import pytest

from hardware import contract
from hardware.errors import ArchiveError, TaskError
from microduck import tasks

INNER, PARAMS, NAMES = (f"_tensordict/{level}meta.json" for level in ("", "params/", "name/"))


@pytest.fixture
def library():
    return tasks.stack_tasks([tasks.tracking_task(0.2), tasks.jump_task()])


@pytest.fixture
def path(library, tmp_path):
    tasks.save_library(library, tmp_path / "two.tdz")
    return tmp_path / "two.tdz"


def members_of(path):
    with zipfile.ZipFile(path) as file:
        return {name: file.read(name) for name in file.namelist()}


@pytest.fixture
def change(path):
    """Writes the archive again with some members changed; None removes one."""

    def write(members):
        old = members_of(path)
        with zipfile.ZipFile(path, "w") as file:
            for name, data in {**old, **members}.items():
                if data is not None:
                    file.writestr(name, data)

    return write


def edit(path, member, **values):
    """Return a member's JSON with some of its values changed; None removes one."""
    data = json.loads(members_of(path)[member])
    changed = {key: value for key, value in {**data, **values}.items() if value is not None}
    return json.dumps(changed).encode()


def test_another_contract_is_told_with_both_digests(change, library, path, caplog):
    change({"library.json": edit(path, "library.json", contract_digest="0" * 64)})
    assert bool((tasks.load_library(path) == library).all())
    ours = contract.digest(contract.foundation())
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert f"made under contract {'0' * 64}, this toolkit has {ours}" in record.getMessage()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"schema": 2}, "library.json has the schema 2, and this toolkit reads 1 to 1; update the toolkit"),
        ({"schema": "1"}, "has the schema '1'"),
        ({"schema": None}, "has the schema None"),
        ({"reward_terms": ["pose"]}, "leaf 'reward_terms' and library.json name other terms"),
        ({"reward_terms": "pose"}, "library.json: 'reward_terms' must be a list of names"),
        ({"params": [["pose_std"]]}, "library.json: 'params' must be a list of names"),
        ({"params": []}, r"leaves and library.json differ in the parameters \['air_time_max', "),
        ({"contract_digest": 5}, "contract_digest 5; it must be a SHA-256"),
    ],
)
def test_notes_that_do_not_fit_are_refused(values, message, change, path):
    change({"library.json": edit(path, "library.json", **values)})
    with pytest.raises(ArchiveError, match=rf"two\.tdz: .*{message}"):
        tasks.load_library(path)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"_tensordict/weight.memmap": None}, "payload of '_tensordict/weight' is missing"),
        ({"_tensordict/params/pose_std.memmap": None}, "payload of '_tensordict/params/pose_std' is missing"),
        ({"_tensordict/weight.memmap": bytes(12)}, "'_tensordict/weight' has 12 bytes"),
        ({NAMES: None}, "'_tensordict/name' is missing"),
        ({PARAMS: None}, "'_tensordict/params' is missing"),
        ({INNER: None}, "holds .*_tensordict/command_low.memmap.*, which belong to no leaf"),
        ({"meta.json": None}, "'the archive' is missing: no meta.json"),
        ({"_tensordict/params/other.pickle": b"cos"}, "'_tensordict/params/other.pickle' is a pickle"),
        ({"Other.PICKLE": b"cos"}, "'Other.PICKLE' is a pickle"),
        ({"model.Pt": b"cos"}, "'model.Pt' is a pickle"),
        ({"notes.txt": b"hello"}, r"holds \['notes.txt'\], which belong to no leaf"),
        ({"library.json": b"[]"}, "library.json must hold a JSON object, not list"),
        ({NAMES: b'{"data": ["a", 5]}'}, "'_tensordict/name' must be a text or a list of texts"),
        ({NAMES: b'{"data": []}'}, "leaf 'name' holds no names"),
        ({NAMES: b'{"data": ["a"]}'}, r"leaf 'reward_weights' is float32 of shape \(2, .*numbers, \(1, "),
    ],
)  # fmt: skip
def test_what_is_missing_or_foreign_is_refused_by_name(members, message, change, path):
    change(members)
    with pytest.raises(ArchiveError, match=rf"two\.tdz: .*{message}"):
        tasks.load_library(path)


@pytest.mark.parametrize(
    ("leaf", "payload", "message"),
    [
        ("weight", np.ones(2, np.int32), r"'weight' is int32 of shape \(2,\); .* floating-point"),
        ("weight", np.ones((2, 1), np.float32), r"'weight' is float32 of shape \(2, 1\); .* numbers, \(2,\)"),
        ("command_low", np.ones(4, np.float32), r"'command_low' is float32 of shape \(4,\); .* \(2, 2\)"),
        ("reward_weights", np.ones((1, 62), np.float32), r"'reward_weights' is .*\(1, 62\).* \(2, 62\)"),
        ("params", np.ones(2, np.float32), "'params' holds no parameters by name"),
        ("name", np.ones(2, np.float32), "'name' holds no names"),
        ("reward_terms", np.ones(2, np.float32), "'reward_terms' does not hold one text for each task"),
    ],
)  # fmt: skip
def test_a_leaf_of_another_type_or_shape_is_refused_by_name(leaf, payload, message, change, path):
    entry = {"shape": list(payload.shape), "dtype": f"torch.{payload.dtype}", "is_nested": False}
    inside = [name for name in members_of(path) if name.startswith(f"_tensordict/{leaf}/")]
    change(
        {
            **dict.fromkeys(inside),
            INNER: edit(path, INNER, **{leaf: entry}),
            f"_tensordict/{leaf}.memmap": payload.tobytes(),
        }
    )
    with pytest.raises(ArchiveError, match=rf"two\.tdz: leaf {message}"):
        tasks.load_library(path)


def test_a_leaf_of_higher_precision_is_rounded(change, library, path):
    entry = {"shape": [2], "dtype": "torch.float64", "is_nested": False}
    payload = np.array([1.0, 0.1]).tobytes()
    change({INNER: edit(path, INNER, weight=entry), "_tensordict/weight.memmap": payload})
    assert tasks.load_library(path).weight.numpy().tolist() == np.array([1.0, 0.1], np.float32).tolist()


def test_a_field_that_is_missing_or_unknown_is_refused_by_name(change, path):
    entry = json.loads(members_of(path)[INNER])["weight"]
    payload = members_of(path)["_tensordict/weight.memmap"]
    renamed = edit(path, INNER, weight=None, wait=entry)
    change({INNER: renamed, "_tensordict/weight.memmap": None, "_tensordict/wait.memmap": payload})
    with pytest.raises(ArchiveError, match=r"leaves \['weight'\] are missing and \['wait'\] are no fields"):
        tasks.load_library(path)


@pytest.mark.parametrize(
    ("leaf", "message"),
    [
        ("gait_frequency_hz", "gait_frequency_hz of task 'jump' is nan; it must be finite"),
        ("params/pose_std", "pose_std of task 'jump' is nan; it must be finite"),
    ],
)
def test_a_number_that_is_not_finite_is_refused_by_task_and_field(leaf, message, change, path):
    change({f"_tensordict/{leaf}.memmap": np.array([1, np.nan], np.float32).tobytes()})
    with pytest.raises(TaskError, match=rf"two\.tdz: {message}"):
        tasks.load_library(path)


def test_a_flipped_bit_of_a_payload_is_refused_by_the_leafs_name(path):
    data = bytearray(path.read_bytes())
    payload = np.array([1.8913, 2.0], np.float32).tobytes()  # the two clocks
    data[data.index(payload)] ^= 1
    path.write_bytes(data)
    with pytest.raises(ArchiveError, match=r"two\.tdz: .*'_tensordict/gait_frequency_hz\.memmap'"):
        tasks.load_library(path)


def test_no_flipped_bit_changes_what_is_loaded(library, path):
    data, rng, refused = path.read_bytes(), random.Random(0), 0
    # Half of the bits are in the directory at the end, where a wrong one can hide members.
    directory = data.index(b"PK\x01\x02") * 8
    bits = [rng.randrange(len(data) * 8) for _ in range(150)] + [
        rng.randrange(directory, len(data) * 8) for _ in range(150)
    ]
    for bit in bits:
        broken = bytearray(data)
        broken[bit // 8] ^= 1 << bit % 8
        path.write_bytes(broken)
        try:
            again = tasks.load_library(path)
        except (ArchiveError, TaskError):
            refused += 1
        else:
            assert bool((again == library).all()), bit
    assert refused > 150


@pytest.mark.parametrize("kept", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_file_that_was_cut_is_refused(kept, path):
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * kept)])
    with pytest.raises(ArchiveError, match=r"two\.tdz: not a whole \.tdz archive"):
        tasks.load_library(path)


def test_a_directory_that_hides_the_last_member_in_a_comment_is_refused(path):
    data = bytearray(path.read_bytes())
    entries = [place for place in range(len(data)) if data[place : place + 4] == b"PK\x01\x02"]
    length = len(data) - 22 - entries[-1]  # of the last entry; the end record is 22 bytes long
    data[entries[-2] + 32 : entries[-2] + 34] = length.to_bytes(2, "little")  # length of the comment
    path.write_bytes(data)
    with pytest.raises(ArchiveError, match=r"two\.tdz: member .* has a comment; copy or export"):
        tasks.load_library(path)
