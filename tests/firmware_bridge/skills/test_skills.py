from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from firmware_bridge.skills import bundle as skills
from firmware_bridge.skills.bundle import SHIPPED, Bundle, find_bundle, load_bundle, shipped_bundle
from hardware import contract
from hardware.errors import ArchiveError, BundleError, ContractError

Manifest = dict[str, Any]


def test_a_valid_bundle_lists_its_skills_in_the_manifests_order(bundle: Bundle) -> None:
    assert list(bundle.skills) == ["walk", "stand"]
    walk = bundle.skill("walk")
    assert (walk.task_id, walk.command_low, walk.command_high) == (1, (-0.1, 0.0, -0.5), (0.3, 0.0, 0.5))
    assert (walk.gait_frequency_hz, walk.gait_frequency_per_mps) == (1.5, 1.0)
    assert (bundle.layout, bundle.action_scale, bundle.p_gain) == ("sensor", 0.8, 200)


def test_the_policy_sees_the_observation_and_the_skills_task(bundle: Bundle) -> None:
    observation = np.zeros(55, np.float32)
    observation[38] = 0.5
    walk, stand = (bundle.act(observation, bundle.skill(name)) for name in ("walk", "stand"))
    assert walk.tolist() == [0.25, 0, 0, 0, 0.25, *[0] * 9]
    assert stand.tolist() == [0, 0, 0, 0, 0.25, *[0] * 9]


def test_without_a_name_the_first_skill_is_meant(bundle: Bundle) -> None:
    assert bundle.skill().name == "walk"


def test_an_unknown_skill_is_refused_with_the_names_there_are(bundle: Bundle) -> None:
    with pytest.raises(BundleError, match=r"no skill 'fly'; choose one of \['stand', 'walk'\]"):
        bundle.skill("fly")


def test_loading_and_running_a_policy_starts_no_thread(bundle_folder: Path) -> None:
    before = len(os.listdir("/proc/self/task"))
    loaded = load_bundle(bundle_folder)
    loaded.act(np.zeros(55, np.float32), loaded.skill())
    assert len(os.listdir("/proc/self/task")) == before


@pytest.mark.parametrize("width", [51, 61])
def test_a_policy_of_another_width_is_refused_with_both_widths(
    draft: Any, tmp_path: Path, make_model: Callable[..., onnx.ModelProto], width: int
) -> None:
    draft.width, draft.model = width, make_model(width=width).SerializeToString()
    with pytest.raises(ContractError, match=rf"\[1, {width}\].*'sensor' is 55 wide"):
        load_bundle(draft.write(tmp_path / "b"))


def test_a_policy_file_of_another_width_than_its_manifest_is_refused(
    draft: Any, tmp_path: Path, make_model: Callable[..., onnx.ModelProto]
) -> None:
    draft.model = make_model(width=51).SerializeToString()
    with pytest.raises(BundleError, match=r"\[1, 51\].*\[1, 55\]"):
        load_bundle(draft.write(tmp_path / "b"))


def test_another_observation_layout_is_refused_with_both_widths(draft: Any, tmp_path: Path) -> None:
    draft.description["observation"] = [["projected_gravity", 3, "1"], ["everything", 58, "1"]]
    with pytest.raises(ContractError, match="observation width: 55 here, 61 there"):
        load_bundle(draft.write(tmp_path / "b"))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("control_period_s", 0.01),
        ("gait_ramp_s", 0.0),
        ("version", 2),
        ("action_clip", 2.0),
        ("joint_names", ["left_hip_yaw"]),
        ("position_p_gain_unit", "new"),
    ],
)
def test_a_bundle_of_another_contract_is_refused_by_the_field_that_differs(
    draft: Any, tmp_path: Path, field: str, value: object
) -> None:
    draft.description[field] = value
    with pytest.raises(ContractError, match=rf"\n  {field}: this toolkit has .*, the other has "):
        load_bundle(draft.write(tmp_path / "b"))


def test_one_joint_angle_of_another_stand_pose_is_enough_to_refuse(draft: Any, tmp_path: Path) -> None:
    draft.description["stand_rad"][4] += 0.1
    with pytest.raises(ContractError, match="stand_rad: "):
        load_bundle(draft.write(tmp_path / "b"))


