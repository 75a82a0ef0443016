"""Archives of libraries last: they read back equal, and other releases' find their place."""

import json
import logging
import zipfile
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tensordict import TensorDict, tensorclass
from torch import Tensor

from firmware_bridge.skills.archive import read_archive
from firmware_bridge.skills.bundle import shipped_bundle
from hardware import contract
from hardware.errors import ArchiveError, TaskError
from microduck import tasks
from microduck.learning.recipes import find_library
from microduck.rewards import REWARD_TERMS, RewardRegistry

TORCHRL_TERMS = [
    "tracking", "yaw_rate", "turn", "head_level", "upright", "pose", "progress", "air_time", "swing_height",
    "phase_contact", "double_support", "ang_vel_xy", "lin_vel_z", "action_rate", "joint_velocity", "drift",
    "hop_rhythm", "launch", "jump", "termination",
]  # fmt: skip
OUR_FIRST_TERMS = [
    "tracking", "yaw_rate", "head_level", "upright", "pose", "progress", "air_time", "swing_height",
    "phase_contact", "double_support", "ang_vel_xy", "lin_vel_z", "action_rate", "joint_velocity",
    "termination", "speed_error", "heading_hold",
]  # fmt: skip
SHARED_PARAMS = [
    "tracking_std", "tracking_off_axis_std", "yaw_rate_std", "upright_std", "pose_std", "air_time_min",
    "air_time_max", "gait_progress_floor", "swing_target_height",
]  # fmt: skip
HEAD_PARAMS = ["head_pitch_target", "head_level_std"]
HOP_PARAMS = ["drift_speed_scale", "hop_velocity_amplitude", "launch_velocity_scale", "jump_target_height"]
FLAT = {"allow_nan": False, "allow_infinity": False, "width": 32}


@tensorclass
class NamelessTask:
    """A row as TorchRL and this toolkit once kept it: no word of what the weights belong to."""

    command_low: Tensor
    command_high: Tensor
    warm_start_velocity: Tensor
    warm_start_fraction: Tensor
    joint_reset_noise_scale: Tensor
    gait_frequency_hz: Tensor
    gait_frequency_per_mps: Tensor
    reward_weights: Tensor
    params: TensorDict
    weight: Tensor
    name: str


def nameless(name, weights, params):
    pair, one = torch.tensor([0.1, 0.2]), torch.tensor(0.5)
    return NamelessTask(
        pair, pair, pair, one, one, one, one, weights, TensorDict(params), one, name, batch_size=[]
    )  # fmt: skip


def weights(row):
    return dict(zip(REWARD_TERMS, row.reward_weights.tolist(), strict=True))


def same(one, other):
    """Whether two libraries hold the same bits and texts."""
    first, second = (dict(library.items(include_nested=True, leaves_only=True)) for library in (one, other))
    return first.keys() == second.keys() and all(
        value.numpy().tobytes() == second[key].numpy().tobytes()
        if isinstance(value, Tensor)
        else value.tolist() == second[key].tolist()
        for key, value in first.items()
    )


@pytest.fixture
def library():
    return tasks.stack_tasks(
        [
            tasks.tracking_task(0.2, yaw_rate_interval=(-1.0, 0.5)),
            tasks.jump_task(command_resample_interval=(2, 4)),
        ]
    )


@pytest.fixture
def path(library, tmp_path):
    tasks.save_library(library, tmp_path / "two.tdz")
    return tmp_path / "two.tdz"


def test_a_library_reads_back_equal(library, path):
    assert same(tasks.load_library(str(path)), library)
    assert [file.name for file in path.parent.iterdir()] == ["two.tdz"]


def test_tensordict_and_the_robot_read_the_same_file(library, path):
    plain = tasks.MicroDuckTask.load(path)
    assert type(plain) is tasks.MicroDuckTask
    assert same(plain, library)
    robots = read_archive(path)
    assert robots["name"] == ["tracking+0.20", "jump"]
    assert robots["yaw_rate_interval"].tolist() == [[-1.0, 0.5], [0.0, 0.0]]


def test_the_file_says_what_its_numbers_are(path):
    with zipfile.ZipFile(path) as file:
        notes = json.loads(file.read("library.json"))
    assert notes == {
        "schema": 1,
        "reward_terms": list(REWARD_TERMS),
        "params": list(REWARD_TERMS.params),
        "contract_digest": contract.digest(contract.foundation()),
    }


def test_the_foundation_is_all_of_a_contract_that_every_bundle_shares():
    one, other = contract.describe("sensor", 0.35), contract.describe("state", 0.8, 150)
    shared = {key: value for key, value in one.items() if other[key] == value}
    assert contract.foundation() == shared
    manifest = json.loads((shipped_bundle("walk") / "manifest.json").read_text())
    assert manifest["contract"].items() >= contract.foundation().items()


