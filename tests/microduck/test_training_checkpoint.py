"""Checkpoints of something else, and damaged ones, are refused with what is wrong."""

import dataclasses
import json
import math
import random
import shutil

import pytest
import torch

from hardware.errors import ConfigError, ContractError, TrainingError
from microduck.learning import run_folder
from microduck.learning.config import TrainConfig, load_config, save_config
from microduck.learning.run_folder import RunFolder, load_policy
from microduck.learning.train import Trainer
from microduck.rewards import REWARD_TERMS
from microduck.tasks import save_library, stack_tasks, standing_task, tracking_task


@pytest.fixture(scope="module")
def begun(tmp_path_factory, small):
    """Folder of a run that has just begun."""
    folder = tmp_path_factory.mktemp("begun")
    Trainer.start(RunFolder(folder), small)
    return folder


@pytest.fixture
def run(tmp_path, begun):
    """A copy of that run."""
    shutil.copytree(begun, tmp_path, dirs_exist_ok=True)
    return RunFolder(tmp_path)


def resume(run):
    return Trainer.resume(run, run.config())


@pytest.mark.parametrize("take", [load_policy, resume])
def test_a_checkpoint_of_another_layout_or_action_scale_is_refused(run, small, take):
    save_config(dataclasses.replace(small, layout="state", action_scale=0.5), run.config_file)
    with pytest.raises(
        TrainingError,
        match=r"checkpoint\.pt was made for something else: layout is 'sensor' there and 'state' here; "
        r"action scale is 1\.0 there and 0\.5 here",
    ):
        take(run)


@pytest.mark.parametrize("take", [load_policy, resume])
def test_a_checkpoint_of_other_tasks_is_refused(run, take):
    save_library(stack_tasks([standing_task(), tracking_task()]), run.library_file)
    with pytest.raises(
        TrainingError,
        match=r"tasks \['walk'\] are only there and \['standing', 'tracking\+0\.03'\] only here",
    ):
        take(run)


@pytest.mark.parametrize("take", [load_policy, resume])
def test_a_checkpoint_of_other_networks_is_refused(run, monkeypatch, take):
    monkeypatch.setattr(run_folder, "HIDDEN", (64, 64))
    with pytest.raises(
        TrainingError, match=r"widths is \[\d+, 128, 128, 128, 14\] there and \[\d+, 64, 64, 14\]"
    ):
        take(run)


def test_a_checkpoint_of_other_rewards_is_refused_where_rewards_are_paid(run):
    library = run.library()
    column = list(REWARD_TERMS).index("tracking")
    library.reward_weights[:, column] = 0
    save_library(library, run.library_file)
    with pytest.raises(TrainingError, match=r"reward terms \['tracking'\] are only there and \[\] only here"):
        resume(run)
    load_policy(run)  # which pays none


def change(run, **values):
    state = torch.load(run.checkpoint_file, weights_only=True)
    for name, value in values.items():
        if value is None:
            del state[name]
        else:
            state[name] = value
    torch.save(state, run.checkpoint_file)


def test_a_checkpoint_of_another_version_is_refused(run):
    change(run, description=json.dumps({"version": 1}))
    with pytest.raises(TrainingError, match="version is 1 there and 2 here"):
        load_policy(run)
    change(run, description=None)
    with pytest.raises(TrainingError, match="is of an older version"):
        load_policy(run)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("transitions", -1),
        ("transitions", 1.5),
        ("transitions", True),
        ("transitions", 2**70),
        ("seconds", float("nan")),
        ("seconds", float("inf")),
        ("seconds", -1.0),
        ("seconds", "long"),
        ("dropped", "none"),
        ("undone", None),
        ("shares", torch.ones(3)),
        ("shares", torch.tensor([float("nan")])),
        ("shares", "alike"),
        ("torch_rng", torch.zeros(3, dtype=torch.uint8)),
        ("env_rng", [1, 2]),
        ("policy", None),
        ("policy", {"first.weight": torch.zeros(2, 2)}),
        ("critic", [torch.zeros(2)]),
        ("critic", {3: torch.zeros(2)}),
        ("optimiser", {}),
        ("optimiser", {"state": {}, "param_groups": []}),
        ("description", "no JSON"),
        ("description", "[" * 100_000),
        ("description", torch.zeros(2)),
    ],
)
def test_a_damaged_value_is_named(run, name, value):
    change(run, **{name: value})
    with pytest.raises(TrainingError, match=r"checkpoint\.pt") as raised:
        resume(run)
    assert name in str(raised.value) or name == "description"


