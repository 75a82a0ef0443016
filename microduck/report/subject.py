"""What is evaluated: the policy of a training run's folder or of an exported bundle's, with its tasks."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from firmware_bridge.skills.bundle import Bundle, load_bundle
from firmware_bridge.skills.manifest import MANIFEST_FILE, TASKS_FILE, Skill, read_manifest
from hardware.errors import BundleError
from hardware.servo import POSITION_P_GAIN
from microduck.evaluation.run import Actor
from microduck.learning.run_folder import RunFolder, load_policy
from microduck.policy import SkillPolicy
from microduck.tasks import MicroDuckTask, load_library


@dataclass(frozen=True)
class Subject:
    """A policy with what it needs to run.

    Attributes:
        name: the folder as it was given.
        kind: `run` or `bundle`.
        actor: its mean action.
        library: its tasks.
        layout: its observation layout.
        action_scale: its joint travel for an action of 1 [rad].
        digest: SHA-256 of a bundle's policy.onnx, or of a run's parameters; see `digest_of`.
        training: what the folder tells of its training, as plain data.
    """

    name: str
    kind: str
    actor: Actor
    library: MicroDuckTask
    layout: str
    action_scale: float
    digest: str
    training: Mapping[str, Any]


def load_subject(folder: Path, *, last: bool = False) -> Subject:
    """Return what a folder holds, checked.

    Args:
        folder: of a run or a bundle.
        last: take a run's last policy even where its best by the worst task is known.

    Raises:
        BundleError: it is neither run nor bundle, or a bundle that is damaged or was made for another gain.
        ContractError: the bundle was made for another contract.
        TrainingError: the run has no checkpoint, or one that is damaged or does not fit.
        ConfigError: the run's configuration is damaged.
        ArchiveError: the task library is damaged.
        TaskError: the task library is not valid.
    """
    if (folder / MANIFEST_FILE).exists():
        return _bundle(folder)
    if RunFolder(folder).config_file.exists():
        return _run(folder, last)
    raise BundleError(
        f"{folder} is neither a training run nor a skill bundle; make one with `microduck train {folder}` or "
        f"`microduck export RUN {folder}`"
    )


def digest_of(policy: SkillPolicy) -> str:
    """Return the SHA-256 of a policy's parameters and statistics: names and bytes, in order."""
    total = hashlib.sha256()
    for name, value in policy.state_dict().items():
        total.update(name.encode())
        total.update(value.cpu().numpy().tobytes())
    return total.hexdigest()


def _run(folder: Path, last: bool) -> Subject:
    policy, library, config, counters = load_policy(RunFolder(folder), last=last)
    return Subject(
        name=str(folder),
        kind="run",
        actor=policy,
        library=library,
        layout=config.layout,
        action_scale=config.action_scale,
        digest=digest_of(policy),
        training={**counters, "library": config.library, "seed": config.seed},
    )


def _bundle(folder: Path) -> Subject:
    bundle = load_bundle(folder)
    if bundle.p_gain != POSITION_P_GAIN:
        raise BundleError(
            f"{folder} was trained for a P register of {bundle.p_gain}, not for the {POSITION_P_GAIN} "
            "that is simulated here; try it with `microduck virtual-duck`"
        )
    skills = list(bundle.skills.values())
    ids = torch.tensor([skill.task_id for skill in skills])
    return Subject(
        name=str(folder),
        kind="bundle",
        actor=partial(_act, bundle, skills),
        library=load_library(folder / TASKS_FILE, drop_unknown=True)[ids],
        layout=bundle.layout,
        action_scale=bundle.action_scale,
        digest=read_manifest(folder / MANIFEST_FILE).policy.sha256,
        training={},
    )


def _act(bundle: Bundle, skills: Sequence[Skill], observation: Tensor, task_id: Tensor) -> Tensor:
    """Return the actions of many ducks (n, 14), one after the other: a bundle's graph is made for one."""
    rows = zip(observation.numpy(), task_id.flatten().tolist(), strict=True)
    return torch.from_numpy(np.stack([bundle.act(row, skills[task]) for row, task in rows]))