def test_tensordicts_own_archive_of_a_library_loads(library, tmp_path):
    library.save(tmp_path / "plain.tdz")
    assert same(tasks.load_library(tmp_path / "plain.tdz"), library)
    library["jump"].save(tmp_path / "row.tdz")
    assert same(tasks.load_library(tmp_path / "row.tdz"), library[1:])


def test_an_older_file_stays_when_the_library_is_refused(path):
    before = path.read_bytes()
    with pytest.raises(TaskError, match="several tasks are named"):
        tasks.save_library([tasks.standing_task()] * 2, path)
    assert path.read_bytes() == before


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_whatever_is_valid_reads_back_bit_for_bit(data, tmp_path_factory):
    speeds = st.floats(-10, 10, width=32)
    ranges = {
        "warm_start_fraction": st.floats(0, 1, width=32),
        "joint_reset_noise_scale": st.floats(0, 1e6, width=32),
        "gait_frequency_hz": st.floats(0, 10, width=32, exclude_min=True),
        "gait_frequency_per_mps": st.floats(0, 10, width=32),
        "warm_start_velocity": st.lists(st.floats(0, 1e6, width=32), min_size=2, max_size=2).map(sorted),
        "yaw_rate_interval": st.lists(speeds, min_size=2, max_size=2).map(sorted),
        "command_resample_interval": st.lists(st.floats(1, 1e6, width=32), min_size=2, max_size=2).map(
            sorted
        ),
        "reward_weights": st.dictionaries(st.sampled_from(list(REWARD_TERMS)), st.floats(**FLAT)),
        "weight": st.floats(2**-20, 1e6, width=32),
        **{param: st.floats(**FLAT) for param in REWARD_TERMS.params},
    }
    printable = st.characters(categories=["L", "M", "N", "P", "S"])
    names = data.draw(
        st.lists(st.text(printable, min_size=1, max_size=64), min_size=1, max_size=3, unique=True)
    )
    rows = []
    for name in names:
        low, high = zip(*(sorted(data.draw(st.tuples(speeds, speeds))) for _ in range(2)), strict=True)
        overrides = data.draw(st.fixed_dictionaries({}, optional=ranges))
        rows.append(tasks.make_task(low, high, name=name, **overrides))
    file = tmp_path_factory.mktemp("any") / "any.tdz"
    tasks.save_library(rows, file)
    assert same(tasks.load_library(file), tasks.stack_tasks(rows))


def test_archives_of_the_installed_torchrl_load_with_every_term_where_it_belongs(tmp_path):
    theirs = pytest.importorskip("torchrl.envs").MicroDuckEnv
    assert len(theirs.REWARD_TERMS) == 18
    rows = [
        theirs.tracking_task(0.2, weight=2.0, reward_weights={"drift": -7.0}, launch_velocity_scale=0.25),
        theirs.jump_task(warm_start_fraction=0.5),
        theirs.speed_range_task(),
    ]
    torch.stack(rows).save(tmp_path / "theirs.tdz")
    library = tasks.load_library(tmp_path / "theirs.tdz")
    assert library.names == ("tracking+0.20", "jump", "speed_range+0.10..+0.30")
    assert library.weight.tolist() == [2, 1, 1]
    for row, given_row in zip(library, rows, strict=True):
        named = dict(zip(theirs.REWARD_TERMS, given_row.reward_weights.tolist(), strict=True))
        assert weights(row) == {**dict.fromkeys(REWARD_TERMS, 0.0), **named}
        for param, value in given_row.params.items():
            assert row.params[param] == value
        assert float(row.params["head_level_std"]) == pytest.approx(0.3)
    assert float(library["jump"].gait_frequency_hz) == 2
    assert library.yaw_rate_interval.tolist() == [[0, 0]] * 3
    rows[1].save(tmp_path / "row.tdz")
    assert same(tasks.load_library(tmp_path / "row.tdz"), library[1:2])


