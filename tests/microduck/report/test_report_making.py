"""From a folder to a report: runs and bundles, other ducks, films, and the command."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from export.bundle import BundleSpec, write_bundle
from export.cli.app import run as microduck
from export.run import export_run
from hardware import contract
from hardware.errors import ArchiveError, BundleError, ConfigError, DuckError, ExportError, RenderError
from microduck import render
from microduck.cli.evaluate import evaluate as evaluate_command
from microduck.learning.config import TrainConfig
from microduck.learning.run_folder import RunFolder
from microduck.learning.train import Trainer
from microduck.physics.model import load_model
from microduck.policy import SkillPolicy
from microduck.randomization import Twin, save_twin
from microduck.render import Renderer
from microduck.report.films import SHOT, films
from microduck.report.plan import Plan
from microduck.report.study import conduct
from microduck.report.subject import digest_of, load_subject
from microduck.tasks import save_library, speed_range_task, stack_tasks, standing_task

SHORT = Plan(episodes=1, seconds=1.5, randomize=False, video=False)
SMALL = TrainConfig(num_envs=16, steps=4, transitions=64, minibatches=1, epochs=1, threads=1)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run of two tasks that was never trained, and its bundle."""
    folder = tmp_path_factory.mktemp("made")
    save_library([standing_task(name="stand"), speed_range_task(0.1, 0.2, name="walk")], folder / "two.tdz")
    Trainer.start(RunFolder(folder / "run"), replace(SMALL, library=str(folder / "two.tdz")))
    export_run(folder / "run", folder / "bundle")
    return folder


@pytest.fixture
def copied(made, tmp_path):
    """Copies of the run and the bundle that a test may damage."""
    for source in (made / "run", made / "bundle"):
        (tmp_path / source.name).mkdir()
        for path in source.iterdir():
            (tmp_path / source.name / path.name).write_bytes(path.read_bytes())
    return tmp_path


def observations(count):
    return torch.randn(count, contract.width("sensor"), generator=torch.Generator().manual_seed(1))


# Subjects --------------------------------------------------------------------------------------------------


def test_a_run_and_its_bundle_are_one_policy(made):
    run, bundle = load_subject(made / "run"), load_subject(made / "bundle")
    assert (run.kind, bundle.kind) == ("run", "bundle")
    assert run.library.names == bundle.library.names == ("stand", "walk")
    assert (run.layout, run.action_scale) == (bundle.layout, bundle.action_scale) == ("sensor", 1.0)
    task_id = torch.tensor([[0], [1], [1], [0]])
    with torch.no_grad():
        wanted = run.actor(observations(4), task_id)
    assert torch.allclose(bundle.actor(observations(4), task_id), wanted, atol=1e-5)
    assert run.training["transitions"] == 0


def test_a_bundle_that_lists_its_skills_in_another_order_keeps_each_skills_actions(copied):
    path = copied / "bundle" / "manifest.json"
    manifest = json.loads(path.read_text())
    before = load_subject(copied / "bundle")
    manifest["skills"].reverse()
    path.write_text(json.dumps(manifest))
    after = load_subject(copied / "bundle")
    assert after.library.names == ("walk", "stand")
    task_id = torch.tensor([[0], [1]])
    assert torch.equal(after.actor(observations(2), task_id), before.actor(observations(2), 1 - task_id))


def test_a_digest_changes_with_any_parameter():
    policy = SkillPolicy(55, 2)
    first = digest_of(policy)
    assert len(first) == 64 and digest_of(policy) == first
    with torch.no_grad():
        policy.normaliser.mean[3] += 1e-3
    assert digest_of(policy) != first


@pytest.mark.parametrize(
    ("file", "content", "error"),
    [
        ("run/config.json", b"{", ConfigError),
        ("run/checkpoint.pt", b"PK\x03\x04 and no more", DuckError),
        ("run/tasks.tdz", b"no archive", ArchiveError),
        ("bundle/manifest.json", b"[]", BundleError),
        ("bundle/policy.onnx", b"\x08\x08 no graph", BundleError),
        ("bundle/tasks.tdz", b"no archive", BundleError),
    ],
)
def test_a_damaged_folder_is_refused_by_the_file_at_fault(copied, file, content, error):
    (copied / file).write_bytes(content)
    with pytest.raises(error, match=file.rpartition("/")[2]):
        load_subject(copied / file.partition("/")[0])


def test_a_folder_that_holds_neither_is_refused(tmp_path):
    for folder in (tmp_path, tmp_path / "absent"):
        with pytest.raises(BundleError, match="is neither a training run nor a skill bundle"):
            load_subject(folder)


def test_a_bundle_for_another_gain_is_refused(tmp_path):
    library = stack_tasks([standing_task()])
    policy = SkillPolicy(contract.width("sensor"), 1)
    write_bundle(BundleSpec(policy, "sensor", 1.0, 120, library, {}, {}), tmp_path / "b")
    with pytest.raises(BundleError, match="for a P register of 120, not for the 200 that is simulated"):
        load_subject(tmp_path / "b")


# Studies ---------------------------------------------------------------------------------------------------


def test_a_study_steps_as_often_as_it_says_and_keeps_the_fastest_command(made):
    steps = []
    study = conduct(load_subject(made / "run"), SHORT, lambda: steps.append(1))
    assert len(steps) == SHORT.steps * SHORT.rounds == 75
    assert [result.task for result in study.plain] == ["stand", "walk"]
    assert study.rough is None and study.conditions == "the duck as modelled, position servos"
    assert study.traces["walk"][0].command == (0.2, 0.0, 0.0)
    assert 10 < len(study.traces["stand"][1].qpos) <= 75


