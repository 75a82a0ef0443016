"""What a run writes down, in its own files and for others."""

import sys
from dataclasses import replace
from importlib.util import find_spec

import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from hardware.errors import ConfigError, TrainingError
from microduck.learning import train as training
from microduck.learning.log import LOG_COLUMNS, LogRow, ScoreRow, Table, plot_log, read_log, read_scores
from microduck.learning.run_folder import RunFolder
from microduck.learning.train import Trainer


@pytest.fixture
def log(tmp_path):
    """A log of two updates."""
    table = Table(tmp_path / "log.csv", LOG_COLUMNS)
    table.append([100, *[1.5] * 10, 2, 0])
    table.append([200, *[2.5] * 10, 2, 1])
    return tmp_path / "log.csv"


def test_a_log_reads_back_as_it_was_written(log):
    first, second = read_log(log)
    assert first == LogRow(100, *[1.5] * 10, dropped=2, undone=0)
    assert (second.transitions, second.std, second.undone) == (200, 2.5, 1)


@pytest.mark.parametrize("cut", ["300,3.5,1", "300" + ",3.5" * 10 + ",2,1"])
def test_a_row_that_a_kill_cut_short_is_left_out(log, cut):
    # Even one that looks whole: its last number may have had more digits.
    log.write_text(log.read_text() + cut)
    assert [row.transitions for row in read_log(log)] == [100, 200]
    Table(log, LOG_COLUMNS, keep=200).append([400, *[1.0] * 12])
    assert [row.transitions for row in read_log(log)] == [100, 200, 400]


def test_a_resumed_log_has_one_history(log):
    Table(log, LOG_COLUMNS, keep=150)
    assert [row.transitions for row in read_log(log)] == [100]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"a,b\n1,2\n", "is no table of this run: columns"),
        (b"", "is no table of this run: columns"),
        (b"\xff\xfe\n", "is damaged"),
        (",".join(LOG_COLUMNS).encode() + b"\n" + b"x," * 12 + b"1\n", "is damaged"),
        (",".join(LOG_COLUMNS).encode() + b'\n"' + b"1" * 200_000 + b'"\n', "is damaged"),
    ],
)
def test_a_log_that_is_damaged_or_of_something_else_is_named(tmp_path, content, told):
    path = tmp_path / "log.csv"
    path.write_bytes(content)
    with pytest.raises(TrainingError, match=rf"log\.csv {told}.*move it away"):
        read_log(path)


def test_names_of_tasks_may_hold_what_separates_columns(tmp_path):
    names = ['left, "fast"', "right"]
    Table(tmp_path / "scores.csv", ["transitions", "seconds", *names]).append([5, 1.0, 0.25, 0.75])
    assert read_scores(tmp_path / "scores.csv", names) == [ScoreRow(5, 1.0, (0.25, 0.75))]


def test_curves_are_drawn(log, tmp_path):
    scores = [ScoreRow(100, 1.0, (0.2, 0.4)), ScoreRow(200, 2.0, (0.3, 0.5))]
    plot_log(read_log(log), scores, ["left", "right"], tmp_path / "training.png")
    assert (tmp_path / "training.png").read_bytes().startswith(b"\x89PNG")


@pytest.fixture
def checked(small, monkeypatch):
    """A run that is checked after each update, its one task scored with 0.25."""
    monkeypatch.setattr(training, "task_scores", lambda *arguments: torch.tensor([0.25]))
    return replace(small, evaluate_every_minutes=1e-9)


@pytest.mark.usefixtures("no_curves")
def test_tensorboard_shows_every_number_once_also_of_a_resumed_run(tmp_path, checked):
    run = RunFolder(tmp_path)
    trainer = Trainer.start(run, replace(checked, tensorboard=True))
    first = run.checkpoint_file.read_bytes()
    trainer.train(lambda row: None)
    run.checkpoint_file.write_bytes(first)  # as if killed before the next was written
    Trainer.resume(run, replace(checked, tensorboard=True, transitions=768)).train(lambda row: None)
    shown = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    rows = read_log(run.log_file)
    assert set(shown.Tags()["scalars"]) == {
        *(f"training/{name}" for name in LOG_COLUMNS), "score/walk", "score_of_worst_task",
    }  # fmt: skip
    rewards = shown.Scalars("training/reward")
    assert [point.step for point in rewards] == [256, 512, 768]
    assert [point.value for point in rewards] == pytest.approx([row.reward for row in rows])
    assert [(point.step, point.value) for point in shown.Scalars("score/walk")] == [
        (256, 0.25), (512, 0.25), (768, 0.25),
    ]  # fmt: skip


def test_services_that_are_not_installed_are_named_before_a_folder_is_made(tmp_path, small, monkeypatch):
    for module, setting in (("wandb", {"wandb": "ducks"}), ("tensorboard", {"tensorboard": True})):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(ConfigError, match=f"{module} is not installed: pip install {module}, or train"):
            Trainer.start(RunFolder(tmp_path / "run"), replace(small, **setting))
    assert not (tmp_path / "run").exists()


@pytest.mark.skipif(find_spec("wandb") is None, reason="Weights & Biases is optional, and not installed")
@pytest.mark.usefixtures("no_curves")
def test_weights_and_biases_go_on_with_one_run_offline(tmp_path, checked, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    run, config = RunFolder(tmp_path / "duck"), replace(checked, wandb="ducks")
    Trainer.start(run, config).train(lambda row: None)
    name = (run.path / "wandb-run.txt").read_text()
    Trainer.resume(run, replace(config, transitions=768)).train(lambda row: None)
    assert (run.path / "wandb-run.txt").read_text() == name
    assert len(list((run.path / "wandb").glob(f"offline-run-*-{name}"))) == 2
    (run.path / "wandb-run.txt").write_text("../elsewhere")
    with pytest.raises(TrainingError, match="names no run; remove it to begin another"):
        Trainer.resume(run, replace(config, transitions=1024)).train(lambda row: None)
