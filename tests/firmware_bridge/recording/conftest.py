"""Ticks whose numbers tell which tick they are of, and recordings made of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from firmware_bridge.drive.modes import Mode
from firmware_bridge.drive.summary import Tick
from firmware_bridge.recording.description import describe
from firmware_bridge.recording.recorder import Recorder
from firmware_bridge.robot.body import BodySample, Health
from firmware_bridge.skills.bundle import Bundle
from hardware.calibration import Calibration


def tick(number: int, **changes: Any) -> Tick:
    """Return the tick of that number: 20 ms after the one before, joint j at number + j / 16 rad."""
    joints = np.arange(14) / 16
    health = Health(
        time_s=0.0,
        voltage=np.full(14, 7.4),
        temperature=30 + np.arange(14.0),
        torque=np.ones(14, bool),
        faults={},
        watchdog_tripped=False,
        rebooted=(),
    )
    sample = BodySample(
        time_s=100 + 0.02 * number,
        position=number + joints,
        velocity=np.full(14, -1.25),
        current=np.full(14, 0.125),
        angular_velocity=np.array([0.5, 0.25, number]),
        gravity=np.array([0.0, 0.0, -1.0]),
        alerts=(),
        health=health,
    )
    fields: dict[str, Any] = {
        "time_s": 100 + 0.02 * number,
        "mode": Mode.RUN,
        "reason": "the policy does what is asked",
        "mode_s": 0.02 * number,
        "skill": "walk",
        "sample": sample,
        "fresh": True,
        "requested": np.array([0.2, 0.0, 0.3]),
        "command": np.array([0.15, 0.0, 0.3]),
        "head": np.array([0.0, 0.1, 0.2, 0.3]),
        "limited_by": (),
        "observation": np.arange(55, dtype=np.float32),
        "action": np.full(14, 0.75),
        "requested_targets": number + joints + 0.5,
        "targets": number + joints + 0.25,
        "rate_hz": 50.0,
        "missed": 0,
        "stages": {"read": 0.003, "policy": 0.0002, "write": 0.001, "idle": 0.0158},
        "bus_errors": 0,
    }
    return Tick(**{**fields, **changes})


@pytest.fixture
def make_tick() -> Callable[..., Tick]:
    return tick


@pytest.fixture
def meta(bundle: Bundle) -> dict[str, Any]:
    """The description of a drive of the test bundle, whose skills are walk and stand."""
    return describe(bundle, "test-bundle", None, Calibration())


@pytest.fixture
def record(meta: dict[str, Any]) -> Callable[..., Path]:
    """Records ticks to a file and returns it."""

    def run(path: Path, ticks: list[Tick], **options: Any) -> Path:
        with Recorder(path, meta, **options) as recorder:
            for one in ticks:
                recorder.add(one)
        return path

    return run


@pytest.fixture
def drive(tmp_path: Path, record: Callable[..., Path]) -> Path:
    """A finished recording: 10 limp ticks without a sample, 20 rising, 30 running."""
    nothing: dict[str, Any] = {"action": None, "requested_targets": None, "targets": None, "sample": None}
    limp = [tick(n, mode=Mode.LIMP, reason="waiting for START", **nothing) for n in range(10)]
    rise = [tick(n, mode=Mode.RISE, reason="torque on", action=None) for n in range(10, 30)]
    return record(tmp_path / "drive.tdz", [*limp, *rise, *(tick(n) for n in range(30, 60))])


@pytest.fixture
def cut_short(tmp_path: Path, meta: dict[str, Any]) -> Path:
    """The file that is left of 60 ticks whose drive was killed after the last was saved."""
    from firmware_bridge.recording.recorder import Dealings

    path = tmp_path / "killed.tdz"
    with Recorder(path, meta, dealings=Dealings(give_up=lambda: True)) as recorder:
        for number in range(60):
            recorder.add(tick(number))
    return tmp_path / "killed.tdz.part"
