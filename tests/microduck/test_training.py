"""A short training from nothing: the same each time, and resumed where it stopped."""

import os
import shutil
import signal
from dataclasses import replace

import pytest
import torch

from hardware.errors import ConfigError, TrainingError
from microduck.cli.console import asked_to_stop
from microduck.learning.config import TrainConfig, load_config
from microduck.learning.log import read_log
from microduck.learning.nine_skills import stepping_row
from microduck.learning.run_folder import RunFolder, load_policy
from microduck.learning.train import Trainer
from microduck.tasks import save_library


def saved(folder):
    """What the last checkpoint in a folder holds."""
    return RunFolder(folder).checkpoint({})[0]


@pytest.mark.usefixtures("no_curves")
def test_equal_seeds_train_equal_policies(train, tmp_path):
    one, rows = train(tmp_path / "one")
    two, _ = train(tmp_path / "two")
    assert [row.transitions for row in rows] == [256, 512]
    for name, value in one.policy.state_dict().items():
        assert torch.equal(value, two.policy.state_dict()[name]), name
    other, _ = train(tmp_path / "other", seed=1)
    assert not torch.equal(one.policy.first.weight, other.policy.first.weight)


@pytest.mark.usefixtures("no_curves")
def test_a_run_goes_on_where_it_stopped(train, tmp_path, small):
    first, _ = train(tmp_path)
    draws = torch.get_rng_state(), first.env.rng_state
    again = Trainer.resume(RunFolder(tmp_path), replace(small, transitions=1024))
    assert again.transitions == 512 and again.seconds == first.seconds > 0
    assert torch.equal(torch.get_rng_state(), draws[0]) and torch.equal(again.env.rng_state, draws[1])
    assert torch.equal(again.policy.first.weight, first.policy.first.weight)
    moments = [next(iter(trainer.ppo.optimiser.state.values()))["exp_avg"] for trainer in (first, again)]
    assert torch.equal(*moments) and bool(moments[0].any())
    assert again.ppo.learning_rate == first.ppo.learning_rate
    again.train(lambda row: None)
    assert again.seconds > first.seconds
    assert [row.transitions for row in read_log(tmp_path / "log.csv")] == [256, 512, 768, 1024]
    policy, library, config, counters = load_policy(RunFolder(tmp_path))
    assert torch.equal(policy.first.weight, again.policy.first.weight)
    assert (list(library.name), config.num_envs) == (["walk"], 32)
    assert (counters["transitions"], counters["checkpoint"]) == (1024, "checkpoint.pt")


@pytest.mark.usefixtures("no_curves")
def test_a_signal_ends_training_between_two_updates_and_the_run_is_saved(tmp_path, small):
    trainer = Trainer.start(RunFolder(tmp_path), replace(small, transitions=10**9))
    usual = signal.getsignal(signal.SIGINT)
    with asked_to_stop() as stopped:
        trainer.train(lambda row: os.kill(os.getpid(), signal.SIGINT), stopped)
    assert saved(tmp_path)["transitions"] == 256
    assert signal.getsignal(signal.SIGINT) is usual


@pytest.mark.usefixtures("no_curves")
def test_an_exception_saves_the_run(tmp_path, small):
    trainer = Trainer.start(RunFolder(tmp_path), replace(small, transitions=10**9))

    def interrupt(row):
        if row.transitions >= 768:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trainer.train(interrupt)
    assert saved(tmp_path)["transitions"] == 768


def test_a_run_can_be_resumed_before_its_first_update(tmp_path, small):
    Trainer.start(RunFolder(tmp_path), small)
    assert Trainer.resume(RunFolder(tmp_path), small).transitions == 0


def test_a_run_that_was_killed_before_it_could_be_resumed_is_begun_anew(tmp_path, small):
    Trainer.start(RunFolder(tmp_path), small)
    (tmp_path / "config.json").unlink()  # which is written last
    assert Trainer.start(RunFolder(tmp_path), small).transitions == 0


