import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from export import bundle as bundle_module
from export.bundle import BundleSpec, write_bundle
from firmware_bridge.skills.bundle import load_bundle
from hardware import contract
from hardware.errors import ExportError, TaskError
from microduck.policy import SkillPolicy
from microduck.tasks import load_library, stack_tasks, standing_task, tracking_task

MakeSpec = Callable[..., BundleSpec]


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_bundle_holds_three_files_and_nothing_lies_beside_it(make_spec: MakeSpec, tmp_path: Path) -> None:
    write_bundle(make_spec(), tmp_path / "new" / "walk")
    assert set(content(tmp_path / "new" / "walk")) == {"policy.onnx", "tasks.tdz", "manifest.json"}
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["walk"]


def test_manifest_states_contract_files_and_provenance(make_spec: MakeSpec, tmp_path: Path) -> None:
    manifest = write_bundle(make_spec(), tmp_path / "walk")
    files = content(tmp_path / "walk")
    assert json.loads(files["manifest.json"]) == manifest
    assert list(manifest) == [
        *(
            "schema",
            "kind",
            "contract",
            "contract_digest",
            "policy",
            "tasks",
            "skills",
            "training",
            "evaluation",
        )
    ]
    assert (manifest["schema"], manifest["kind"]) == (1, "microduck-skill-bundle")
    assert manifest["contract"] == contract.describe("sensor", 0.35, 200)
    assert manifest["contract_digest"] == contract.digest(manifest["contract"])
    for entry in (manifest["policy"], manifest["tasks"]):
        assert entry["sha256"] == hashlib.sha256(files[entry["file"]]).hexdigest()
    policy = manifest["policy"]
    assert (policy["opset"], policy["ir_version"]) == (17, 8)
    assert policy["inputs"] == {"observation": [1, 55], "task_id": [1, 1]}
    assert policy["output"] == {"action": [1, 14]}
    assert policy["parity"]["observations"] == 1000
    assert policy["parity"]["max_abs_difference"] <= 1e-5
    assert manifest["training"] == {"seed": 3, "environments": 1024}
    assert manifest["evaluation"] == {"survival": 1.0}


def test_skills_keep_their_rows_at_full_precision(make_spec: MakeSpec, tmp_path: Path) -> None:
    standing, walking = write_bundle(make_spec(), tmp_path / "walk")["skills"]
    assert (standing["name"], standing["task_id"]) == ("standing", 0)
    assert standing["command_low"] == standing["command_high"] == [0.0, 0.0, 0.0]
    assert standing["gait_frequency_hz"] == float(np.float32(1.8913))  # not 1.891 nor 1.89
    assert standing["gait_frequency_per_mps"] == 0.0
    assert (walking["name"], walking["task_id"]) == ("speed_range+0.10..+0.30", 1)
    assert walking["command_low"] == [float(np.float32(0.1)), 0.0, -0.5]
    assert walking["command_high"] == [float(np.float32(0.3)), 0.0, 0.25]
    assert (walking["gait_frequency_hz"], walking["gait_frequency_per_mps"]) == (1.0, 5.0)


def test_robot_gets_the_actions_of_the_trained_policy(
    make_spec: MakeSpec, policy: SkillPolicy, tmp_path: Path
) -> None:
    write_bundle(make_spec(), tmp_path / "walk")
    loaded = load_bundle(tmp_path / "walk")
    observation = np.linspace(-1, 1, 55, dtype=np.float32)
    for task_id, name in enumerate(("standing", "speed_range+0.10..+0.30")):
        action = loaded.act(observation, loaded.skill(name))
        with torch.no_grad():
            wanted = policy(torch.from_numpy(observation), torch.tensor([task_id]))
        assert np.abs(action - wanted.numpy()).max() <= 1e-5


def test_older_bundle_is_replaced(make_spec: MakeSpec, tmp_path: Path) -> None:
    write_bundle(make_spec(training={"run": "old"}), tmp_path / "walk")
    write_bundle(make_spec(training={"run": "new"}), tmp_path / "walk")
    assert json.loads((tmp_path / "walk" / "manifest.json").read_text())["training"] == {"run": "new"}
    assert [path.name for path in tmp_path.iterdir()] == ["walk"]