@pytest.mark.usefixtures("no_curves")
def test_weights_and_moments_that_are_not_finite_are_refused(train, tmp_path):
    trainer, _ = train(tmp_path)
    run, state = trainer.run_folder, trainer.state()
    state["optimiser"]["state"][0]["exp_avg"][0] = float("nan")
    change(run, optimiser=state["optimiser"])
    with pytest.raises(TrainingError, match="optimiser gives: exp_avg does not fit or is not finite"):
        resume(run)
    state["policy"]["log_std"][0] = float("inf")
    change(run, policy=state["policy"])
    with pytest.raises(TrainingError, match=r"policy gives: log_std holds what is no finite number"):
        load_policy(run)


@pytest.mark.usefixtures("no_curves")
def test_an_optimiser_of_other_kinds_of_numbers_is_refused(train, tmp_path):
    trainer, _ = train(tmp_path)
    optimiser = trainer.ppo.optimiser.state_dict()
    optimiser["param_groups"][0]["lr"] = "fast"
    change(trainer.run_folder, optimiser=optimiser)
    with pytest.raises(TrainingError, match="optimiser gives: lr is 'fast'"):
        resume(trainer.run_folder)


def test_a_file_that_is_no_checkpoint_or_none_at_all_is_named(run):
    for content in (b"", b"not a checkpoint", b"PK\x05\x06" + bytes(18)):
        run.checkpoint_file.write_bytes(content)
        with pytest.raises(TrainingError, match="damaged or no checkpoint"):
            load_policy(run)
    run.checkpoint_file.unlink()
    with pytest.raises(TrainingError, match=r"has no checkpoint\.pt; train a run there first"):
        load_policy(run)


def test_a_checkpoint_with_any_bytes_changed_loads_or_is_refused(run):
    sound, draw, refused = run.checkpoint_file.read_bytes(), random.Random(0), 0
    for _ in range(40):
        data = bytearray(sound)
        for _ in range(draw.choice([1, 1, 4, 64])):
            # Half of them in the last part, where the archive's directory is.
            data[draw.choice([draw.randrange(len(data)), -draw.randrange(1, 6000)])] = draw.randrange(256)
        run.checkpoint_file.write_bytes(
            data[: draw.choice([len(data), len(data), draw.randrange(len(data))])]
        )
        try:
            load_policy(run)
        except TrainingError:
            refused += 1
    assert refused > 10


def test_configurations_read_back_equal(tmp_path):
    path = tmp_path / "config.json"
    save_config(TrainConfig(seed=7, wandb="ducks"), path)
    assert load_config(path) == TrainConfig(seed=7, wandb="ducks")


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("minutes", -1, "minutes is -1; it must be above 0"),
        ("minutes", float("nan"), "minutes is nan; it must be above 0"),
        ("minutes", float("inf"), "minutes is inf; it must be above 0"),
        ("evaluate_every_minutes", float("nan"), "evaluate_every_minutes is nan; it must be 0 or more"),
        ("gamma", 1.01, "gamma is 1.01; it must be above 0 and at most 1"),
        ("learning_rate", "fast", "learning_rate is 'fast'; it must be a number"),
        ("learning_rate", True, "learning_rate is True; it must be a number"),
        ("num_envs", 0, "num_envs is 0; it must be a whole number of 1 or more"),
        ("num_envs", 12.5, "num_envs is 12.5; it must be a whole number"),
        ("seed", "0", "seed is '0'; it must be a whole number of 0 or more"),
        ("mirror", 1, "mirror is 1; it must be True or False"),
        ("library", ["walk"], "library is ['walk']; it must be a text"),
        ("kl_low", 0.5, "kl_low is 0.5, above kl_high 0.02"),
        ("minibatches", 10**6, "minibatches is 1000000; 24576 rows make 12288 of two rows each"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_in_code_and_in_a_file(tmp_path, field, value, told):
    with pytest.raises(ConfigError) as raised:
        TrainConfig(**{field: value})
    assert told in str(raised.value)
    if not isinstance(value, float) or math.isfinite(value):  # JSON knows no others
        path = tmp_path / "config.json"
        path.write_text(json.dumps({field: value}), encoding="utf-8")
        with pytest.raises(ConfigError) as raised:
            load_config(path)
        assert str(path) in str(raised.value) and told in str(raised.value)


def test_a_configuration_with_unknown_or_unreadable_content_is_refused(tmp_path):
    path = tmp_path / "config.json"
    for content, told in (
        ('{"speed": 3}', "speed"),
        ('{"minutes": NaN}', "NaN is no JSON number"),
        ("[1]", "must hold a JSON object"),
        ('{"layout": "foo"}', r"layout 'foo' does not exist"),
    ):
        path.write_text(content, encoding="utf-8")
        with pytest.raises(ConfigError, match=told):
            load_config(path)
    with pytest.raises(ContractError, match="layout 'foo' does not exist"):
        TrainConfig(layout="foo")
