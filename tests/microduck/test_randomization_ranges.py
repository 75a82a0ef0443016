"""Ranges as data: what they accept, how they shrink, and what a table of them says."""

from dataclasses import FrozenInstanceError, replace

import pytest

from hardware.errors import ConfigError
from microduck.randomization import Randomization, Twin
from microduck.randomization.parameters import COLUMNS, PARAMETERS


def test_full_ranges_are_those_of_the_upstream_training():
    full = Randomization.full()
    assert full.sole_friction == (0.7, 1.3)
    assert full.trunk_mass_scale == (0.95, 1.05)
    assert full.voltage == (6.5, 8.2) and full.sag == (0.0, 0.2)
    assert full.delay == (0.015, 0.03)
    assert full.encoder_offset == (-0.015, 0.015)
    assert full.joint_velocity_noise == (0.25, 0.25)
    assert full.push_speed == 0.3 and full.push_interval == (3.0, 6.0)


def test_off_varies_nothing_and_full_varies_everything():
    names = [parameter.name for parameter in PARAMETERS]
    assert [name for name in names if Randomization.off().changes(name)] == []
    assert [name for name in names if not Randomization.full().changes(name)] == []
    assert Randomization.off().push_speed == 0.0


@pytest.mark.parametrize(
    ("strength", "friction", "sag", "push"),
    [
        (0.0, (1.0, 1.0), (0.0, 0.0), 0.0),
        (0.5, (0.85, 1.15), (0.0, 0.1), 0.15),
        (1.0, (0.7, 1.3), (0.0, 0.2), 0.3),
    ],
)
def test_strength_shrinks_every_range_towards_the_nominal_duck(strength, friction, sag, push):
    ranges = Randomization.full().scaled(strength)
    assert ranges.sole_friction == pytest.approx(friction)
    assert ranges.sag == pytest.approx(sag)
    assert ranges.push_speed == pytest.approx(push)
    assert ranges.push_interval == (3.0, 6.0)


def test_full_strength_changes_no_bit_and_none_is_off():
    odd = Randomization(voltage=(6.1, 7.3), sole_friction=(0.1, 0.7), trunk_com=((-0.003, 0.0, 0.001), 0.007))
    assert odd.scaled(1.0) == odd
    assert odd.scaled(0.0) == replace(Randomization.off(), push_interval=odd.push_interval,
                                      trunk_com=((0.0, 0.0, 0.0), 0.0))  # fmt: skip


def test_ranges_can_be_left_out_by_name():
    ranges = Randomization.full().without("voltage", "sag", "push_speed")
    assert [p.name for p in PARAMETERS if not ranges.changes(p.name)] == ["voltage", "sag"]
    assert ranges.push_speed == 0.0 and ranges.sole_friction == (0.7, 1.3)
    with pytest.raises(ConfigError, match=r"there is no range 'friction'; choose from .'sole_friction'"):
        ranges.without("friction")


def test_a_range_of_one_duck_holds_its_values_and_no_pushes():
    twin = Twin(voltage=6.6, trunk_com=(0.001, 0.002, 0.003))
    ranges = Randomization.of(twin)
    low, high = ranges.bounds()
    assert low == high and len(low) == COLUMNS
    assert ranges.voltage == (6.6, 6.6) and ranges.trunk_com[0] == (0.001, 0.002, 0.003)
    assert ranges.push_speed == 0.0 and not ranges.changes("sole_friction")


def test_ranges_are_frozen_and_equal_by_value():
    assert Randomization(sole_friction=[1, 1.3]) == Randomization(sole_friction=(1.0, 1.3))
    with pytest.raises(FrozenInstanceError):
        Randomization.full().sole_friction = (1.0, 1.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sole_friction": 1.0}, "sole_friction is 1.0; give a pair"),
        ({"sole_friction": (0.7, 1.0, 1.3)}, "give a pair: lowest and highest"),
        ({"sole_friction": (1.3, 0.7)}, r"sole_friction is \(1.3, 0.7\); give the lower end first"),
        ({"sole_friction": (-0.1, 1.0)}, r"sole_friction is -0.1; it must be a number in \[0, 5\]"),
        ({"voltage": (6.5, 12.0)}, r"voltage is 12.0; it must be a number in \[6, 8.4\] V"),
        ({"delay": (0.0, float("nan"))}, "delay is nan"),
        ({"sag": (0, True)}, "sag is True"),
        ({"sag": ("0", 1)}, "sag is '0'"),
        ({"armature_scale": (0.9, 10**400)}, "armature_scale is 1000"),
        ({"trunk_com": ((0.0, 0.0), 0.01)}, "trunk_com has an end of 2 numbers; give one for all, or 3"),
        ({"trunk_com": ((0.0, 0.02, 0.0), 0.01)}, "give the lower end first"),
        ({"sag": ((0.0, 0.0), 0.2)}, "sag has an end of 2 numbers"),
        ({"push_speed": -0.1}, r"push_speed is -0.1; it must be in \[0, 5\] m/s"),
        ({"nominal_share": 1.2}, "nominal_share is 1.2; .* in .0, 1."),
        ({"push_interval": (0.0, 1.0)}, "push_interval is .* two times above 0"),
        ({"push_interval": (6.0, 3.0)}, "push_interval is .* lower first"),
    ],
)
def test_what_no_duck_could_be_is_refused_by_name_and_value(arguments, message):
    with pytest.raises(ConfigError, match=message):
        Randomization(**arguments)


@pytest.mark.parametrize("strength", [-0.1, 1.1, float("nan"), "1", True])
def test_a_strength_outside_zero_to_one_is_refused(strength):
    with pytest.raises(ConfigError, match=r"strength is .*; it must be in \[0, 1\]"):
        Randomization.full().scaled(strength)
