"""What goes wrong in training is dropped, undone or named, and costs no checkpoint."""

import resource
import shutil
import signal
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from hardware.errors import TrainingError
from microduck.learning.log import read_log
from microduck.learning.run_folder import RunFolder
from microduck.learning.train import Trainer
from microduck.rewards import REWARD_TERMS

pytestmark = pytest.mark.usefixtures("no_curves")
STEPS = 8
"""Of a batch: how often the environment asks a term for its value."""


@pytest.fixture
def term():
    """A term that a user registered: set what it returns at each of the steps to come; 0 beyond."""
    values = []

    def function(features, params):
        return torch.full_like(features["upright"], values.pop(0) if values else 0.0)

    REWARD_TERMS.register("of_a_user", weight=1.0, per_second=False)(function)
    yield values
    REWARD_TERMS.unregister("of_a_user")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_batch_with_a_reward_that_is_not_finite_is_dropped_and_counted(
    tmp_path, small, term, caplog, value
):
    trainer = Trainer.start(RunFolder(tmp_path), small)
    term += [0.0] * 5 + [value]
    trainer.train(lambda row: None)
    assert "reward terms ['of_a_user'] returned NaN or infinity" in caplog.text
    rows = read_log(tmp_path / "log.csv")
    assert [(row.transitions, row.dropped) for row in rows] == [(256, 1), (512, 1)]
    assert Trainer.resume(RunFolder(tmp_path), small).faults.dropped == 1


def test_rewards_that_are_never_finite_end_training_with_a_checkpoint(tmp_path, small, term):
    trainer = Trainer.start(RunFolder(tmp_path), replace(small, transitions=768))
    term += [0.0] * STEPS + [float("nan")] * 100
    with pytest.raises(
        TrainingError, match=r"10 batches in a row .*\['of_a_user'\].*microduck resume goes on"
    ):
        trainer.train(lambda row: None)
    assert len(term) == 90
    again = Trainer.resume(RunFolder(tmp_path), small)
    assert (again.transitions, again.faults.dropped) == (256, 10)


def test_batches_that_are_dropped_now_and_then_do_not_end_training(tmp_path, small, term):
    trainer = Trainer.start(RunFolder(tmp_path), small)
    bad, good = [float("nan")], [0.0] * STEPS
    term += bad * 9 + good + bad * 9 + good
    trainer.train(lambda row: None)
    assert (trainer.transitions, trainer.faults.dropped) == (512, 18)


@pytest.mark.parametrize(
    ("value", "cause"),
    [
        (1e30, "a loss is not finite"),  # whose square no float32 holds
        (3e38, "a gradient is not finite"),  # nor their sum
    ],
)
def test_an_update_that_went_wrong_is_undone_and_counted(tmp_path, small, term, caplog, value, cause):
    trainer = Trainer.start(RunFolder(tmp_path), replace(small, transitions=256))
    before = [value.clone() for value in trainer.policy.state_dict().values()]
    term += [value] * STEPS
    trainer.train(lambda row: None)
    assert cause in caplog.text
    assert read_log(tmp_path / "log.csv") == []
    again = Trainer.resume(RunFolder(tmp_path), small)
    assert (again.transitions, again.faults.undone) == (256, 1)
    for old, new in zip(before, again.policy.state_dict().values(), strict=True):
        assert torch.equal(old, new)
    again.train(lambda row: None)
    assert [(row.transitions, row.undone) for row in read_log(tmp_path / "log.csv")] == [(512, 1)]
    assert not torch.equal(trainer.policy.first.weight, again.policy.first.weight)


def test_updates_that_always_go_wrong_end_training(tmp_path, small, term):
    trainer = Trainer.start(RunFolder(tmp_path), replace(small, transitions=10**9))
    term += [3e38] * 100
    with pytest.raises(TrainingError, match=r"10 batches in a row .* an update was undone: a gradient"):
        trainer.train(lambda row: None)
    assert Trainer.resume(RunFolder(tmp_path), small).faults.undone == 10


