"""What no program can prevent: `kill -9`. The servos must then stop by themselves."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from firmware_bridge.emulator.duck import EmulatedDuck
from firmware_bridge.skills.bundle import shipped_bundle

LIMP_S = 0.3
"""Longest time from the kill to limp servos [s]."""


class DuckTime:
    """The duck's clock: real time, until it is held at one moment."""

    def __init__(self) -> None:
        self.held_s: float | None = None

    def __call__(self) -> float:
        return time.monotonic() if self.held_s is None else self.held_s


@pytest.fixture
def duck_time() -> DuckTime:
    return DuckTime()


@pytest.fixture
def duck(duck_time: DuckTime) -> Iterator[EmulatedDuck]:
    """A duck that can be looked at as it is at one moment, however late a busy machine comes to look."""
    with EmulatedDuck(clock=duck_time) as emulated:
        yield emulated


def test_servos_of_a_walking_duck_are_limp_soon_after_its_program_is_killed(
    launch: Callable[..., Any],
    duck: EmulatedDuck,
    duck_time: DuckTime,
    wait_until: Callable[[Callable[[], Any]], None],
) -> None:
    run = launch("--command", "0.2", "0", "0", bundle=shipped_bundle("walk"), patch="servos.WATCHDOG_S = 0.2")
    run.wait_for("run")
    before = duck.goals
    wait_until(lambda: np.abs(duck.goals - before).max() > 0.2)
    assert duck.torque.all()
    killed_s = duck_time()
    run.process.kill()
    assert run.process.wait() == -9
    duck_time.held_s = killed_s + LIMP_S
    assert not duck.torque.any()
