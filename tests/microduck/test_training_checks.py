"""Checks of every task: the best policy by its worst task is kept, and tasks that lag are drawn more."""

import time
from dataclasses import replace

import pytest
import torch

from hardware.errors import RewardError, TaskError
from microduck.env import MicroDuckEnv
from microduck.evaluation import NOMINAL, ROUGH, Check, TaskResult
from microduck.learning import checks
from microduck.learning import train as training
from microduck.learning.log import read_scores
from microduck.learning.run_folder import RunFolder, load_policy, make_networks
from microduck.learning.train import Trainer
from microduck.randomization import Randomization
from microduck.tasks import save_library, stack_tasks, standing_task, tracking_task
from microduck.tasks.shares import by_success

ALWAYS = 1e-9
"""Time between two checks that is over after every update [min]."""


@pytest.fixture
def two(tmp_path, small):
    """A run on two tasks, `standing` and `tracking+0.03`, that is checked after each update."""
    save_library(stack_tasks([standing_task(weight=3.0), tracking_task()]), tmp_path / "two.tdz")
    library = str(tmp_path / "two.tdz")
    return replace(small, library=library, transitions=256, evaluate_every_minutes=ALWAYS)


@pytest.fixture
def scores(monkeypatch):
    """What the checks to come find."""
    found = []

    def next_scores(*arguments):
        score = found.pop(0)
        if isinstance(score, Exception):
            raise score
        return torch.tensor(score)

    monkeypatch.setattr(training, "task_scores", next_scores)
    return found


def train_on(folder, config, updates):
    """Go on with a run for some updates, each checked; return the trainer, its policies and the checks."""
    policies, rows = [], []
    trainer = Trainer.resume(RunFolder(folder), replace(config, transitions=256 * updates))
    trainer.train(lambda row: policies.append(trainer.policy.first.weight.clone()), notify_check=rows.append)
    return trainer, policies, rows


@pytest.mark.usefixtures("no_curves")
def test_the_policy_with_the_best_worst_task_is_kept(tmp_path, two, scores):
    run = RunFolder(tmp_path / "run")
    Trainer.start(run, two)
    assert not run.best_file.exists()
    scores += [[0.5, 0.1], [0.2, 0.3], [0.9, 0.15], [0.2, 0.2], [0.2, 0.9]]
    _, policies, rows = train_on(run.path, two, 3)
    # The second has the best worst task, whatever the mean of the third.
    assert [row.best for row in rows] == [True, True, False]
    assert torch.equal(load_policy(run)[0].first.weight, policies[1])
    assert load_policy(run)[3]["checkpoint"] == "best.pt" and load_policy(run)[3]["transitions"] == 512
    assert torch.equal(load_policy(run, last=True)[0].first.weight, policies[2])
    # A resumed run knows its best: an equal worst task counts by the mean.
    _, policies, rows = train_on(run.path, two, 5)
    assert [row.best for row in rows] == [False, True]
    assert torch.equal(load_policy(run)[0].first.weight, policies[1])
    written = read_scores(run.scores_file, ["standing", "tracking+0.03"])
    assert [row.transitions for row in written] == [256, 512, 768, 1024, 1280]
    assert written[2].scores == pytest.approx((0.9, 0.15))


def test_shares_follow_what_each_task_lacks():
    share, success = torch.tensor([0.75, 0.25]), torch.tensor([0.8, 0.4])
    # What is lacking weighs 0.75 * 0.2 = 0.15 and 0.25 * 0.6 = 0.15: halves; a quarter of each share stays.
    assert by_success(share, success, 0.25).tolist() == pytest.approx([0.5625, 0.4375])
    assert by_success(share, torch.ones(2), 0.25).tolist() == pytest.approx([0.75, 0.25])


@pytest.mark.usefixtures("no_curves")
def test_tasks_that_lag_are_drawn_more_often_also_by_a_resumed_run(tmp_path, two, scores):
    run = RunFolder(tmp_path / "run")
    assert Trainer.start(run, two).env.task_shares.tolist() == pytest.approx([0.75, 0.25])
    scores += [[0.8, 0.4]]
    trainer, _, _ = train_on(run.path, two, 1)
    assert trainer.env.task_shares.tolist() == pytest.approx([0.5625, 0.4375])
    assert Trainer.resume(run, two).env.task_shares.tolist() == pytest.approx([0.5625, 0.4375])


