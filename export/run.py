"""From a training run to a skill bundle."""

from __future__ import annotations

from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from export.bundle import BundleSpec, write_bundle
from hardware.errors import ExportError
from hardware.servo import POSITION_P_GAIN
from microduck.learning.run_folder import RunFolder, load_policy
from microduck.policy import SkillPolicy
from microduck.report import REPORT_FILE
from microduck.report.document import read_summary
from microduck.report.subject import digest_of

LIBRARIES = ("microduck-toolkit", "mujoco", "torch", "torchrl")


def export_run(run: Path, directory: Path, *, last: bool = False) -> dict[str, Any]:
    """Write the bundle of a run's best policy, or else its last, and return its manifest.

    Args:
        run: folder of a training run.
        directory: folder of the bundle.
        last: take the last policy even where the best by its worst task is known.

    Raises:
        TrainingError: the run has no checkpoint, or one that does not fit it.
        ExportError: a proof fails, the folder holds something else, or the report is about another policy.
        ConfigError: the run's report is damaged.
    """
    policy, library, config, counters = load_policy(RunFolder(run), last=last)
    spec = BundleSpec(
        policy=policy,
        layout=config.layout,
        action_scale=config.action_scale,
        p_gain=POSITION_P_GAIN,
        library=library,
        training={
            **counters,
            "config": asdict(config),
            "versions": {name: version(name) for name in LIBRARIES},
        },
        evaluation=_evaluation(run, policy),
    )
    return write_bundle(spec, directory)


def _evaluation(run: Path, policy: SkillPolicy) -> dict[str, Any]:
    """Return what the run's report says of its policy, empty when it has none."""
    path = run / REPORT_FILE
    if not path.exists():
        return {}
    found, wanted = read_summary(path), digest_of(policy)
    if found["policy_sha256"] != wanted:
        raise ExportError(
            f"{path} is about another policy (sha256 {found['policy_sha256']!r:.80}) than the run's "
            f"({wanted}); run `microduck eval` again, or delete the report"
        )
    return found
