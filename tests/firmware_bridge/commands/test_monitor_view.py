from __future__ import annotations

from math import cos, radians, sin
from typing import Any

import pytest

from firmware_bridge.cli.monitor_view import draw, joint_lines, summary_lines
from hardware.joints import JOINT_NAMES

DRIVE = {"pid": 1234, "source": "keyboard"}


def tick(**changes: Any) -> dict[str, Any]:
    """Return a tick as it comes over the socket."""
    return {
        "mode": "run",
        "mode_s": 3.25,
        "reason": "the policy drives",
        "skill": "walk",
        "loop": {"rate_hz": 49.98, "missed": 2, "stages_s": {"read": 0.0031, "policy": 0.0002}},
        "bus": {"errors": 5, "kinds": {"crc": 2, "timeout": 3}},
        "command": {
            "requested": [0.2, 0, 0.3],
            "applied": [0.15, 0, 0.3],
            "head": [0] * 4,
            "limited_by": ["slew"],
        },
        "joints": {
            "names": list(JOINT_NAMES),
            "target": [0.02] * 14,
            "position": [-0.01] * 14,
            "current": [0.12] * 14,
            "temperature": [30 + index for index in range(14)],
            "torque": [True] * 14,
            "alerts": [],
            "faults": {},
            "rebooted": [],
        },
        "imu": {"angular_velocity": [0.01, 0.02, -0.3], "gravity": [0.0, 0.0, -1.0]},
        "power": {"voltage": 7.61, "charge_percent": 63.0, "watchdog_tripped": False},
        **changes,
    }


def text(tick: Any) -> str:
    return "\n".join(summary_lines(DRIVE, tick))


def test_the_summary_tells_what_a_user_asks_first() -> None:
    shown = text(tick())
    for part in (
        "process 1234, commands from: keyboard",
        "run for 3.2 s, skill walk: the policy drives",
        "49.98 Hz, 2 missed; ms: read 3.1  policy 0.2",
        "5 failed reads and writes; crc 2, timeout 3",
        "7.61 V, 63 % charged, hottest servo 43 C",
        "vx +0.20  vy +0.00  yaw +0.30",
        "vx +0.15  vy +0.00  yaw +0.30  limited by slew",
    ):
        assert part in shown


def test_volts_are_shown_without_a_charge_where_the_rail_is_not_the_pack() -> None:
    shown = text(tick(power={"voltage": 4.986, "charge_percent": None}))
    assert "4.99 V" in shown
    assert "charged" not in shown


@pytest.mark.parametrize(
    ("gravity", "shown"),
    [
        ([0, 0, -1], "to the right +0.0, forward +0.0 deg"),
        (
            [sin(radians(20)), 0, -cos(radians(20))],
            "to the right +0.0, forward +20.0 deg",
        ),  # gravity points ahead
        ([0, -sin(radians(30)), -cos(radians(30))], "to the right +30.0, forward +0.0 deg"),
        ([-1, 0, 0], "forward -90.0 deg"),
        ([0, 0, 1], "to the right +180.0"),
    ],
)
def test_the_trunks_lean_is_told_by_gravity(gravity: list[float], shown: str) -> None:
    lean = text(tick(imu={"angular_velocity": [0, 0, 0], "gravity": gravity}))
    assert shown in lean.replace("-180", "+180")


def test_each_joint_has_a_line_with_what_is_wrong_with_it() -> None:
    joints = tick()["joints"]
    joints["torque"][1] = False
    joints["faults"] = {"left_knee": ["overload", "overheating"], "left_ankle": ["input voltage"]}
    joints["alerts"] = ["left_knee", "left_ankle", "neck_pitch"]
    joints["rebooted"] = ["right_ankle"]
    head, *lines = joint_lines(tick(joints=joints))
    assert [line.split()[0] for line in lines] == list(JOINT_NAMES)
    assert lines[0].split() == ["left_hip_yaw", "+0.020", "-0.010", "+0.12", "A", "30", "C"]
    assert lines[1].endswith("limp")
    assert lines[3].endswith("FAULT: overload, overheating")
    assert lines[4].endswith("C  input voltage")  # which a charged pack always reports
    assert lines[5].endswith("FAULT")
    assert lines[13].endswith("rebooted")
    assert head.split() == ["joint", "target", "is", "at", "current", "temp"]


def test_before_the_first_tick_the_screen_says_so() -> None:
    lines = draw(DRIVE, None, 80, 24)
    assert "no tick yet" in "\n".join(lines)
    assert joint_lines(None) == []


def test_all_of_it_fits_a_small_terminal() -> None:
    lines = draw(DRIVE, tick(), 80, 24)
    assert len(lines) == 23
    assert max(map(len, lines)) <= 80
    assert lines[-1].startswith("right_ankle")


@pytest.mark.parametrize(("width", "height"), [(20, 5), (1, 1), (300, 100)])
def test_a_screen_of_any_size_is_never_left(width: int, height: int) -> None:
    lines = draw(DRIVE, tick(), width, height)
    assert len(lines) <= height
    assert all(len(line) <= width for line in lines)


@pytest.mark.parametrize(
    "bad",
    [
        {},
        [],
        "tick",
        7,
        dict.fromkeys(tick(), None),
        dict.fromkeys(tick(), 10**400),
        {key: [] for key in tick()},
        {
            key: {"names": ["a"], "gravity": [10**400] * 3, "kinds": {"a": {}}, "voltage": 10**400}
            for key in tick()
        },
        tick(joints={"names": [None, 1], "temperature": ["hot"], "position": [[]], "faults": []}),
    ],
)
def test_whatever_comes_over_the_wire_is_drawn_without_an_error(bad: Any) -> None:
    assert draw(bad, bad, 80, 24)


def test_text_from_the_wire_cannot_move_the_cursor() -> None:
    lines = draw(
        {"pid": "\x1b[2J", "source": "\r\n"}, tick(reason="\x1b]0;owned\x07", skill="\u202e"), 80, 24
    )
    assert all(character.isprintable() for line in lines for character in line)
