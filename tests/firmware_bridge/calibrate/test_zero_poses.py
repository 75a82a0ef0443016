"""What a person is told of a joint's zero, against the model at zero."""

from __future__ import annotations

from importlib.resources import files
from math import atan2, degrees
from xml.etree import ElementTree

import pytest

from firmware_bridge.calibrate.zero_poses import ZEROS
from hardware.joints import JOINT_NAMES


@pytest.fixture(scope="module")
def places() -> dict[str, list[float]]:
    """Where each body hangs in its parent's, all of them square to the trunk at zero [m]."""
    root = ElementTree.fromstring(files("hardware").joinpath("duck.xml").read_text())
    return {
        body.get("name", ""): [float(x) for x in body.get("pos", "").split()] for body in root.iter("body")
    }


def test_every_joint_is_described() -> None:
    assert tuple(ZEROS) == JOINT_NAMES


def test_angles_that_are_told_are_those_of_the_model(places: dict[str, list[float]]) -> None:
    back, _, down = places["leg"]  # from hip axis to knee axis
    below_level = degrees(atan2(-down, -back))
    assert f"{below_level:.0f} degrees below level" in ZEROS["left_hip_pitch"][0]
    along, _, fall = places["ankle_left"]  # from knee axis to ankle axis
    assert along == 0 and fall < 0  # the shank is upright
    assert f"an angle of {90 + below_level:.0f} degrees" in ZEROS["left_knee"][0]


@pytest.mark.parametrize("part", ["hip_yaw", "hip_roll", "hip_pitch", "knee", "ankle"])
def test_legs_look_alike_at_zero_and_turn_the_other_way(part: str) -> None:
    left, right = ZEROS[f"left_{part}"], ZEROS[f"right_{part}"]
    assert left[0] == right[0] and left[1] != right[1]