def test_an_environment_draws_tasks_by_the_shares_it_is_given():
    env = MicroDuckEnv(tasks=stack_tasks([standing_task(), tracking_task()]), num_envs=20, seed=0)
    env.task_shares = torch.tensor([0.0, 3.0])
    assert env.task_shares.tolist() == [0.0, 1.0]
    assert env.reset()["task_id"].flatten().tolist() == [1] * 20
    with pytest.raises(TaskError, match="3 weights were given for 2 tasks"):
        env.task_shares = torch.ones(3)
    with pytest.raises(TaskError, match="must be finite, 0 or more, and not all 0"):
        env.task_shares = torch.tensor([float("nan"), 1.0])


@pytest.mark.usefixtures("no_curves")
def test_a_task_that_is_never_drawn_is_not_the_worst(tmp_path, small, scores):
    save_library(stack_tasks([standing_task(weight=0.0), tracking_task()]), tmp_path / "two.tdz")
    config = replace(small, library=str(tmp_path / "two.tdz"), evaluate_every_minutes=ALWAYS)
    run = RunFolder(tmp_path / "run")
    Trainer.start(run, config)
    scores += [[0.1, 0.5], [0.2, 0.4]]
    _, _, rows = train_on(run.path, config, 2)
    assert [row.best for row in rows] == [True, False]


@pytest.mark.usefixtures("no_curves")
def test_a_check_that_meets_a_reward_that_is_not_finite_is_left_out(tmp_path, two, scores, caplog):
    run = RunFolder(tmp_path / "run")
    Trainer.start(run, two)
    scores += [RewardError("reward terms ['of_a_user'] returned NaN"), [0.2, 0.3]]
    trainer, _, rows = train_on(run.path, two, 2)
    assert [row.transitions for row in rows] == [512]
    assert trainer.faults.dropped == 1 and "of_a_user" in caplog.text


@pytest.mark.usefixtures("no_curves")
def test_the_time_of_a_check_counts(tmp_path, two, monkeypatch):
    run = RunFolder(tmp_path / "run")
    Trainer.start(run, two)
    monkeypatch.setattr(training, "task_scores", lambda *_: time.sleep(0.25) or torch.zeros(2))
    trainer, _, rows = train_on(run.path, two, 1)
    assert trainer.seconds == rows[0].seconds >= 0.25


@pytest.mark.usefixtures("no_curves")
def test_a_run_that_was_checked_is_checked_at_its_end(tmp_path, two, scores):
    run = RunFolder(tmp_path / "run")
    Trainer.start(run, two)
    scores += [[0.1, 0.1]]
    train_on(run.path, two, 1)
    scores += [[0.2, 0.2]]
    _, _, rows = train_on(run.path, replace(two, evaluate_every_minutes=1000.0), 3)
    assert [row.transitions for row in rows] == [768]


def test_a_check_draws_nothing_that_training_would_draw(small, monkeypatch):
    monkeypatch.setattr(checks, "STEPS", 60)
    library = stack_tasks([standing_task(), tracking_task()])
    policy, _ = make_networks(small, 2)
    before = torch.get_rng_state()
    scores = checks.task_scores(policy, library, small)
    assert torch.equal(torch.get_rng_state(), before)
    assert scores.shape == (2,) and bool(((scores >= 0) & (scores <= 1)).all())
    assert torch.equal(checks.task_scores(policy, library, small), scores)


def test_the_score_of_a_task_is_the_worse_of_nominal_ducks_and_of_those_that_differ(small, monkeypatch):
    told = []

    def evaluate(policy, library, options):
        told.append(options)
        parts = (0.25, 1.0) if options.randomization is None else (0.5, 0.75)
        return [
            TaskResult("", (), (Check("survival", (0, 0, 0), part, 1.0, at_least=True),)) for part in parts
        ]

    monkeypatch.setattr(checks, "evaluate", evaluate)
    config = replace(small, layout="state", action_scale=0.5, substeps=2, actuator="xl330", randomize=0.5)
    assert checks.task_scores(None, None, config, seed=3).tolist() == [0.25, 0.75]
    for options in told:
        assert (options.layout, options.action_scale, options.seed) == ("state", 0.5, 3)
        physics = options.physics_options
        assert (physics.substeps, physics.threads, physics.actuator) == (2, 1, "xl330")
    plain, rough = told
    assert (plain.randomization, plain.criteria) == (None, NOMINAL)
    assert (rough.randomization, rough.criteria) == (Randomization.full().scaled(0.5), ROUGH)
    assert checks.task_scores(None, None, small).tolist() == [0.25, 1.0]
    assert len(told) == 3
