import pickle

import pytest
import torch
from tensordict import TensorDict

from hardware.errors import TaskError, TaskNameError
from microduck import tasks
from microduck.learning.nine_skills import stepping_row
from microduck.rewards import REWARD_TERMS

GAIT_OFF = {"air_time": 0, "swing_height": 0, "phase_contact": 0, "double_support": 0}
HOP = {**GAIT_OFF, "lin_vel_z": 0, "jump": 10, "launch": 30, "hop_rhythm": 1}
PLAIN, QUICKENING, HOPPING = (1.8913, 0), (1, 5), (2, 0)
TURN = {"turn": 2, "yaw_rate": 0}
STILL = (0, 0, 0, 0)
# Preset and arguments, name, command box, clock, weights and parameters other than the defaults.
PRESETS = [
    (("tracking", ()), "tracking+0.03", (0.03, 0, 0.03, 0), PLAIN, {}, {}),
    (("tracking", (-0.2,)), "tracking-0.20", (-0.2, 0, -0.2, 0), PLAIN, {}, {}),
    (("tracking", (0.011,)), "tracking+0.01", (0.011, 0, 0.011, 0), PLAIN, {}, {}),
    (("tracking", (-0.01,)), "standing", STILL, PLAIN, GAIT_OFF, {"pose_std": 0.1}),
    (("standing", ()), "standing", STILL, PLAIN, GAIT_OFF, {"pose_std": 0.1}),
    (("speed_range", ()), "speed_range+0.10..+0.30", (0.1, 0, 0.3, 0), QUICKENING, {}, {}),
    (("speed_range", (-0.1, 0.2)), "speed_range-0.10..+0.20", (-0.1, 0, 0.2, 0), QUICKENING, {}, {}),
    (("sidestep", ()), "sidestep+0.15", (0, 0.15, 0, 0.15), PLAIN, {}, {}),
    (("sidestep", (-0.1,)), "sidestep-0.10", (0, -0.1, 0, -0.1), PLAIN, {}, {}),
    (("turning", ()), "turn+1.00", STILL, PLAIN, TURN, {"turn_rate": 1}),
    (("turning", (-0.5,)), "turn-0.50", STILL, PLAIN, TURN, {"turn_rate": -0.5}),
    (("jump", ()), "jump", STILL, HOPPING, {**HOP, "drift": -5}, {}),
    (("jump", (0.3,)), "jump+0.30", (0.3, 0, 0.3, 0), HOPPING, HOP, {}),
    (("jump", (-0.001,)), "jump-0.00", (-0.001, 0, -0.001, 0), HOPPING, HOP, {}),
]
NAMES = ("tracking+0.20", "standing", "jump")


@pytest.fixture
def library():
    return tasks.stack_tasks([tasks.tracking_task(0.2), tasks.standing_task(), tasks.jump_task()])


def weights(row):
    return dict(zip(REWARD_TERMS, row.reward_weights.tolist(), strict=True))


def make(preset, arguments):
    return getattr(tasks, f"{preset}_task")(*arguments)


@pytest.mark.parametrize(("made", "name", "box", "clock", "weighed", "params"), PRESETS)
def test_a_preset_differs_from_the_defaults_only_as_documented(made, name, box, clock, weighed, params):
    row = make(*made)
    assert row.name == name
    assert [*row.command_low.tolist(), *row.command_high.tolist()] == pytest.approx(box)
    assert [float(row.gait_frequency_hz), float(row.gait_frequency_per_mps)] == pytest.approx(clock)
    assert weights(row) == pytest.approx({**REWARD_TERMS.weights, **weighed})
    expected = {**REWARD_TERMS.params, "pose_std": 0.5, **params}
    assert {key: float(value) for key, value in row.params.items()} == pytest.approx(expected)
    assert float(row.joint_reset_noise_scale) == pytest.approx(0.02)
    assert (float(row.weight), float(row.warm_start_fraction)) == (1, 0)
    for field in (row.warm_start_velocity, row.yaw_rate_interval, row.command_resample_interval):
        assert field.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("preset", "arguments"),
    [
        ("tracking", (0.2,)),
        ("tracking", (0.005,)),
        ("standing", ()),
        ("speed_range", (0.05, 0.25)),
        ("sidestep", (-0.15,)),
        ("jump", ()),
    ],
)
def test_a_preset_has_the_numbers_of_torchrls(preset, arguments):
    theirs_of = pytest.importorskip("torchrl.envs").MicroDuckEnv
    ours, theirs = make(preset, arguments), getattr(theirs_of, f"{preset}_task")(*arguments)
    shared = dict(zip(theirs_of.REWARD_TERMS, theirs.reward_weights.tolist(), strict=True))
    assert {term: weights(ours)[term] for term in shared} == shared
    assert {key: ours.params[key] for key, _ in theirs.params.items()} == dict(theirs.params.items())
    for field in theirs.__dataclass_fields__.keys() - {"reward_weights", "params", "name"}:
        assert torch.equal(getattr(ours, field), getattr(theirs, field)), field
    assert ours.name == theirs.name


