"""Reward terms of a user's own: the command line, which does not know them, names the call that does."""

from __future__ import annotations

import pytest

from export.cli import main
from microduck import register_reward, save_library
from microduck.learning.config import TrainConfig
from microduck.learning.log import read_log
from microduck.learning.nine_skills import stepping_row
from microduck.learning.run_folder import RunFolder
from microduck.learning.train import Trainer
from microduck.rewards import REWARD_TERMS

SCRIPT = """
from pathlib import Path
from microduck.learning.config import TrainConfig
from microduck.learning.run_folder import RunFolder
from microduck.learning.train import Trainer
"""
SMALL = {"num_envs": 16, "steps": 8, "transitions": 128, "evaluate_every_minutes": 0.0}


@pytest.fixture
def register(monkeypatch):
    """Registers a term, and forgets it at the end."""
    monkeypatch.setattr(REWARD_TERMS, "_terms", dict(REWARD_TERMS._terms))
    return lambda: register_reward("low_head")(lambda features, params: -features["head_pitch"].clamp(-1, 1))


@pytest.fixture
def forget():
    """Makes this process one that never registered the term, as the command line is."""
    return lambda: REWARD_TERMS._terms.pop("low_head")


@pytest.fixture
def peck(register, forget, tmp_path):
    """A run whose library has that term, and its library beside it."""
    register()
    row = stepping_row("peck", (0.0, 0.0), (0.3, 0.0), reward_weights={"low_head": 1.0})
    save_library(row, tmp_path / "peck.tdz")
    Trainer.start(RunFolder(tmp_path / "run"), TrainConfig(library=str(tmp_path / "peck.tdz"), **SMALL))
    forget()
    return tmp_path


def lines_in(message: str) -> str:
    """Return the lines of Python that a message shows, which are those set in."""
    return "\n".join(line[4:] for line in message.splitlines() if line.startswith("    "))


def named(capsys, *arguments: str) -> str:
    """Run a command that fails and return what it says."""
    assert main(list(arguments)) == 1
    said = capsys.readouterr().err
    assert "'low_head', which task 'peck' weighs 1, is not registered" in said
    assert "joint_velocity" not in said  # and not all the terms there are
    return lines_in(said)


@pytest.mark.parametrize(("options", "transitions"), [((), 128), (("--transitions", "256"), 256)])
def test_what_resume_names_goes_on_with_the_run(peck, register, capsys, options, transitions):
    lines = named(capsys, "resume", str(peck / "run"), *options)
    register()
    exec(SCRIPT + lines, {"print": lambda row: None})
    assert read_log(peck / "run" / "log.csv")[-1].transitions == transitions


def test_what_train_names_trains_that_library(peck, register, capsys):
    options = ["--library", str(peck / "peck.tdz"), "--num-envs", "16", "--steps", "8", "--seed", "3"]
    lines = named(capsys, "train", str(peck / "new"), *options, "--transitions", "128")
    assert not (peck / "new").exists()
    register()
    exec(SCRIPT + lines, {"print": lambda row: None})
    config = RunFolder(peck / "new").config()
    assert (config.seed, config.num_envs, config.transitions) == (3, 16, 128)


@pytest.mark.usefixtures("register")
def test_a_term_that_is_spelled_wrong_is_told_what_is_near_it(tmp_path):
    register_reward("trackin")(lambda features, params: features["head_pitch"])
    row = stepping_row("peck", (0.0, 0.0), (0.3, 0.0), reward_weights={"trackin": 1.0})
    save_library(row, tmp_path / "peck.tdz")
    REWARD_TERMS._terms.pop("trackin")
    with pytest.raises(ValueError, match=r"'trackin', .* is not registered \(near it are \['tracking'"):
        Trainer.start(RunFolder(tmp_path / "run"), TrainConfig(library=str(tmp_path / "peck.tdz"), **SMALL))
