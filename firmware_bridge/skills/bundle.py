"""Skill bundles: a folder with a policy, its tasks and a manifest, checked whole before anything moves."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
from onnxruntime.capi import onnxruntime_pybind11_state as ort_native

from firmware_bridge.skills import archive, onnx_file
from firmware_bridge.skills.manifest import (
    MANIFEST_FILE,
    POLICY_FILE,
    TASKS_FILE,
    Manifest,
    Skill,
    read_manifest,
)
from hardware import contract
from hardware.errors import BundleError
from hardware.files import read_bounded
from hardware.joints import NUM_JOINTS

SHIPPED = ("nine-skills", "walk")
"""Names of the bundles that come with this package."""
DEFAULT = SHIPPED[0]
"""The one that is driven unless another is named."""
MAX_POLICY_BYTES = 32 * 1024 * 1024
"""Largest policy file; the ones known take below 1 MiB."""
# onnxruntime's errors share no base class of their own, and a run with a binding raises none of them.
_ORT_ERRORS: tuple[type[Exception], ...] = (
    RuntimeError,
    *(kind for kind in vars(ort_native).values() if isinstance(kind, type) and issubclass(kind, Exception)),
)


class Bundle:
    """A policy that is ready to run, and the skills it has.

    Args:
        manifest: the bundle's manifest.
        session: the loaded policy.

    Attributes:
        skills: the skills by name, in the order of the manifest.
        layout: observation layout.
        action_scale: joint travel for an action of 1 [rad].
        p_gain: position P register the policy was trained for.
    """

    def __init__(self, manifest: Manifest, session: ort.InferenceSession) -> None:
        self.skills: Mapping[str, Skill] = {skill.name: skill for skill in manifest.skills}
        self.layout, self.action_scale, self.p_gain = manifest.layout, manifest.action_scale, manifest.p_gain
        self._session = session
        # Bound once: handing new arrays over in every tick takes a quarter of an inference.
        self._observation = np.zeros((1, contract.width(manifest.layout)), np.float32)
        self._task_id = np.zeros((1, 1), np.int64)
        self._action = np.zeros((1, NUM_JOINTS), np.float32)
        self._binding = session.io_binding()
        self._binding.bind_ortvalue_input("observation", _shared(self._observation))
        self._binding.bind_ortvalue_input("task_id", _shared(self._task_id))
        self._binding.bind_ortvalue_output("action", _shared(self._action))

    def skill(self, name: str | None = None) -> Skill:
        """Return a skill by name, or the first one.

        Raises:
            BundleError: the bundle has no such skill; the message lists those it has.
        """
        chosen = next(iter(self.skills)) if name is None else name
        if chosen not in self.skills:
            raise BundleError(f"the bundle has no skill {chosen!r}; choose one of {sorted(self.skills)}")
        return self.skills[chosen]

    def act(self, observation: np.ndarray, skill: Skill) -> np.ndarray:
        """Return the policy's raw action, (14,), for an observation (width of the layout,), both float32.

        Raises:
            BundleError: the policy cannot be evaluated.
        """
        self._observation[0] = observation
        self._task_id[0, 0] = skill.task_id
        try:
            self._session.run_with_iobinding(self._binding)
        except _ORT_ERRORS as error:
            raise BundleError(f"the policy failed on {skill.name!r}: {error}; export it again") from error
        return self._action[0].copy()


def _shared(array: np.ndarray) -> ort.OrtValue:
    """Return a value of onnxruntime that is an array's own memory, which it does not copy on a CPU."""
    return ort.OrtValue.ortvalue_from_numpy(array)


def shipped_bundle(name: str = DEFAULT) -> Path:
    """Return the folder of a bundle that comes with this package.

    Raises:
        BundleError: this installation has none of that name.
    """
    folder = Path(str(resources.files("firmware_bridge").joinpath("bundles", name)))
    if not (folder / MANIFEST_FILE).is_file():
        raise BundleError(f"there is no bundle in {folder}; name one made by `microduck export`")
    return folder


def find_bundle(given: Path | None) -> Path:
    """Return the folder that a user means: a folder, one of `SHIPPED` by its name, `DEFAULT` for None.

    Raises:
        BundleError: this installation lacks the shipped bundle that is meant.
    """
    if given is None:
        return shipped_bundle()
    return shipped_bundle(str(given)) if str(given) in SHIPPED and not given.exists() else given


