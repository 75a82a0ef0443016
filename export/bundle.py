"""A skill bundle: one folder with all a robot needs to run a trained library, written whole or not at all.

See docs/bundle.md for the format.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from export.archive import write_archive
from export.onnx_graph import INPUTS, IR_VERSION, OPSET, OUTPUT, to_onnx
from export.parity import Parity, check_parity, graph_actor
from firmware_bridge.skills.bundle import load_bundle
from firmware_bridge.skills.manifest import (
    KIND,
    MANIFEST_FILE,
    MAX_ACTION_SCALE,
    MAX_BYTES,
    POLICY_FILE,
    SCHEMA,
    TASKS_FILE,
)
from hardware import contract
from hardware.errors import ArchiveError, BundleError, ContractError, ExportError
from hardware.files import parse_object, read_bounded
from hardware.joints import NUM_JOINTS
from microduck.policy import SkillPolicy
from microduck.report import PAGE_FILE, REPORT_FILE
from microduck.tasks import MicroDuckTask, command_box, validate

FILES = {POLICY_FILE, TASKS_FILE, MANIFEST_FILE}
"""All that a bundle's folder holds."""
REPORT = {REPORT_FILE, PAGE_FILE}
"""What `microduck eval` adds to it; goes with the bundle that it is about."""


@dataclass(frozen=True)
class BundleSpec:
    """What a bundle is made from.

    Attributes:
        policy: the trained policy.
        layout: observation layout it was trained on.
        action_scale: joint travel for an action of 1 [rad].
        p_gain: position P register it was trained for.
        library: the task rows it was trained on, in the order of its task ids.
        training: where the policy comes from, as plain JSON data.
        evaluation: how well it did in simulation, as plain JSON data.
    """

    policy: SkillPolicy
    layout: str
    action_scale: float
    p_gain: int
    library: MicroDuckTask
    training: Mapping[str, Any]
    evaluation: Mapping[str, Any]


def write_bundle(spec: BundleSpec, directory: Path) -> dict[str, Any]:
    """Write a skill bundle, prove it, then put it in place; an older bundle there is replaced only then.

    Args:
        spec: what to write.
        directory: folder of the bundle; absent, empty or an older bundle.

    Returns:
        The manifest.

    Raises:
        ExportError: the spec does not fit together, a proof fails, or the folder holds something else.
        ContractError: the observation layout does not exist.
        TaskError: a task row is not valid.
        ArchiveError: the library cannot be kept as plain data.
    """
    target = directory.resolve()  # a link to a bundle stays a link
    _check_spec(spec)
    _check_replaceable(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as staging:
            new = Path(staging) / target.name
            new.mkdir()
            manifest = _fill(spec, new)
            _put_in_place(new, target)
    except OSError as error:
        raise ExportError(
            f"cannot write the bundle {target}: {error.strerror}; choose another place"
        ) from error
    return manifest


def _fill(spec: BundleSpec, folder: Path) -> dict[str, Any]:
    """Write and prove the three files; return the manifest as it reads back."""
    policy = copy.deepcopy(spec.policy).cpu()
    graph = to_onnx(policy)
    parity = check_parity(policy, graph_actor(graph))
    (folder / POLICY_FILE).write_bytes(graph)
    write_archive(spec.library, folder / TASKS_FILE)
    try:
        text = json.dumps(_manifest(spec, folder, parity), indent=2, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ExportError(f"training and evaluation must be plain JSON data: {error}") from error
    (folder / MANIFEST_FILE).write_text(text + "\n", encoding="utf-8")
    _prove_on_robot(policy, folder)
    return json.loads(text)


def _prove_on_robot(policy: SkillPolicy, folder: Path) -> None:
    """Load the bundle as the robot does and compare its actions with the policy's."""
    try:
        bundle = load_bundle(folder)
    except (BundleError, ContractError, ArchiveError) as error:
        raise ExportError(f"the robot would refuse this bundle: {error}") from error
    skills = list(bundle.skills.values())
    check_parity(policy, lambda observation, task_id: bundle.act(observation, skills[task_id]))


def _manifest(spec: BundleSpec, folder: Path, parity: Parity) -> dict[str, Any]:
    described = contract.describe(spec.layout, spec.action_scale, spec.p_gain)
    observation, task_id = INPUTS
    return {
        "schema": SCHEMA,
        "kind": KIND,
        "contract": described,
        "contract_digest": contract.digest(described),
        "policy": {
            **_file_entry(folder / POLICY_FILE),
            "opset": OPSET,
            "ir_version": IR_VERSION,
            "inputs": {observation: [1, contract.width(spec.layout)], task_id: [1, 1]},
            "output": {OUTPUT: [1, NUM_JOINTS]},
            "parity": asdict(parity),
        },
        "tasks": _file_entry(folder / TASKS_FILE),
        "skills": _skills(spec.library),
        "training": dict(spec.training),
        "evaluation": dict(spec.evaluation),
    }


def _file_entry(path: Path) -> dict[str, str]:
    return {"file": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


def _skills(library: MicroDuckTask) -> list[dict[str, Any]]:
    low, high = command_box(library)
    return [
        {
            "name": name,
            "task_id": index,
            "command_low": low[index].tolist(),
            "command_high": high[index].tolist(),
            "gait_frequency_hz": library.gait_frequency_hz[index].item(),
            "gait_frequency_per_mps": library.gait_frequency_per_mps[index].item(),
        }
        for index, name in enumerate(library.name)
    ]


def _check_spec(spec: BundleSpec) -> None:
    """Refuse a policy, layout, library and scale that do not belong together."""
    validate(spec.library)
    policy = spec.policy
    for what, got, wanted in (
        (f"inputs for layout {spec.layout!r}", policy.first.in_features, contract.width(spec.layout)),
        ("tasks for this library", policy.task.num_embeddings, len(list(spec.library.name))),
        ("actions", policy.outputs, NUM_JOINTS),
    ):
        if got != wanted:
            raise ExportError(
                f"the policy has {got} and needs {wanted} {what}; export it with what it was trained on"
            )
    if not 0 < spec.action_scale <= MAX_ACTION_SCALE:
        raise ExportError(f"action_scale is {spec.action_scale} rad; it must be in (0, {MAX_ACTION_SCALE}]")


def _check_replaceable(target: Path) -> None:
    """Refuse to put a bundle where something else is."""
    if not target.exists():
        return
    if not target.is_dir():
        raise ExportError(f"{target} is a file; name a folder for the bundle")
    found = {path.name for path in target.iterdir()}
    if not found:
        return
    if not _is_bundle(target):
        raise ExportError(f"{target} is not a skill bundle, so it is not replaced; name a new folder")
    strange = found - FILES - REPORT
    if strange:
        raise ExportError(f"{target} also holds {sorted(strange)}; move these away or name a new folder")


def _is_bundle(folder: Path) -> bool:
    try:
        data = read_bounded(folder / MANIFEST_FILE, MAX_BYTES, BundleError)
        return parse_object(data, MANIFEST_FILE, BundleError).get("kind") == KIND
    except BundleError:
        return False


def _put_in_place(new: Path, target: Path) -> None:
    _check_replaceable(target)  # again: proving took a while
    if not target.exists():
        os.rename(new, target)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{target.name}.old.", dir=target.parent))
    os.rename(target, old)
    try:
        os.rename(new, target)
    except OSError:
        os.rename(old, target)
        raise
    shutil.rmtree(old)
