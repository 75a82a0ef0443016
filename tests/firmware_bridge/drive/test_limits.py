from __future__ import annotations

import json
import re
from dataclasses import fields
from math import nan
from pathlib import Path

import pytest

from firmware_bridge.drive.limits import Battery, Limits
from firmware_bridge.robot.servos import WATCHDOG_S
from hardware.errors import ConfigError


def test_the_usual_limits_are_those_of_the_ducks_own_daemon() -> None:
    limits = Limits()
    assert (limits.fall_gravity_z, limits.fall_s) == (-0.5, 0.2)
    assert (limits.tip_gravity_z, limits.tip_predicted_z) == (-0.9, -0.5)
    assert (limits.tip_lookahead_s, limits.tip_ticks) == (0.3, 3)
    assert (limits.coast_ticks, limits.deadman_s) == (3, 0.5)
    assert (Battery().rail_is_pack, Battery().empty_v, Battery().full_v) == (False, 6.6, 8.2)


def test_the_duck_sits_before_a_servo_trips_of_heat() -> None:
    assert Limits().temperature_warn < Limits().temperature_limit < 70


@pytest.mark.parametrize("name", [field.name for field in fields(Limits)])
@pytest.mark.parametrize("value", [1e9, -1e9, nan])
def test_a_limit_out_of_range_is_named_with_its_range(name: str, value: float) -> None:
    with pytest.raises(ConfigError, match=rf"^{name} is .*; it must be in \[.*\]$"):
        Limits(**{name: value})


def test_limits_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ConfigError, match="temperature_warn is 66; it must be below"):
        Limits(temperature_warn=66.0)
    with pytest.raises(ConfigError, match=r"empty_v is 8\.3; it must be below full_v, which is 8\.2"):
        Battery(empty_v=8.3)


def test_no_setting_lets_the_policy_run_blind_for_longer_than_the_servos_watchdog() -> None:
    with pytest.raises(ConfigError):
        Limits(coast_ticks=round(WATCHDOG_S / 0.02))


def test_the_documentation_lists_each_limit_with_its_default() -> None:
    text = (Path(__file__).parents[3] / "docs" / "safety.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| `(\w+)` \| (\S+) \|", text, re.MULTILINE))
    for field in (*fields(Limits), *fields(Battery)):
        assert json.loads(listed[field.name]) == field.default
