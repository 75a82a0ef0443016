"""The rules of rows and libraries, and how rows are fitted to the registered terms."""

import json
import logging
from math import inf, nan

import pytest
import torch
from tensordict import TensorDict

from firmware_bridge.skills.bundle import shipped_bundle
from firmware_bridge.skills.manifest import MANIFEST_FILE, read_manifest
from hardware.errors import BundleError, TaskError, TaskTypeError, TermNotRegisteredError
from microduck import tasks
from microduck.rewards import REWARD_TERMS, RewardRegistry


@pytest.fixture
def make_registry():
    """Makes a registry of terms, each weighing 1, with one parameter."""

    def make(*terms):
        registry = RewardRegistry()
        for term in terms:
            registry.register(term, weight=1.0, **{f"{term}_std": 0.5})(
                lambda features, params: features["upright"]
            )
        return registry

    return make


def row(name="x", **changes):
    return tasks.make_task((0.0, 0.0), (0.1, 0.0), name=name, **changes)


@pytest.mark.parametrize(
    ("field", "value", "fault"),
    [
        ("command_low", (0.3, 0), "is (0.3, 0.0); it must not exceed command_high, (0.1, 0.0)"),
        ("command_low", (0.1,), "has the shape (1,); it must be (2,)"),
        ("command_low", (-10.5, 0), "is (-10.5, 0.0); it must be in [-10, 10] m/s"),
        ("command_high", (11, 0), "is (11.0, 0.0); it must be in [-10, 10] m/s"),
        ("command_high", (inf, 0), "is (inf, 0.0); it must be finite"),
        ("warm_start_velocity", (0.2, 0.1), "is (0.2, 0.1); it must be (low, high) with low <= high"),
        ("warm_start_velocity", (-0.2, 0.1), "is (-0.2, 0.1); it must be in [0, inf) m/s"),
        ("warm_start_velocity", 0.1, "has the shape (); it must be (2,)"),
        ("warm_start_fraction", 1.5, "is 1.5; it must be in [0, 1]"),
        ("warm_start_fraction", (0.5,), "has the shape (1,); it must be ()"),
        ("joint_reset_noise_scale", -0.1, "is -0.1; it must be in [0, inf) rad"),
        ("gait_frequency_hz", 0, "is 0.0; it must be in (0, 10] Hz"),
        ("gait_frequency_hz", 10.000001, "is 10.000001; it must be in (0, 10] Hz"),
        ("gait_frequency_hz", [[2]], "has the shape (1, 1); it must be ()"),
        ("gait_frequency_per_mps", -1, "is -1.0; it must be in [0, 10] Hz s/m"),
        ("gait_frequency_per_mps", 11, "is 11.0; it must be in [0, 10] Hz s/m"),
        ("yaw_rate_interval", (1, -1), "is (1.0, -1.0); it must be (low, high) with low <= high"),
        ("yaw_rate_interval", (-11, 0), "is (-11.0, 0.0); it must be in [-10, 10] rad/s"),
        ("command_resample_interval", (4, 2), "is (4.0, 2.0); it must be (low, high) with low <= high"),
        ("command_resample_interval", (-1, 2), "is (-1.0, 2.0); it must be in [0, inf) s"),
        (
            "command_resample_interval",
            (0, 2),
            "is (0.0, 2.0); it must be (0, 0) for never, or at least the control period, 0.02 s",
        ),
        ("weight", -1, "is -1.0; it must be in [0, inf)"),
        ("weight", nan, "is nan; it must be finite"),
        ("pose_std", inf, "is inf; it must be finite"),
        ("pose_std", (1, 2), "has the shape (2,); it must be ()"),
    ],
)
def test_a_bad_number_is_refused_when_its_row_is_made(field, value, fault):
    good = {"command_low": (0.0, 0.0), "command_high": (0.1, 0.0), "name": "x"}
    with pytest.raises(TaskError) as caught:
        tasks.make_task(**{**good, field: value})
    assert str(caught.value) == f"{field} of task 'x' {fault}"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pose_std": None}, "pose_std is None; it must be a number or a pair of numbers"),
        ({"pose_std": 10**400}, "pose_std is 1000.*; it must be a number"),
        ({"weight": "heavy"}, "weight is 'heavy'; it must be a number"),
        ({"reward_weights": {"pose": nan}}, "reward weight 'pose' of task 'x' is nan; it must be finite"),
        ({"reward_weights": {"grace": 1.0}}, "'grace' is no reward term; choose one of .*'pose'"),
        ({"pose_sdt": 0.1}, "'pose_sdt' is no task field or reward parameter; choose one of .*'pose_std'"),
        ({"name": ""}, "a task is named ''; a name has 1 to 64 printable characters"),
        ({"name": 5}, "a task is named .*5.*; a name has"),
        ({"name": "a\nb"}, r"a task is named 'a\\nb'; a name has"),
        ({"name": "x" * 65}, "a task is named 'x{65}'; a name has 1 to 64"),
    ],
)
def test_what_is_no_row_at_all_is_refused_when_it_is_made(changes, message):
    with pytest.raises(TaskError, match=message):
        row(**changes)


