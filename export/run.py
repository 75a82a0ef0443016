"""From a training run to a skill bundle."""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from export.bundle import BundleSpec, write_bundle
from hardware.errors import ExportError
from hardware.servo import POSITION_P_GAIN
from microduck.learning.run_folder import RunFolder, load_policy

LIBRARIES = ("microduck-toolkit", "mujoco", "torch", "torchrl")


def export_run(run: Path, directory: Path) -> dict[str, Any]:
    """Write the bundle of a run's last checkpoint and return its manifest.

    Args:
        run: folder of a training run.
        directory: folder of the bundle.

    Raises:
        TrainingError: the run has no checkpoint, or one that does not fit it.
        ExportError: a proof fails or the folder holds something else.
    """
    policy, library, config, counters = load_policy(RunFolder(run))
    if config.layout == "state":
        raise ExportError(
            f"{run} was trained on layout 'state', which holds the base velocity a duck cannot measure; "
            "train it with --layout sensor"
        )
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
        evaluation={"results": _evaluation(run)},
    )
    return write_bundle(spec, directory)


def _evaluation(run: Path) -> list[dict[str, Any]]:
    """Return the run's evaluation, empty when it has not been evaluated."""
    path = run / "evaluation.json"
    if not path.is_file():
        return []
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ExportError(f"{path} is damaged ({error}); run microduck eval again") from error