@pytest.mark.parametrize(("preset", "arguments"), [row[0] for row in PRESETS])
def test_what_the_caller_says_wins_over_every_preset(preset, arguments):
    row = getattr(tasks, f"{preset}_task")(
        *arguments,
        name="mine",
        weight=3.0,
        pose_std=0.2,
        turn_rate=0.7,
        gait_frequency_hz=1.5,
        gait_frequency_per_mps=2.5,
        warm_start_velocity=(0.05, 0.25),
        warm_start_fraction=0.5,
        joint_reset_noise_scale=0.25,
        yaw_rate_interval=(-1.0, 0.5),
        command_resample_interval=(2.0, 4.0),
        reward_weights={"air_time": 1.5, "yaw_rate": 0.25, "drift": -1.0},
    )
    assert (row.name, float(row.weight)) == ("mine", 3.0)
    assert [float(row.params[key]) for key in ("pose_std", "turn_rate")] == pytest.approx([0.2, 0.7])
    assert (float(row.gait_frequency_hz), float(row.gait_frequency_per_mps)) == (1.5, 2.5)
    assert row.warm_start_velocity.tolist() == pytest.approx([0.05, 0.25])
    assert (float(row.warm_start_fraction), float(row.joint_reset_noise_scale)) == (0.5, 0.25)
    assert row.yaw_rate_interval.tolist() == [-1.0, 0.5]
    assert row.command_resample_interval.tolist() == [2.0, 4.0]
    assert [weights(row)[term] for term in ("air_time", "yaw_rate", "drift")] == [1.5, 0.25, -1.0]


def test_the_rest_of_a_preset_stays_beside_overrides():
    row = tasks.standing_task(reward_weights={"air_time": 1.5})
    assert (weights(row)["air_time"], weights(row)["swing_height"]) == (1.5, 0.0)
    assert weights(tasks.jump_task(reward_weights=None)) == weights(tasks.jump_task())
    row = stepping_row("peck", (0.0, 0.0), (0.3, 0.0), reward_weights={"air_time": 0.5})
    assert [weights(row)[term] for term in ("air_time", "tracking", "progress")] == [0.5, 5.0, 0.0]


def test_a_registry_of_its_own_gives_its_defaults_and_takes_its_names():
    registry = REWARD_TERMS.copy()
    registry.register("calm", weight=0.5, calm_std=2.0)(lambda features, params: features["upright"])
    row = tasks.standing_task(registry=registry, calm_std=3.0)
    assert row.reward_terms == ",".join([*REWARD_TERMS, "calm"])
    assert (float(row.reward_weights[-1]), float(row.params["calm_std"])) == (0.5, 3.0)
    with pytest.raises(TaskError, match="'calm_std' is no task field or reward parameter"):
        tasks.standing_task(calm_std=3.0)


def test_presets_have_nothing_to_say_of_terms_that_are_not_registered():
    registry = REWARD_TERMS.copy()
    for term in ("double_support", "pose"):
        registry.unregister(term)
    row = tasks.standing_task(registry=registry)
    assert set(row.params.keys()) == set(REWARD_TERMS.params) - {"pose_std"}
    assert len(row.reward_weights) == len(REWARD_TERMS) - 2
    registry.unregister("launch")
    with pytest.raises(TaskError, match="'launch' is no reward term"):
        tasks.jump_task(registry=registry)