@pytest.mark.parametrize(
    ("terms", "params"),
    [
        (TORCHRL_TERMS, [*SHARED_PARAMS, *HEAD_PARAMS, *HOP_PARAMS, "turn_rate", "turn_rate_std"]),
        (OUR_FIRST_TERMS, [*SHARED_PARAMS, *HEAD_PARAMS, "heading_std"]),
    ],
    ids=["TorchRL after 0.14.1", "this toolkit's oldest"],
)
def test_archives_without_names_load_with_every_term_where_it_belongs(terms, params, tmp_path, caplog):
    given_weights = {term: float(place) for place, term in enumerate(terms, start=1)}
    given_params = {param: torch.tensor(float(place)) for place, param in enumerate(params, start=100)}
    row = nameless("old", torch.tensor(list(given_weights.values())), given_params)
    torch.stack([row, nameless("zero", torch.zeros(len(terms)), given_params)]).save(tmp_path / "old.tdz")
    with caplog.at_level(logging.INFO):
        library = tasks.load_library(tmp_path / "old.tdz")
    assert weights(library["old"]) == {**dict.fromkeys(REWARD_TERMS, 0.0), **given_weights}
    found = {key: float(value) for key, value in library["old"].params.items()}
    today = {"heading_std": "heading_hold_std"}  # renamed, since TorchRL's own example registers `heading`
    wanted = {today.get(key, key): float(value) for key, value in given_params.items()}
    assert found == pytest.approx({**REWARD_TERMS.params, **wanted})
    absent = [term for term in REWARD_TERMS if term not in terms]
    assert f"reward terms {absent} are new to tasks ['old', 'zero'], where they weigh zero" in caplog.text


def test_a_walkers_archive_of_before_terms_were_named_loads_with_the_weights_it_was_trained_on():
    old = Path(__file__).parents[1] / "data" / "tasks_without_names.tdz"
    walk = tasks.load_library(old)["walk"]
    trained = {
        "tracking": 5,
        "progress": 0,
        "speed_error": 2,
        "swing_height": 1,
        "phase_contact": 1.5,
        "heading_hold": 2,
    }
    assert {term: weights(walk)[term] for term in trained} == trained
    assert (weights(walk)["turn"], weights(walk)["termination"]) == (0, -4)
    assert tasks.MicroDuckTask.load(old).names == ("walk",)


@pytest.mark.parametrize(("name", "library"), [("walk", "walk"), ("nine-skills", "nine-skills-polish")])
def test_a_shipped_bundles_rows_are_those_that_train_as_it_did(name, library):
    shipped = tasks.load_library(shipped_bundle(name) / "tasks.tdz")
    assert same(shipped, find_library(library))


def test_unknown_numbers_of_weights_are_refused_with_the_known_ones(tmp_path):
    params = {param: torch.tensor(1.0) for param in [*SHARED_PARAMS, *HOP_PARAMS]}
    known = r"17 weights and 12 params \(this toolkit, before .*\), 18 .* 13 .*0\.14\.1\), 20 weights and 17"
    for row in (nameless("x", torch.ones(19), params), nameless("x", torch.ones(20), params)):
        torch.stack([row]).save(tmp_path / "other.tdz")
        with pytest.raises(ArchiveError, match=rf"other\.tdz: reward_weights has (19|20) values .*{known}"):
            tasks.load_library(tmp_path / "other.tdz")


def calm(*terms):
    """Return a registry of terms with one parameter each."""
    registry = RewardRegistry()
    for term in terms:
        registry.register(term, weight=1.0, **{f"{term}_std": 0.5})(
            lambda features, params: features["upright"]
        )
    return registry


def test_an_archive_outlives_new_terms_and_another_order(tmp_path):
    row = tasks.make_task(
        (0, 0), (0, 0), name="x", registry=calm("a", "b"), reward_weights={"b": 3.0}, a_std=2.0
    )
    tasks.save_library(row, tmp_path / "x.tdz", registry=calm("a", "b"))
    library = tasks.load_library(tmp_path / "x.tdz", registry=calm("b", "new", "a"))
    assert library.reward_weights.tolist() == [[3, 0, 1]]
    assert {key: float(value) for key, value in library["x"].params.items()} == {
        "b_std": 0.5,
        "new_std": 0.5,
        "a_std": 2,
    }
    with pytest.raises(
        TaskError, match=r"x\.tdz: reward term 'b', which task 'x' weighs 3, is not registered"
    ):
        tasks.load_library(tmp_path / "x.tdz", registry=calm("a"))


def test_an_archive_outlives_a_term_that_gains_or_loses_a_parameter(tmp_path, caplog):
    tasks.save_library(
        tasks.make_task((0, 0), (0, 0), name="x", registry=calm("a")), tmp_path / "x.tdz", registry=calm("a")
    )
    changed = RewardRegistry()
    changed.register("a", a_scale=0.75)(lambda features, params: features["upright"])
    with caplog.at_level(logging.INFO):
        library = tasks.load_library(tmp_path / "x.tdz", registry=changed)
    assert {key: value.tolist() for key, value in library.params.items()} == {"a_scale": [0.75]}
    assert (
        "parameters ['a_scale'] are new and take their defaults; ['a_std'] are no longer read" in caplog.text
    )