def test_ducks_that_differ_do_otherwise_than_the_modelled_one(made):
    plan = Plan(episodes=2, seconds=1.5)
    steps = []
    study = conduct(load_subject(made / "run"), plan, lambda: steps.append(1))
    assert len(steps) == plan.steps * plan.rounds == 150
    assert [result.task for result in study.rough] == ["stand", "walk"]
    assert study.rough[0].points != study.plain[0].points
    assert {check.criterion for result in study.rough for check in result.checks} == {"survival", "speed"}


def test_a_twin_takes_the_place_of_the_modelled_duck(made, tmp_path):
    subject, plain = load_subject(made / "run"), SHORT
    save_twin(Twin(voltage=6.5, encoder_offset=(0.05,) * 14), tmp_path / "limping.toml")
    study = conduct(subject, Plan(1, 1.5, twin=tmp_path / "limping.toml"), lambda: None)
    assert study.conditions == "the duck of limping.toml, XL330 servos"
    assert study.rough is None
    assert study.plain[0].points != conduct(subject, plain, lambda: None).plain[0].points
    with pytest.raises(ConfigError, match=r"absent\.toml is not a file"):
        conduct(subject, Plan(1, 1.5, twin=tmp_path / "absent.toml"), lambda: None)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"episodes": 0}, "episodes is 0"),
        ({"seconds": 1.0}, r"seconds is 1; it must be in \[1.5, 600\]"),
        ({"seconds": float("nan")}, "seconds is nan"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_plans_that_make_no_report_are_refused(changes, said):
    with pytest.raises(ConfigError, match=said):
        Plan(**changes)


# Films -----------------------------------------------------------------------------------------------------


def test_every_task_is_filmed(study, result, trace):
    try:
        Renderer(load_model(), SHOT).close()
    except RenderError as error:
        pytest.skip(str(error))
    short, seen = replace(trace, qpos=trace.qpos[:6]), []
    both = {name: (result(name).points[0], short) for name in ("walk", "hop")}
    made = films(replace(study(), traces=both), lambda: seen.append(1))
    assert list(made) == ["walk", "hop"] and len(seen) == 2
    assert all(mp4[4:8] == b"ftyp" for mp4 in made.values())


def test_a_report_goes_without_films_where_nothing_can_be_drawn(made, tmp_path, monkeypatch):
    def refuse(width, height):
        raise RenderError("no OpenGL context from egl")

    monkeypatch.setattr(render, "open_context", refuse)
    plan = Plan(episodes=1, seconds=1.5, randomize=False)
    evaluate_command(made / "run", out=tmp_path, plan=plan)
    text = (tmp_path / "report.html").read_text()
    assert "No films: no OpenGL context from egl." in text and "<video" not in text


# The command -----------------------------------------------------------------------------------------------

FLAGS = ("--episodes", "1", "--seconds", "1.5", "--no-video", "--no-randomize")


def test_the_command_leaves_its_report_in_the_folder_and_export_takes_it_along(copied, capsys):
    assert microduck(["eval", str(copied / "run"), *FLAGS]) == 0
    assert "report.html" in capsys.readouterr().out
    data = json.loads((copied / "run" / "report.json").read_text())
    assert (data["provenance"]["seed"], data["provenance"]["episodes"]) == (10_000, 1)
    assert data["subject"]["policy_sha256"] == load_subject(copied / "run").digest
    evaluation = export_run(copied / "run", copied / "bundle")["evaluation"]
    assert [task["task"] for task in evaluation["tasks"]] == ["stand", "walk"]
    assert evaluation["policy_sha256"] == data["subject"]["policy_sha256"]


def test_a_report_about_another_policy_is_not_exported(copied):
    data = {"kind": "microduck-report", "schema": 1, "provenance": {}, "tasks": []}
    text = json.dumps({**data, "subject": {"policy_sha256": "00"}})
    (copied / "run" / "report.json").write_text(text)
    with pytest.raises(ExportError, match=r"is about another policy.*run `microduck eval` again"):
        export_run(copied / "run", copied / "bundle")


def test_a_bundle_with_its_report_can_be_exported_again_and_loses_it(copied):
    assert microduck(["eval", str(copied / "bundle"), *FLAGS]) == 0
    export_run(copied / "run", copied / "bundle")
    names = {path.name for path in (copied / "bundle").iterdir()}
    assert names == {"policy.onnx", "tasks.tdz", "manifest.json"}


def test_two_folders_are_compared(made, tmp_path):
    folders = [str(made / "run"), "--compare", str(made / "bundle")]
    assert microduck(["eval", *folders, "--out", str(tmp_path), *FLAGS]) == 0
    data = json.loads((tmp_path / "report.json").read_text())
    assert data["compared_with"]["subject"]["kind"] == "bundle"
    # One policy, in torch and in onnxruntime: rounding apart, nothing is better or worse.
    shared = [each for each in data["differences"] if each["measure"] in ("survival", "speed error", "power")]
    assert len(shared) == 5
    assert {each["mark"] for each in shared} == {"same"}
    assert np.isclose(shared[0]["this"], shared[0]["other"])


def test_what_cannot_be_evaluated_ends_with_a_message(tmp_path, capsys):
    assert microduck(["eval", str(tmp_path)]) == 1
    assert "is neither a training run nor a skill bundle" in capsys.readouterr().err