@pytest.mark.parametrize(
    ("preset", "message"),
    [
        (lambda: tasks.tracking_task("fast"), "speed is 'fast'; it must be a number"),
        (lambda: tasks.speed_range_task(0.1, None), "high is None; it must be a number"),
        (lambda: tasks.speed_range_task(0.3, 0.1), "command_low of .* must not exceed command_high"),
        (lambda: tasks.turning_task(nan), r"turn_rate of task 'turn\+nan' is nan; it must be finite"),
    ],
)
def test_a_presets_own_number_is_checked(preset, message):
    with pytest.raises(TaskError, match=message):
        preset()


def test_the_ends_of_every_interval_are_valid():
    tasks.stack_tasks(
        [
            row(
                "x" * 64,
                gait_frequency_hz=10,
                gait_frequency_per_mps=10,
                yaw_rate_interval=(-10, 10),
                command_resample_interval=(0.02, 0.02),
                warm_start_fraction=1,
            ),
            row("y", gait_frequency_hz=1e-3, weight=0, warm_start_velocity=(0, 0)),
        ]
    )


@pytest.mark.parametrize(("length", "good"), [(64, True), (65, False)])
def test_names_are_as_long_as_a_bundle_takes(length, good, tmp_path):
    manifest = json.loads((shipped_bundle("walk") / MANIFEST_FILE).read_text())
    manifest["skills"][0]["name"] = "x" * length
    (tmp_path / MANIFEST_FILE).write_text(json.dumps(manifest))
    if good:
        assert read_manifest(tmp_path / MANIFEST_FILE).skills[0].name == row("x" * length).name
        return
    with pytest.raises(BundleError, match="1 to 64 printable characters"):
        read_manifest(tmp_path / MANIFEST_FILE)
    with pytest.raises(TaskError, match="1 to 64 printable characters"):
        row("x" * length)


@pytest.mark.parametrize(
    "things", [[], (), 5, "walk", {"x": row()}, [row(), "walk"], [None], TensorDict(a=torch.ones(2))]
)
def test_what_is_no_row_is_refused_as_a_type_error_too(things):
    with pytest.raises(TaskTypeError, match="made of one or more MicroDuckTask rows, not of") as caught:
        tasks.stack_tasks(things)
    assert isinstance(caught.value, TypeError) and isinstance(caught.value, ValueError)


def test_a_row_of_another_library_is_told_how_to_come_over():
    theirs = pytest.importorskip("torchrl.envs").MicroDuckEnv.standing_task()
    with pytest.raises(TaskTypeError, match="read an archive with load_library"):
        tasks.stack_tasks(theirs)


