"""A bus on which 8 % of the replies are damaged: the duck walks on, and nothing is taken or lost unseen.

A simulated duck, in time that passes only when someone waits. `DUCK_DAMAGED_S=60` walks for a minute.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest

from firmware_bridge.commands.fixed import FixedCommand
from firmware_bridge.drive.modes import Mode
from firmware_bridge.emulator.faults import Fault, FaultKind, Schedule
from firmware_bridge.skills.bundle import load_bundle, shipped_bundle
from firmware_bridge.wire.bus_stats import BusStats
from hardware.errors import BusTimeoutError
from microduck.virtual_body import STEP_S, VirtualBody
from microduck.virtual_duck import VirtualDuck

WALK_S = float(os.environ.get("DUCK_DAMAGED_S", "4"))
MOST_TILT = 0.45
"""26 degrees: a walk stays below, and who leans further is about to fall [rad]."""
DAMAGED = 0.08
"""Part of the replies."""
LOSING = (FaultKind.DROP, FaultKind.FLIP, FaultKind.TRUNCATE, FaultKind.WRONG_ID)
"""Kinds after which data of a device are missing; noise, duplicates and echoes leave them whole."""


class Walk(NamedTuple):
    """What became of a walk.

    Attributes:
        modes: those that the drive went through.
        tilt: the trunk's largest, by the simulator [rad].
        steps: largest change of a target in each tick [rad].
        stats: counts of the bus.
        struck: replies damaged.
        spoilt: questions of whose replies one or more were damaged.
    """

    modes: list[Mode]
    tilt: float
    steps: np.ndarray
    stats: BusStats
    struck: int
    spoilt: int


@pytest.fixture
def walk(drive: Any, stepped: Any, make_stepped_body: Callable[..., Any]) -> Callable[[Schedule], Walk]:
    """Lets a simulated duck walk under faults that begin with its first step."""

    def run(faults: Schedule) -> Walk:
        duck, body = make_stepped_body(follow=False)
        simulated = VirtualBody()
        stepped.every(STEP_S, VirtualDuck(duck, simulated, lambda text: None).step)
        targets, tilts = [], []

        def on_tick(tick: Any) -> None:
            if tick.mode is Mode.RUN:
                if not targets:
                    duck.inject(faults)
                targets.append(tick.targets)
                tilts.append(simulated.tilt)

        source = FixedCommand([0.2, 0.0, 0.0])
        bundle = load_bundle(shipped_bundle("walk"))
        fresh = replace(
            drive, body=body, bundle=bundle, time=stepped, source=source, modes=[], on_tick=on_tick
        )
        fresh.run(skill="walk", seconds=WALK_S)
        struck, spoilt = duck.struck
        steps = np.abs(np.diff(targets, axis=0)).max(axis=1)
        return Walk(fresh.modes, max(tilts), steps, body.stats, struck.total(), spoilt)

    return run


def damage(seed: int) -> Schedule:
    """Return faults that damage 8 % of the replies, in four ways."""
    return Schedule(tuple(Fault(kind, probability=DAMAGED / len(LOSING)) for kind in LOSING), seed)


def test_a_walking_duck_neither_falls_nor_jerks_while_replies_are_damaged(
    walk: Callable[[Schedule], Walk],
) -> None:
    clean, hurt = walk(Schedule()), walk(damage(seed=1))
    ticks = round(WALK_S / 0.02)
    assert len(clean.steps) == len(hurt.steps) == ticks - 1
    assert hurt.struck > DAMAGED * ticks  # one reply or more in each tick
    for end in (clean, hurt):
        assert end.modes == [Mode.RISE, Mode.RUN, Mode.SIT, Mode.STOPPED]
        assert end.tilt < MOST_TILT
    assert hurt.steps.max() <= clean.steps.max() + 1e-9
    assert clean.stats.totals() == {}
    # Each question with a damaged reply is one that was not answered in full, and no other is.
    assert hurt.stats.timeout == hurt.spoilt > 0


class Reading(NamedTuple):
    """What 300 ticks of reading came to: counts of the bus, what was struck, and questions spoilt by that."""

    counted: dict[str, int]
    struck: int
    spoilt: int


@pytest.fixture
def read(make_stepped_body: Callable[..., Any], stepped: Any) -> Callable[[Fault], Reading]:
    """Reads a duck at rest under one fault."""

    def run(fault: Fault) -> Reading:
        duck, body = make_stepped_body()
        duck.inject(Schedule((fault,), seed=3))
        for tick in range(300):
            stepped.move_to(200.0 + 0.02 * tick)
            with suppress(BusTimeoutError):
                body.read(stepped.now() + 0.016)
        struck, spoilt = duck.struck
        return Reading(body.stats.totals(), struck[fault.kind], spoilt)

    return run


@pytest.mark.parametrize("kind", LOSING)
def test_each_question_with_a_damaged_reply_counts_as_not_answered(
    read: Callable[[Fault], Reading], kind: FaultKind
) -> None:
    counted, struck, spoilt = read(Fault(kind, probability=DAMAGED))
    assert counted["timeout"] == spoilt > 15
    others = sum(count for name, count in counted.items() if name not in ("timeout", "retry"))
    if kind is FaultKind.DROP:
        assert others == 0
    elif kind is not FaultKind.TRUNCATE:  # of which some are cut off whole
        assert others >= struck


@pytest.mark.parametrize(
    ("fault", "name", "each"),
    [
        (Fault(FaultKind.DUPLICATE, probability=DAMAGED), "late", 1),
        (Fault(FaultKind.NOISE, probability=DAMAGED, amount=8), "noise", 8),
        (Fault(FaultKind.ECHO, probability=DAMAGED), "echo", 1),
    ],
)
def test_what_comes_beside_a_sound_reply_is_counted_to_the_last_and_costs_no_reading(
    read: Callable[[Fault], Reading], fault: Fault, name: str, each: int
) -> None:
    counted, struck, _ = read(fault)
    assert counted == {name: each * struck}
    assert struck > 15
