from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from firmware_bridge.control.telemetry import tick_data
from firmware_bridge.drive.limits import Battery
from hardware.joints import JOINT_NAMES, STAND

MakeTick = Callable[..., Any]


def test_a_tick_is_told_whole_and_in_si_units(make_tick: MakeTick) -> None:
    data = tick_data(make_tick(), bus={"crc": 2})
    assert (data["time_s"], data["mode"], data["mode_s"], data["skill"]) == (12.5, "run", 3.25, "walk")
    assert data["reason"] == "the policy drives"
    assert data["loop"]["rate_hz"] == 50.0
    assert data["loop"]["stages_s"] == {"read": 0.0031, "policy": 0.0002, "write": 0.0009, "idle": 0.0158}
    assert data["bus"] == {"errors": 5, "kinds": {"crc": 2}}
    assert data["command"] == {
        "requested": [0.2, 0.0, 0.3],
        "applied": [0.15, 0.0, 0.3],
        "head": [0.0] * 4,
        "limited_by": ["slew"],
    }
    joints = data["joints"]
    assert joints["names"] == list(JOINT_NAMES)
    assert joints["position"] == pytest.approx(STAND + 0.01, abs=1e-6)
    assert joints["target"] == pytest.approx(STAND + 0.02, abs=1e-6)
    assert (joints["temperature"][13], joints["current"][0], joints["torque"]) == (43.0, 0.12, [True] * 14)
    assert data["imu"] == {"angular_velocity": [0.01, 0.02, -0.3], "gravity": [0.0, 0.0, -1.0]}


def test_a_tick_survives_json_unchanged_and_is_small(make_tick: MakeTick) -> None:
    data = tick_data(make_tick())
    text = json.dumps(data, allow_nan=False)
    assert json.loads(text) == data
    assert len(text) < 4000


def test_what_is_not_finite_becomes_null(make_tick: MakeTick) -> None:
    whole = make_tick()
    position = whole.sample.position.copy()
    position[3] = np.nan
    tick = make_tick(
        rate_hz=float("inf"),
        requested=np.array([np.nan, -np.inf, 0.0]),
        sample=whole.sample._replace(position=position),
    )
    data = tick_data(tick)
    assert data["command"]["requested"] == [None, None, 0.0]
    assert data["loop"]["rate_hz"] is None
    assert data["joints"]["position"][3] is None
    json.dumps(data, allow_nan=False)


def test_before_the_duck_was_seen_there_are_no_joints(make_tick: MakeTick) -> None:
    data = tick_data(make_tick(sample=None, targets=None))
    assert (data["joints"], data["imu"], data["power"]) == (None, None, None)


def test_before_the_first_slow_measurement_the_fast_ones_are_told(make_tick: MakeTick) -> None:
    data = tick_data(make_tick(sample=make_tick().sample._replace(health=None), targets=None))
    assert data["joints"]["position"] == pytest.approx(STAND + 0.01, abs=1e-6)
    assert (data["joints"]["temperature"], data["joints"]["target"], data["power"]) == (None, None, None)


@pytest.mark.parametrize(
    ("volt", "pack", "charge"),
    [
        (7.4, True, 50),  # half way from 6.6 to 8.2
        (6.6, True, 0),
        (8.2, True, 100),
        (8.4, True, 100),
        (4.986, True, 0),
        (4.986, False, None),  # a regulated rail tells nothing about a battery
        (7.4, False, None),
    ],
)
def test_a_charge_is_told_only_where_the_rail_is_the_pack(
    make_tick: MakeTick, volt: float, pack: bool, charge: float | None
) -> None:
    sample = make_tick().sample
    health = sample.health
    fields = {name: getattr(health, name) for name in health.__dataclass_fields__}
    fed = type(health)(**{**fields, "voltage": np.full(14, volt)})
    power = tick_data(make_tick(sample=sample._replace(health=fed)), Battery(rail_is_pack=pack))["power"]
    assert power["voltage"] == pytest.approx(volt)
    assert power["charge_percent"] == (None if charge is None else pytest.approx(charge))