def test_rows_that_make_no_library_together_are_refused():
    with pytest.raises(TaskError, match=r"several tasks are named \['a', 'b'\]; give each its own"):
        tasks.stack_tasks([row(name) for name in "abcab"])
    with pytest.raises(TaskError, match=r"weight is zero in every task of \['a', 'b'\]"):
        tasks.stack_tasks([row("a", weight=0), row("b", weight=0)])
    with pytest.raises(TaskError, match=r"one batch dimension, not the batch shape \(1, 2\)"):
        tasks.stack_tasks(torch.stack([row("a"), row("b")]).unsqueeze(0))
    one = row()
    with pytest.raises(TaskError, match="the library has 1025 tasks; a bundle holds at most 1024"):
        tasks.validate(one.expand(1025))


def test_rows_libraries_and_nothing_become_a_library():
    both = tasks.stack_tasks([row("a"), row("b")])
    assert tasks.stack_tasks(None).names == ("tracking+0.03",)
    assert tasks.stack_tasks(row("a")).names == ("a",)
    assert tasks.stack_tasks(iter([row("a")])).names == ("a",)
    assert tasks.stack_tasks(both).names == ("a", "b")
    assert tasks.stack_tasks([both, row("c")]).names == ("a", "b", "c")


def test_a_library_shares_no_memory_with_its_rows():
    rows = torch.stack([row("a"), row("b")])
    library = tasks.stack_tasks(rows)
    for value in rows.values(include_nested=True, leaves_only=True):
        if isinstance(value, torch.Tensor):
            value.fill_(7)
    assert library.weight.tolist() == [1, 1]
    assert library.params["pose_std"].tolist() == [0.5, 0.5]
    assert library.reward_weights[0, 0] == 2


def spoilt(field, value):
    made = row()
    made.set(field, value)
    return made


@pytest.mark.parametrize(
    ("field", "value", "fault"),
    [
        ("weight", torch.ones(1), "has the shape (1,); it must be ()"),
        ("command_low", torch.zeros(3), "has the shape (3,); it must be (2,)"),
        ("gait_frequency_hz", torch.ones(2), "has the shape (2,); it must be ()"),
        ("weight", torch.tensor(True), "is of type torch.bool; it must be a tensor of real numbers"),
        ("weight", torch.tensor(1j), "is of type torch.complex64; it must be a tensor of real numbers"),
        ("reward_weights", torch.ones(3), "has the shape (3,); it must be ("),
        ("reward_weights", torch.ones(()), "has the shape (); it must be ("),
        ("reward_terms", "pose,pose", "has a name twice: ['pose', 'pose']"),
        (("params", "pose_std"), torch.ones(1), "has the shape (1,); it must be ()"),
    ],
)
def test_a_row_of_another_structure_is_refused(field, value, fault):
    name = field if isinstance(field, str) else field[-1]
    with pytest.raises(TaskError) as caught:
        tasks.stack_tasks([spoilt(field, value)])
    assert str(caught.value).startswith(f"{name} of task 'x' {fault}")


def test_a_parameter_that_no_term_reads_is_refused():
    with pytest.raises(TaskError, match=r"params of task 'x' hold \['pose_sdt'\], which no registered term"):
        tasks.stack_tasks(spoilt(("params", "pose_sdt"), torch.ones(())))


def test_a_row_without_a_parameter_or_with_a_nameless_weight_too_many_is_refused():
    lacking = row()
    del lacking.params["pose_std"]
    with pytest.raises(TaskError, match=r"params of task 'x' lack \['pose_std'\]"):
        tasks.stack_tasks(lacking)
    nameless = spoilt("reward_terms", "")
    nameless.reward_weights = torch.ones(18)
    with pytest.raises(
        TaskError, match=r"shape \(18,\); it must be \(\d+,\), one for each of the registered terms"
    ):
        tasks.stack_tasks(nameless)


def test_any_precision_becomes_float32():
    made = row()
    made.weight, made.reward_weights = torch.tensor(2), made.reward_weights.double()
    library = tasks.stack_tasks(made)
    assert (library.weight.dtype, library.reward_weights.dtype) == (torch.float32, torch.float32)
    assert library.weight.tolist() == [2.0]


def test_a_library_is_no_part_of_a_gradient():
    made = row()
    made.reward_weights = made.reward_weights.requires_grad_()
    assert not tasks.stack_tasks(made).reward_weights.requires_grad