def load_bundle(folder: Path) -> Bundle:
    """Check every file of a bundle and return it ready to run.

    Raises:
        BundleError: a file is missing, damaged, changed since its export, or not runnable here.
        ContractError: the bundle was made for another contract or observation layout.
        ArchiveError: the task archive is damaged.
    """
    if not folder.is_dir():
        raise BundleError(
            f"{folder} is not a folder; name a bundle made by `microduck export`, or one of {SHIPPED}"
        )
    if not any((folder / name).exists() for name in (MANIFEST_FILE, POLICY_FILE, TASKS_FILE)):
        raise BundleError(f"{folder} is no skill bundle; make one with `microduck export RUN {folder}`")
    manifest = read_manifest(folder / MANIFEST_FILE)
    tasks = _read_file(folder / TASKS_FILE, archive.MAX_BYTES, manifest.tasks_sha256)
    _check_tasks(archive.parse_archive(tasks, str(folder / TASKS_FILE)), manifest.skills)
    policy = _read_file(folder / POLICY_FILE, MAX_POLICY_BYTES, manifest.policy.sha256)
    versions = onnx_file.check_onnx(policy)
    if versions != (manifest.policy.ir_version, manifest.policy.opset):
        raise BundleError(
            f"{folder / POLICY_FILE} has IR {versions.ir_version}, opset {versions.opset}; the manifest says "
            f"IR {manifest.policy.ir_version}, opset {manifest.policy.opset}; export it again"
        )
    bundle = Bundle(manifest, _open_session(policy, contract.width(manifest.layout)))
    _warm_up(bundle)
    return bundle


def _read_file(path: Path, most_bytes: int, sha256: str) -> bytes:
    data = read_bounded(path, most_bytes, BundleError)
    found = hashlib.sha256(data).hexdigest()
    if found != sha256:
        raise BundleError(f"{path} has the SHA-256 {found}, the manifest says {sha256}; export it again")
    return data


def _check_tasks(tasks: dict[str, Any], skills: tuple[Skill, ...]) -> None:
    """Refuse skills that differ from the rows of the task archive they were trained on."""
    names = tasks.get("name")
    names = [names] if isinstance(names, str) else names
    if not isinstance(names, list):
        raise BundleError(f"{TASKS_FILE} has no list of names under 'name'; export the bundle again")
    for skill in skills:
        if skill.task_id >= len(names) or names[skill.task_id] != skill.name:
            raise BundleError(f"skill {skill.name!r} has task_id {skill.task_id}, but the tasks are {names}")
        for field, stated in _stated(skill).items():
            found = tasks.get(field)
            shape = (len(names), *stated.shape)
            if not isinstance(found, np.ndarray) or found.shape != shape:
                raise BundleError(f"{TASKS_FILE} has no {field!r} of shape {shape}; export the bundle again")
            if not np.array_equal(found[skill.task_id].astype(np.float32), stated):
                raise BundleError(
                    f"skill {skill.name!r}: {field} is {stated.tolist()} in the manifest but "
                    f"{found[skill.task_id].tolist()} in {TASKS_FILE}; export the bundle again"
                )


def _stated(skill: Skill) -> dict[str, np.ndarray]:
    """Return a skill's numbers under the names and in the shapes of a task row."""
    low, high = skill.command_low, skill.command_high
    fields = {
        "command_low": low[:2],
        "command_high": high[:2],
        "yaw_rate_interval": (low[2], high[2]),
        "gait_frequency_hz": skill.gait_frequency_hz,
        "gait_frequency_per_mps": skill.gait_frequency_per_mps,
    }
    return {name: np.asarray(value, np.float32) for name, value in fields.items()}


def _open_session(model: bytes, width: int) -> ort.InferenceSession:
    options = ort.SessionOptions()
    # A second thread makes so small a network slower, and spinning ones keep the board's cores busy.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.inter_op.allow_spinning", "0")
    options.log_severity_level = 4  # what is wrong reaches the user as an exception
    try:
        session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except _ORT_ERRORS as error:
        raise BundleError(
            f"onnxruntime {ort.__version__} cannot load the policy: {error}; export it again"
        ) from error
    found = [(port.name, port.type, port.shape) for port in (*session.get_inputs(), *session.get_outputs())]
    wanted = [
        ("observation", "tensor(float)", [1, width]),
        ("task_id", "tensor(int64)", [1, 1]),
        ("action", "tensor(float)", [1, NUM_JOINTS]),
    ]
    if found != wanted:
        raise BundleError(f"the policy's inputs and output are {found}, not {wanted}; export it again")
    return session


def _warm_up(bundle: Bundle) -> None:
    """Evaluate each skill once: the first run is slow, and a broken one must show before a servo moves."""
    for skill in bundle.skills.values():
        action = bundle.act(np.zeros(contract.width(bundle.layout), np.float32), skill)
        if action.shape != (NUM_JOINTS,) or not np.isfinite(action).all():
            raise BundleError(
                f"the policy's action for skill {skill.name!r} is {action.tolist()}, "
                f"not {NUM_JOINTS} finite values; train or export it again"
            )
