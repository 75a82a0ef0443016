"""What a duck did between the moment it was let go and the moment its torque went off, or it sat down."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import degrees, radians
from pathlib import Path

import numpy as np

from firmware_bridge.drive.poses import SEAT, SIT_S, SLOW_S
from hardware import rotations
from hardware.contract import CONTROL_PERIOD_S
from hardware.errors import ConfigError
from hardware.files import replacing
from microduck.virtual_body import VirtualBody

FALLEN_TILT = radians(60)
"""Tilt of the trunk beyond which a duck has fallen [rad]; the robot's own limit."""
FALLEN_HEIGHT = 0.55
"""Share of the standing height below which a duck has fallen; a squat of a task stays above it."""
SEATED = 0.2
"""Distance of every joint's goal to the seat within which it was told to sit [rad]; it is not yet low."""
SEATED_PART = 0.85
"""Part of the way's time after which its goals are that near: the last of it is slow."""
SWAY_S = 1.0
"""Window of the moving average that takes the gait's sway out of path and heading [s]; a stride or more."""


@dataclass(frozen=True)
class RunReport:
    """One run.

    Attributes:
        seconds: its length [s].
        fell: whether the trunk tilted beyond 60 degrees or sank below 0.55 of its standing height.
        path_m: length of the trunk's path over the floor, without its sway [m].
        displacement_m: distance from start to end, over the floor [m].
        mean_speed_mps: mean speed along the heading [m/s].
        heading_drift_deg: mean heading of the last second, less that of the start; left is positive [deg].
    """

    seconds: float
    fell: bool
    path_m: float
    displacement_m: float
    mean_speed_mps: float
    heading_drift_deg: float


class RunRecorder:
    """Watches a run, one `sample` each control period, the first at the start.

    Args:
        body: the duck.
    """

    def __init__(self, body: VirtualBody) -> None:
        self._body = body
        self._track: list[tuple[float, float, float]] = []
        self._fell = False

    def watch(self) -> None:
        """Look for a fall; cheap enough for every physics step."""
        low = self._body.height < FALLEN_HEIGHT * self._body.stand_height
        self._fell = self._fell or low or self._body.tilt > FALLEN_TILT

    def sample(self) -> None:
        """Note where the trunk is and where it points."""
        x, y = self._body.data.qpos[:2]
        self._track.append((float(x), float(y), float(rotations.heading(self._body.orientation))))

    def report(self, sat: bool = False) -> RunReport:
        """Return the run up to the last sample, or, of a duck that sat down, up to where it began to."""
        way_down = round((SLOW_S + SEATED_PART * SIT_S) / CONTROL_PERIOD_S)
        track = self._track[: max(len(self._track) - way_down, 0)] if sat else self._track
        return _report(np.array(track).reshape(-1, 3), self._fell)


def told_to_sit(goals: np.ndarray) -> bool:
    """Return whether joint goals (14,) [rad] are those of a duck that sits down."""
    return bool(np.abs(goals - SEAT).max() < SEATED)


def _report(track: np.ndarray, fell: bool) -> RunReport:
    """Return the report of a track (T, 3): x, y [m], heading [rad], one row each control period."""
    if len(track) < 2:
        return RunReport(0.0, fell, 0.0, 0.0, 0.0, 0.0)
    places, heading = track[:, :2], np.unwrap(track[:, 2])
    seconds = (len(track) - 1) * CONTROL_PERIOD_S
    window = round(SWAY_S / CONTROL_PERIOD_S)
    moves = np.diff(places, axis=0)
    forward = moves[:, 0] * np.cos(heading[:-1]) + moves[:, 1] * np.sin(heading[:-1])
    return RunReport(
        seconds=seconds,
        fell=fell,
        path_m=float(np.linalg.norm(np.diff(_smooth(places, window), axis=0), axis=1).sum()),
        displacement_m=float(np.linalg.norm(places[-1] - places[0])),
        mean_speed_mps=float(forward.sum() / seconds),
        heading_drift_deg=degrees(heading[-window:].mean() - heading[0]),
    )


def _smooth(values: np.ndarray, window: int) -> np.ndarray:
    """Return the centred moving average of rows (T, n); the window shrinks towards both ends, which stay."""
    total = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values, axis=0)])
    index = np.arange(len(values))
    half = np.minimum(np.minimum(index, len(values) - 1 - index), window // 2)
    return (total[index + half + 1] - total[index - half]) / (2 * half + 1)[:, None]


def save_reports(path: Path, reports: Sequence[RunReport]) -> None:
    """Write the runs so far as JSON, `{"runs": [...]}`, oldest first; readers never see half a file.

    Raises:
        ConfigError: the file cannot be written there.
    """
    text = json.dumps({"runs": [asdict(report) for report in reports]}, indent=2, allow_nan=False)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary:
            temporary.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"cannot write the report {path} ({error.strerror}); choose another place"
        ) from error