def test_a_digest_that_is_not_the_contracts_is_refused(draft: Any, tmp_path: Path) -> None:
    draft.manifest["contract_digest"] = "0" * 64
    with pytest.raises(ContractError, match=f"contract_digest is {'0' * 64}"):
        load_bundle(draft.write(tmp_path / "b"))


def test_a_skill_of_layout_state_is_taken(draft: Any, make_model: Any, tmp_path: Path) -> None:
    draft.description, draft.width = contract.describe("state", 0.8), 56
    draft.model = make_model(width=56).SerializeToString()
    assert load_bundle(draft.write(tmp_path / "b")).layout == "state"


def spoil_skill(key: str, value: object) -> Callable[[Manifest], None]:
    def change(manifest: Manifest) -> None:
        manifest["skills"][0][key] = value

    return change


@pytest.mark.parametrize(
    ("key", "value", "field"),
    [
        ("command_high", [0.4, 0.0, 0.5], "command_high"),
        ("command_low", [-0.1, 0.0, -0.6], "yaw_rate_interval"),
        ("gait_frequency_hz", 1.6, "gait_frequency_hz"),
        ("gait_frequency_per_mps", 0.0, "gait_frequency_per_mps"),
    ],
)
def test_a_skill_that_differs_from_its_task_is_refused_by_field(
    draft: Any, tmp_path: Path, key: str, value: object, field: str
) -> None:
    draft.spoil = spoil_skill(key, value)
    with pytest.raises(BundleError, match=f"'walk': {field} is .* in the manifest but .* in tasks.tdz"):
        load_bundle(draft.write(tmp_path / "b"))


@pytest.mark.parametrize(("key", "value"), [("task_id", 0), ("task_id", 2), ("name", "hop")])
def test_a_skill_without_its_task_is_refused(draft: Any, tmp_path: Path, key: str, value: object) -> None:
    draft.spoil = spoil_skill(key, value)
    with pytest.raises(BundleError, match=r"but the tasks are \['stand', 'walk'\]"):
        load_bundle(draft.write(tmp_path / "b"))


@pytest.mark.parametrize("column", ["command_low", "yaw_rate_interval", "gait_frequency_hz"])
def test_a_task_archive_without_a_column_is_refused_by_name(draft: Any, tmp_path: Path, column: str) -> None:
    del draft.tasks[column]
    with pytest.raises(BundleError, match=f"no '{column}' of shape"):
        load_bundle(draft.write(tmp_path / "b"))


def test_a_task_archive_without_names_is_refused(draft: Any, tmp_path: Path) -> None:
    del draft.tasks["name"]
    with pytest.raises(BundleError, match="'name'"):
        load_bundle(draft.write(tmp_path / "b"))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("name", ""),
        ("name", "a\nb"),
        ("name", 3),
        ("task_id", True),
        ("task_id", -1),
        ("task_id", 1.0),
        ("command_low", [0.0, 0.0]),
        ("command_low", ["0", 0, 0]),
        ("command_low", [0.9, 0.0, 0.0]),
        ("command_high", [10**400, 0, 0]),
        ("gait_frequency_hz", 1e6),
        ("gait_frequency_hz", "1.5"),
    ],
)
def test_a_bad_value_of_a_skill_is_refused_by_its_field(
    draft: Any, tmp_path: Path, key: str, value: object
) -> None:
    draft.spoil = spoil_skill(key, value)
    with pytest.raises(BundleError, match=f"'{key}'"):
        load_bundle(draft.write(tmp_path / "b"))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("kind",), "duck"),
        (("schema",), 2),
        (("schema",), "1"),
        (("contract",), None),
        (("contract_digest",), "abc"),
        (("policy", "file"), "../policy.onnx"),
        (("policy", "sha256"), None),
        (("policy", "opset"), "17"),
        (("policy", "inputs", "task_id"), [1]),
        (("policy", "output", "action"), [1, 15]),
        (("tasks", "file"), "/etc/passwd"),
        (("skills",), []),
        (("skills",), [1]),
    ],
)
def test_a_bad_value_of_the_manifest_is_refused_by_its_field(
    draft: Any, tmp_path: Path, path: tuple[str, ...], value: object
) -> None:
    def change(manifest: Manifest) -> None:
        for key in path[:-1]:
            manifest = manifest[key]
        manifest[path[-1]] = value

    draft.spoil = change
    with pytest.raises(BundleError, match=f"'{path[-1]}'"):
        load_bundle(draft.write(tmp_path / "b"))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("action_scale_rad", 0.0),
        ("action_scale_rad", 7.0),
        ("position_p_gain", 0),
        ("position_p_gain", 16383),
    ],
)
def test_scales_and_gains_no_duck_can_bear_are_refused(
    draft: Any, tmp_path: Path, field: str, value: float
) -> None:
    draft.description[field] = value
    with pytest.raises(BundleError, match=rf"'{field}' is {value}; it must be .* in \["):
        load_bundle(draft.write(tmp_path / "b"))


