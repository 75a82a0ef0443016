"""A short film of every task, for the page."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import mujoco
import numpy as np

from hardware.contract import CONTROL_PERIOD_S
from microduck.evaluation import Trace
from microduck.physics.model import load_model
from microduck.render import Shot, render_video
from microduck.report.study import Study

STEPS_PER_PICTURE = 3
"""Every third pose is shown: seventeen in a second show a gait of two strides."""
SECONDS = 5.0
"""Length of a film [s]."""
SHOT = Shot(width=320, height=240, fps=1 / (STEPS_PER_PICTURE * CONTROL_PERIOD_S))


def films(study: Study, notify: Callable[[], None]) -> dict[str, bytes]:
    """Return the start of one episode of each task, by its name, as mp4.

    Args:
        study: has the episodes.
        notify: called after each film.

    Raises:
        RenderError: no picture or no video can be made on this machine.
    """
    model = load_model()
    model.vis.quality.offsamples = 0  # smooth edges would double the time
    made = {}
    with tempfile.TemporaryDirectory() as folder:
        for task, (_, trace) in study.traces.items():
            made[task] = _film(model, trace, Path(folder) / "film.mp4")
            notify()
    return made


def _film(model: mujoco.MjModel, trace: Trace, path: Path) -> bytes:
    poses = trace.qpos[: round(SECONDS / CONTROL_PERIOD_S) : STEPS_PER_PICTURE]
    render_video(path, model, np.asarray(poses), SHOT)
    return path.read_bytes()