def test_validate_takes_a_library_as_it_is(make_registry):
    library = tasks.stack_tasks([row("a"), row("b")])
    tasks.validate(library)
    with pytest.raises(TaskError, match=r"'a' are those of .*fit them to the registered terms, \['calm'\]"):
        tasks.validate(library, registry=make_registry("calm"))
    with pytest.raises(TaskError, match=r"one batch dimension, not the batch shape \(\)"):
        tasks.validate(row())
    library.gait_frequency_hz[1] = 0
    with pytest.raises(TaskError, match=r"gait_frequency_hz of task 'b' is 0\.0"):
        tasks.validate(library)


def test_weights_follow_their_names_into_another_order(make_registry):
    theirs, ours = make_registry("calm", "tall"), make_registry("tall", "calm")
    made = row(registry=theirs, reward_weights={"calm": 2.0, "tall": 3.0}, calm_std=4.0)
    library = tasks.stack_tasks(made, registry=ours)
    assert library.reward_weights.tolist() == [[3.0, 2.0]]
    assert library.reward_terms == ["tall,calm"]
    assert {key: value.tolist() for key, value in library.params.items()} == {
        "calm_std": [4.0],
        "tall_std": [0.5],
    }
    assert list(library.params.keys()) == ["tall_std", "calm_std"]


def test_terms_that_a_row_does_not_know_weigh_zero_with_one_note(make_registry, caplog):
    parent, child = make_registry("calm"), make_registry("calm", "tall", "shy")
    rows = [row(name, registry=parent, calm_std=0.25) for name in "ab"]
    with caplog.at_level(logging.INFO):
        library = tasks.stack_tasks([*rows, row("c", registry=child)], registry=child)
    assert library.reward_weights.tolist() == [[1, 0, 0], [1, 0, 0], [1, 1, 1]]
    assert library.params["calm_std"].tolist() == [0.25, 0.25, 0.5]
    assert library.params["tall_std"].tolist() == [0.5, 0.5, 0.5]
    assert [record.getMessage() for record in caplog.records] == [
        "reward terms ['tall', 'shy'] are new to tasks ['a', 'b'], where they weigh zero"
    ]


def test_a_term_that_is_not_registered_is_dropped_if_it_weighs_nothing(make_registry, caplog):
    child, parent = make_registry("calm", "tall"), make_registry("calm")
    made = row(registry=child, reward_weights={"tall": 0.0})
    with caplog.at_level(logging.INFO):
        library = tasks.stack_tasks(made, registry=parent)
    assert library.reward_weights.tolist() == [[1.0]]
    assert list(library.params.keys()) == ["calm_std"]
    assert "['tall'] of tasks ['x'] are not registered" in caplog.text


@pytest.mark.parametrize("weight", [1e-6, nan])
def test_a_weighed_term_that_is_not_registered_is_refused(weight, make_registry):
    made = row(registry=make_registry("calm", "tall"))
    made.reward_weights[1] = weight
    with pytest.raises(
        TermNotRegisteredError, match=r"'tall', which task 'x' weighs .*register_reward\('tall'\)"
    ):
        tasks.stack_tasks(made, registry=make_registry("calm"))


@pytest.mark.parametrize("param", ["weight", "yaw_rate_interval", "name", "reward_weights", "registry"])
def test_a_parameter_with_the_name_of_a_field_is_refused(param):
    registry = REWARD_TERMS.copy()
    registry.register("shadow")(lambda features, params: features["upright"])
    object.__setattr__(registry["shadow"], "params", {param: 1.0})
    for use in (tasks.stack_tasks, lambda registry: row(registry=registry)):
        with pytest.raises(TaskError, match=f"parameter '{param}' of reward term 'shadow' has the name of a"):
            use(registry=registry)


def test_a_registry_without_terms_is_refused():
    with pytest.raises(TaskError, match="the registry has no reward terms"):
        tasks.stack_tasks(registry=RewardRegistry())
