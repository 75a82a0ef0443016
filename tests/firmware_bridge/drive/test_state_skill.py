"""A skill of layout `state` on a simulated duck over the bus, in time that passes only when someone waits."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from firmware_bridge.commands.fixed import FixedCommand
from firmware_bridge.drive.modes import Mode
from firmware_bridge.skills.bundle import load_bundle
from hardware import contract, rotations
from microduck.virtual_body import STEP_S, VirtualBody
from microduck.virtual_duck import VirtualDuck

WALK_S = float(os.environ.get("VELOCITY_S", "4"))
VELOCITY = slice(contract.offsets("state")["linear_velocity"], contract.offsets("state")["planar_command"])


def test_it_walks_on_an_estimate_that_is_right_to_5_cm_a_second(
    drive: Any, stepped: Any, make_stepped_body: Callable[..., Any], state_walker_folder: Path
) -> None:
    duck, body = make_stepped_body(follow=False)
    simulated = VirtualBody()
    virtual = VirtualDuck(duck, simulated, lambda text: None)
    stepped.every(STEP_S, virtual.step)
    true, found = [], []

    def on_tick(tick: Any) -> None:
        if tick.mode is Mode.RUN:
            true.append(rotations.rotate_inverse(simulated.orientation, simulated.data.qvel[:3]))
            found.append(tick.observation[VELOCITY])

    source, bundle = FixedCommand([0.15, 0.0, 0.0]), load_bundle(state_walker_folder)
    fresh = replace(drive, body=body, bundle=bundle, time=stepped, source=source, modes=[], on_tick=on_tick)
    fresh.run(skill="walk", seconds=WALK_S)
    rms = np.sqrt(((np.array(found) - np.array(true))[10:] ** 2).mean(axis=0))
    assert fresh.modes == [Mode.RISE, Mode.RUN, Mode.SIT, Mode.STOPPED]
    assert rms.max() <= 0.05
    (run,) = virtual.reports
    assert not run.fell
    # Were the velocity nothing it would go at more than 0.21 m/s, were it one too high it would stand.
    assert 0.1 < run.mean_speed_mps < 0.18
