"""Skills, ticks and a time that the test sets, for command sources and the control socket."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from firmware_bridge.drive.modes import Mode
from firmware_bridge.drive.summary import Tick
from firmware_bridge.robot.body import BodySample, Health
from firmware_bridge.skills.manifest import Skill
from hardware.joints import STAND


class Clock:
    """A time that passes only when a test says so."""

    def __init__(self) -> None:
        self.now_s = 5.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def skills() -> dict[str, Skill]:
    """Three skills: one walks, one only stands, one also steps aside."""
    return {
        "walk": Skill("walk", 0, (-0.1, 0.0, -0.5), (0.3, 0.0, 0.5), 1.5, 0.0),
        "stand": Skill("stand", 1, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), 2.0, 0.0),
        "trot": Skill("trot", 2, (-0.2, -0.2, -2.0), (0.6, 0.2, 2.0), 2.0, 0.0),
    }


def tick(**changes: Any) -> Tick:
    """Return a tick of a duck that walks; `changes` replace fields of it."""
    health = Health(
        time_s=time.monotonic(),
        voltage=np.full(14, 7.4),
        temperature=np.arange(30.0, 44.0),
        torque=np.ones(14, bool),
        faults={},
        watchdog_tripped=False,
        rebooted=(),
    )
    sample = BodySample(
        time_s=time.monotonic(),
        position=STAND + 0.01,
        velocity=np.zeros(14),
        current=np.full(14, 0.12),
        angular_velocity=np.array([0.01, 0.02, -0.3]),
        gravity=np.array([0.0, 0.0, -1.0]),
        alerts=(),
        health=health,
    )
    fields: dict[str, Any] = {
        "time_s": 12.5,
        "mode": Mode.RUN,
        "reason": "the policy drives",
        "mode_s": 3.25,
        "skill": "walk",
        "sample": sample,
        "fresh": True,
        "requested": np.array([0.2, 0.0, 0.3]),
        "command": np.array([0.15, 0.0, 0.3]),
        "head": np.zeros(4),
        "limited_by": ("slew",),
        "observation": np.zeros(55, np.float32),
        "action": None,
        "requested_targets": None,
        "targets": STAND + 0.02,
        "rate_hz": 50.0,
        "missed": 2,
        "stages": {"read": 0.0031, "policy": 0.0002, "write": 0.0009, "idle": 0.0158},
        "bus_errors": 5,
    }
    return Tick(**{**fields, **changes})


@pytest.fixture
def make_tick() -> Callable[..., Tick]:
    return tick