def test_a_row_shares_no_memory_with_what_it_was_made_from():
    given = torch.tensor([0.1, 0.0])
    row = tasks.make_task(given, given, name="x", yaw_rate_interval=given.flip(0))
    given.fill_(9)
    row.command_high.fill_(1)
    assert row.command_low.tolist() == pytest.approx([0.1, 0])


def test_a_row_of_torchrls_eleven_fields_is_completed():
    full = tasks.tracking_task(0.2)
    fields = {key: getattr(full, key) for key in list(tasks.MicroDuckTask.__dataclass_fields__)[:11]}
    assert list(fields)[-2:] == ["weight", "name"]
    bare = tasks.MicroDuckTask(**fields, batch_size=[])
    assert bare.yaw_rate_interval.tolist() == bare.command_resample_interval.tolist() == [0, 0]
    bare.name = "bare"
    both = torch.stack([bare, full])
    assert tasks.stack_tasks(both).reward_terms == [",".join(REWARD_TERMS)] * 2
    assert bool((tasks.stack_tasks(bare)[0].reward_weights == full.reward_weights).all())


def test_a_library_is_looked_up_by_name(library):
    assert library.names == NAMES
    assert library["jump"].name == "jump"
    assert float(library["jump"].gait_frequency_hz) == 2
    assert "jump" in library and "hop" not in library
    assert library["standing"].names == ("standing",)


def test_an_unknown_name_is_refused_with_the_known_ones(library):
    with pytest.raises(
        TaskNameError, match=r"has no task 'hop'; choose one of \['tracking\+0.20', 'st"
    ) as caught:
        library["hop"]
    assert isinstance(caught.value, KeyError) and isinstance(caught.value, TaskError)
    assert str(caught.value).startswith("the library")  # not in the quotes of a KeyError
    for row in (library[0], library.reshape(3, 1)):
        with pytest.raises(TaskError, match="stack them into a library"):
            row["jump"]


@pytest.mark.parametrize(
    ("index", "names"),
    [
        (1, ("standing",)),
        (-1, ("jump",)),
        (slice(0, 2), NAMES[:2]),
        ([2, 0], ("jump", "tracking+0.20")),
        (torch.tensor([2, 2, 1]), ("jump", "jump", "standing")),
        (torch.tensor([True, False, True]), ("tracking+0.20", "jump")),
        (torch.tensor([[2], [1]]), ("jump", "standing")),
        (..., NAMES),
    ],
    ids=str,
)
def test_a_library_is_indexed_like_a_tensor_and_its_names_follow(library, index, names):
    taken = library[index]
    assert taken.names == names
    assert torch.equal(taken.gait_frequency_hz, library.gait_frequency_hz[index])


def test_names_survive_what_tensors_go_through(library):
    backward = library[[2, 1, 0]]
    mixed = library.where(torch.tensor([True, True, False]), backward)
    assert mixed.names == ("tracking+0.20", "standing", "tracking+0.20")
    assert torch.cat([library, backward]).names == (*NAMES, *NAMES[::-1])
    assert torch.stack(list(library)).names == NAMES
    assert torch.stack([library, backward]).names == (*NAMES, *NAMES[::-1])
    for same in (
        library.clone(),
        pickle.loads(pickle.dumps(library)),
        library.to("cpu"),
        library.contiguous(),
    ):
        assert same.names == NAMES
        assert same["jump"].reward_terms == ",".join(REWARD_TERMS)
    assert tasks.MicroDuckTask.from_tensordict(library.to_tensordict()).names == NAMES
    assert [row.name for row in library] == list(NAMES)
    assert TensorDict(library=library, batch_size=[3])["library"].names == NAMES


def test_the_command_box_has_three_components_per_task():
    library = tasks.stack_tasks(
        [tasks.speed_range_task(0.1, 0.3, yaw_rate_interval=(-1.0, 0.5)), tasks.sidestep_task(-0.1)]
    )
    low, high = tasks.command_box(library)
    assert low.tolist() == [pytest.approx([0.1, 0, -1]), pytest.approx([0, -0.1, 0])]
    assert high.tolist() == [pytest.approx([0.3, 0, 0.5]), pytest.approx([0, -0.1, 0])]