@pytest.mark.usefixtures("no_curves")
def test_a_run_is_not_overwritten(train, tmp_path, small):
    train(tmp_path)
    before = (tmp_path / "checkpoint.pt").read_bytes()
    with pytest.raises(TrainingError, match="holds a run already; go on with it"):
        Trainer.start(RunFolder(tmp_path), small)
    assert (tmp_path / "checkpoint.pt").read_bytes() == before


def test_a_folder_without_a_run_is_named(tmp_path):
    with pytest.raises(
        TrainingError, match="nowhere is no training run; make one there with microduck train"
    ):
        load_policy(RunFolder(tmp_path / "nowhere"))


@pytest.mark.usefixtures("no_curves")
def test_a_run_that_starts_from_another_has_its_networks_and_its_own_rewards(train, tmp_path, small):
    first, _ = train(tmp_path / "first")
    # A library with another reward term, saved under the names that the first one has.
    rows = [stepping_row("walk", (0.0, 0.0), (0.3, 0.0), reward_weights={"mean_velocity": 3.0})]
    save_library(rows, tmp_path / "paid.tdz")
    config = replace(small, library=str(tmp_path / "paid.tdz"), start_from=str(tmp_path / "first"))
    second = Trainer.start(RunFolder(tmp_path / "second"), config)
    for mine, its in ((second.policy, first.policy), (second.critic, first.critic)):
        for name, value in its.state_dict().items():
            assert torch.equal(mine.state_dict()[name], value), name
    assert second.transitions == 0 and not second.ppo.optimiser.state
    shutil.rmtree(tmp_path / "first")
    assert Trainer.resume(RunFolder(tmp_path / "second"), config).transitions == 0


@pytest.mark.usefixtures("no_curves")
def test_ducks_differ_at_once_in_a_run_that_starts_from_another(train, tmp_path):
    varied = {"actuator": "xl330", "randomize": 0.8}
    train(tmp_path / "first", **varied)
    second, _ = train(tmp_path / "second", start_from=str(tmp_path / "first"), transitions=256, **varied)
    assert second.env.randomization_strength == 0.8


def test_a_run_does_not_start_from_one_of_other_tasks(tmp_path, small):
    Trainer.start(RunFolder(tmp_path / "first"), small)
    config = replace(small, library="standing", start_from=str(tmp_path / "first"))
    with pytest.raises(TrainingError, match=r"tasks \['walk'\] are only there and \['standing'\] only here"):
        Trainer.start(RunFolder(tmp_path / "second"), config)
    assert not (tmp_path / "second").exists()


def test_a_misfit_to_start_from_is_refused_with_the_options_that_fit_it(tmp_path, small):
    Trainer.start(RunFolder(tmp_path / "first"), replace(small, action_scale=0.5))
    config = replace(small, layout="state", start_from=str(tmp_path / "first"))
    with pytest.raises(TrainingError, match="layout is 'sensor' there and 'state' here") as refused:
        Trainer.start(RunFolder(tmp_path / "second"), config)
    advised = f"--library {tmp_path}/first/tasks.tdz, or another with these tasks, "
    assert advised + "--layout sensor --action-scale 0.5" in str(refused.value)
    fitting = {"library": str(tmp_path / "first/tasks.tdz"), "layout": "sensor", "action_scale": 0.5}
    assert Trainer.start(RunFolder(tmp_path / "second"), replace(config, **fitting)).transitions == 0


@pytest.mark.parametrize(("name", "found"), [("nowhere", "not there"), ("empty", "a folder without a run")])
def test_what_is_no_run_to_start_from_is_named_before_anything_is_written(tmp_path, small, name, found):
    (tmp_path / "empty").mkdir()
    with pytest.raises(TrainingError, match=f"{name}: it is {found}; name a folder that microduck train"):
        Trainer.start(RunFolder(tmp_path / "second"), replace(small, start_from=str(tmp_path / name)))
    assert not (tmp_path / "second").exists()


def test_an_empty_name_of_a_run_to_start_from_is_refused_and_an_old_run_that_has_it_is_read(tmp_path, small):
    with pytest.raises(
        ConfigError, match="start_from is ''; it must name the folder of a run, or be left out"
    ):
        replace(small, start_from="")
    path = tmp_path / "config.json"
    path.write_text('{"start_from": ""}')
    assert load_config(path) == TrainConfig()