def test_two_skills_of_one_name_are_refused(draft: Any, tmp_path: Path) -> None:
    draft.spoil = lambda manifest: manifest["skills"].append(manifest["skills"][0])
    with pytest.raises(BundleError, match="share a name"):
        load_bundle(draft.write(tmp_path / "b"))


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"schema": NaN}', '{"schema": Infinity}', '{"a": ' * 100_000]
)
def test_a_manifest_that_is_no_json_object_is_refused(tmp_path: Path, draft: Any, text: str) -> None:
    folder = draft.write(tmp_path / "b")
    (folder / "manifest.json").write_text(text)
    with pytest.raises(BundleError, match=r"manifest\.json"):
        load_bundle(folder)


@pytest.mark.parametrize("name", ["manifest.json", "policy.onnx", "tasks.tdz"])
def test_a_missing_file_is_refused_by_name(tmp_path: Path, draft: Any, name: str) -> None:
    folder = draft.write(tmp_path / "b")
    (folder / name).unlink()
    with pytest.raises(BundleError, match=rf"{name} is not a file"):
        load_bundle(folder)


@pytest.mark.parametrize("name", ["policy.onnx", "tasks.tdz"])
def test_a_file_changed_after_the_export_is_refused(tmp_path: Path, draft: Any, name: str) -> None:
    folder = draft.write(tmp_path / "b")
    (folder / name).write_bytes((folder / name).read_bytes() + b" ")
    with pytest.raises(BundleError, match=rf"{name} has the SHA-256"):
        load_bundle(folder)


def test_a_pipe_in_place_of_a_file_does_not_block(tmp_path: Path, draft: Any) -> None:
    folder = draft.write(tmp_path / "b")
    (folder / "manifest.json").unlink()
    os.mkfifo(folder / "manifest.json")
    with pytest.raises(BundleError, match="not a file"):
        load_bundle(folder)


def test_a_damaged_task_archive_is_refused_as_such(draft: Any, tmp_path: Path) -> None:
    folder = draft.write(tmp_path / "b")
    half = (folder / "tasks.tdz").read_bytes()[:200]
    (folder / "tasks.tdz").write_bytes(half)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["tasks"]["sha256"] = hashlib.sha256(half).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ArchiveError, match=r"tasks\.tdz.*not a whole"):
        load_bundle(folder)


def test_a_path_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="is not a folder"):
        load_bundle(tmp_path / "none")


def test_an_installation_without_a_bundle_says_what_to_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(skills.resources, "files", lambda package: tmp_path)
    with pytest.raises(BundleError, match="name one made by `microduck export`"):
        shipped_bundle()


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_bundle_is_found_by_its_name_and_loads(name: str) -> None:
    assert find_bundle(Path(name)) == shipped_bundle(name)
    assert load_bundle(shipped_bundle(name)).skill("walk").name == "walk"
    assert find_bundle(None) == shipped_bundle("nine-skills")


def test_a_folder_comes_before_a_shipped_bundle_of_its_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("walk").mkdir()
    assert find_bundle(Path("walk")) == Path("walk")


def test_a_bundle_in_the_package_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, draft: Any
) -> None:
    (tmp_path / "bundles").mkdir()
    folder = draft.write(tmp_path / "bundles" / "nine-skills")
    monkeypatch.setattr(skills.resources, "files", lambda package: tmp_path)
    assert shipped_bundle() == folder