def test_empty_folder_and_link_to_a_bundle_are_filled(make_spec: MakeSpec, tmp_path: Path) -> None:
    (tmp_path / "walk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "walk")
    write_bundle(make_spec(), tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert set(content(tmp_path / "walk")) == {"policy.onnx", "tasks.tdz", "manifest.json"}


def test_older_bundle_stays_when_the_new_one_fails(
    make_spec: MakeSpec, policy: SkillPolicy, tmp_path: Path
) -> None:
    write_bundle(make_spec(), tmp_path / "walk")
    before = content(tmp_path / "walk")
    with torch.no_grad():
        policy.heads.weight.zero_()
    with pytest.raises(ExportError, match="the duck would freeze"):
        write_bundle(make_spec(), tmp_path / "walk")
    assert content(tmp_path / "walk") == before
    assert [path.name for path in tmp_path.iterdir()] == ["walk"]


def test_older_bundle_comes_back_when_the_swap_fails(
    make_spec: MakeSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_bundle(make_spec(), tmp_path / "walk")
    before = content(tmp_path / "walk")
    rename = os.rename

    def fail_once(source: Path, target: Path) -> None:
        if ".old." not in f"{source}{target}":
            raise OSError(28, "No space left on device")
        rename(source, target)

    monkeypatch.setattr(bundle_module.os, "rename", fail_once)
    with pytest.raises(ExportError, match="No space left on device; choose another place"):
        write_bundle(make_spec(), tmp_path / "walk")
    assert content(tmp_path / "walk") == before
    assert [path.name for path in tmp_path.iterdir()] == ["walk"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("notes.txt", "mine"),
        ("manifest.json", '{"kind": "another"}'),
        ("manifest.json", "[1]"),
        ("manifest.json", "[" * 100_000),
        ("manifest.json", "{"),
    ],
)
def test_folder_of_something_else_is_left_alone(
    make_spec: MakeSpec, tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ExportError, match="is not a skill bundle, so it is not replaced; name a new folder"):
        write_bundle(make_spec(), tmp_path)
    assert content(tmp_path) == {name: text.encode()}


def test_bundle_with_a_users_file_is_left_alone(make_spec: MakeSpec, tmp_path: Path) -> None:
    write_bundle(make_spec(), tmp_path / "walk")
    (tmp_path / "walk" / "notes.txt").write_text("mine")
    with pytest.raises(ExportError, match=r"also holds \['notes.txt'\]"):
        write_bundle(make_spec(), tmp_path / "walk")
    assert (tmp_path / "walk" / "notes.txt").read_text() == "mine"


def test_file_in_the_place_of_the_folder_is_left_alone(make_spec: MakeSpec, tmp_path: Path) -> None:
    (tmp_path / "walk").write_text("mine")
    with pytest.raises(ExportError, match="is a file; name a folder"):
        write_bundle(make_spec(), tmp_path / "walk")
    with pytest.raises(ExportError, match=r"cannot write the bundle .*; choose another place"):
        write_bundle(make_spec(), tmp_path / "walk" / "inner")
    assert (tmp_path / "walk").read_text() == "mine"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layout": "state"}, r"has 55 and needs 56 inputs for layout 'state'"),
        ({"library": stack_tasks([standing_task()])}, r"has 2 and needs 1 tasks for this library"),
        ({"policy": SkillPolicy(55, 2, num_actions=15, hidden=(8,))}, r"has 15 and needs 14 actions"),
        ({"action_scale": 0.0}, r"action_scale is 0\.0 rad; it must be in \(0, 1\.6\]"),
        ({"action_scale": float("nan")}, r"action_scale is nan rad"),
        ({"p_gain": 0}, r"'position_p_gain' is 0; it must be a whole number in \[1, 400\]"),
        ({"training": {"loss": float("nan")}}, r"training and evaluation must be plain JSON data"),
        ({"evaluation": {"path": Path("x")}}, r"training and evaluation must be plain JSON data"),
    ],
)
def test_spec_that_does_not_fit_is_refused(
    make_spec: MakeSpec, tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    with pytest.raises(ExportError, match=message):
        write_bundle(make_spec(**changes), tmp_path / "walk")
    assert not list(tmp_path.iterdir())


def test_library_that_was_stacked_without_its_checks_is_refused(make_spec: MakeSpec, tmp_path: Path) -> None:
    library = torch.stack([tracking_task(0.2), tracking_task(0.2)])
    with pytest.raises(TaskError, match=r"several tasks are named \['tracking\+0\.20'\]"):
        write_bundle(make_spec(library=library), tmp_path / "walk")
    assert not list(tmp_path.iterdir())


def test_tasks_of_a_bundle_load_again_for_training(make_spec: MakeSpec, tmp_path: Path) -> None:
    spec = make_spec()
    write_bundle(spec, tmp_path / "walk")
    again = load_library(tmp_path / "walk" / "tasks.tdz")
    assert bool((again == spec.library).all())
    assert again.names == ("standing", "speed_range+0.10..+0.30")