def overcommits():
    """Whether this machine promises memory that it does not have, and ends processes that use it."""
    setting = Path("/proc/sys/vm/overcommit_memory")
    return setting.exists() and setting.read_text().strip() == "1"


@pytest.mark.skipif(overcommits(), reason="memory that this machine lacks is promised")
def test_too_many_ducks_for_the_memory_are_named_before_a_file_is_written(tmp_path, small):
    with pytest.raises(
        TrainingError,
        match=r"out of memory .* 1,000,000,000 ducks x 8 steps = 8,000,000,000 transitions a batch; "
        r"lower --num-envs, or --steps",
    ):
        Trainer.start(RunFolder(tmp_path / "run"), replace(small, num_envs=10**9))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("allocate", [lambda: torch.empty(10**17), lambda: bytearray(10**17)])
def test_memory_that_runs_out_in_training_leaves_a_checkpoint_for_fewer_ducks(
    train, tmp_path, small, allocate
):
    trainer, _ = train(tmp_path)
    trainer.config = replace(trainer.config, transitions=1024)
    with pytest.raises(TrainingError, match=r"out of memory .*microduck resume takes both options"):
        trainer.train(lambda row: allocate())
    fewer = Trainer.resume(RunFolder(tmp_path), replace(small, num_envs=16, transitions=896))
    fewer.train(lambda row: None)
    assert [row.transitions for row in read_log(tmp_path / "log.csv")] == [256, 512, 768, 896]


@contextmanager
def files_no_larger_than(size):
    """As if the disk were full: what is written goes so far, and then fails."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    usual = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, usual)


def test_a_full_disk_leaves_the_checkpoint_before(train, tmp_path, small):
    trainer, _ = train(tmp_path)
    files = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    trainer.config = replace(trainer.config, transitions=1024)
    with (
        files_no_larger_than(len(files["checkpoint.pt"]) // 2),
        pytest.raises(
            TrainingError, match=r"cannot write .*checkpoint\.pt: File too large.*microduck resume"
        ),
    ):
        trainer.train(lambda row: None)
    assert (tmp_path / "checkpoint.pt").read_bytes() == files["checkpoint.pt"]
    assert {path.name for path in tmp_path.iterdir()} == files.keys()  # nothing half written
    again = Trainer.resume(RunFolder(tmp_path), trainer.config)
    again.train(lambda row: None)
    assert [row.transitions for row in read_log(tmp_path / "log.csv")] == [256, 512, 768, 1024]


def test_a_full_disk_in_the_midst_of_a_log_row_is_named_and_costs_no_row_before(train, tmp_path, small):
    trainer, _ = train(tmp_path)
    trainer.config = replace(trainer.config, transitions=1024)
    size = (tmp_path / "log.csv").stat().st_size
    with files_no_larger_than(size + 20), pytest.raises(TrainingError, match="cannot write"):
        trainer.train(lambda row: None)
    assert [row.transitions for row in read_log(tmp_path / "log.csv")] == [256, 512]
    Trainer.resume(RunFolder(tmp_path), trainer.config).train(lambda row: None)
    assert [row.transitions for row in read_log(tmp_path / "log.csv")] == [256, 512, 768, 1024]


def test_a_folder_that_is_gone_is_named(tmp_path, small):
    trainer = Trainer.start(RunFolder(tmp_path / "run"), small)
    with pytest.raises(TrainingError, match=r"cannot write .*checkpoint\.pt: No such file"):
        trainer.train(lambda row: shutil.rmtree(tmp_path / "run"))


def test_a_place_where_no_folder_can_be_made_is_named(tmp_path, small):
    (tmp_path / "file").write_text("")
    with pytest.raises(TrainingError, match=r"cannot write .*file/run: Not a directory"):
        Trainer.start(RunFolder(tmp_path / "file" / "run"), small)
