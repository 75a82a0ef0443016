"""Our own terms against numbers worked out by hand."""

from math import radians

import pytest

from microduck.rewards import REWARD_TERMS

STEPPING = {"foot_velocity": [[0.3, 0.4], [0.1, 0.0]]}  # 0.5 and 0.1 m/s
LANDING = {"touchdown_air_time": [0.225, 0.0]}
ALOFT = {"contacts": [False, False], "standing_height": 0.12}


def joints(**errors):
    """Joint errors [rad] of some joints by their place, zero for the rest."""
    return {"joint_error": [errors.get(f"joint_{place}", 0.0) for place in range(14)]}


CASES = [
    # term, what differs from walking well at 0.2 m/s, value
    ("speed_error", {}, 1.0),
    ("speed_error", {"body_velocity": [0.3, 0.7, 0.0]}, 0.5),
    ("speed_error", {"body_velocity": [0.9, 0.0, 0.0]}, -1.0),
    ("speed_error", {"command": [0.05, 0.0], "body_velocity": [0.1, 0.0, 0.0]}, 0.5),  # relative to 0.1 m/s
    ("speed_error", {"command": [0.0, 0.0]}, 0.0),
    ("heading_hold", {"heading": -0.3}, 0.3678794),  # exp(-1)
    ("heading_hold", {"heading": 0.3, "heading_hold_std": 0.15}, 0.0183156),  # exp(-4)
    ("foot_slip", {**STEPPING, "contacts": [True, True], "previous_contacts": [True, True]}, 0.26),
    ("foot_slip", {**STEPPING, "contacts": [True, False], "previous_contacts": [True, True]}, 0.25),
    ("foot_slip", {**STEPPING, "contacts": [True, True], "previous_contacts": [False, True]}, 0.01),
    ("foot_slip", {**STEPPING, "contacts": [False, False], "previous_contacts": [True, True]}, 0.0),
    ("foot_clearance", {**STEPPING, "foot_heights": [0.005, 0.03]}, 0.0075),  # 15 mm at 0.5 m/s
    ("foot_clearance", {**STEPPING, "foot_heights": [0.01, 0.0]}, 0.007),  # 0.01 * 0.5 + 0.02 * 0.1
    ("foot_clearance", {**STEPPING, "foot_heights": [0.04, 0.03], "clearance_target_height": 0.06}, 0.013),
    ("foot_clearance", {"foot_velocity": [[0.0, 0.0], [0.0, 0.0]], "foot_heights": [0.0, 0.0]}, 0.0),
    ("torque", {"joint_torque": [-0.5] * 14}, 3.5),
    ("torque", {"joint_torque": [0.1, -0.2, *[0.0] * 12]}, 0.05),
    ("power", {"joint_torque": [0.5, -0.5, *[0.0] * 12], "joint_velocity": [2.0] * 14}, 2.0),
    ("power", {"joint_torque": [0.5] * 14}, 0.0),  # holding takes none
    ("joint_limit", {}, 0.0),  # STAND is well inside every range
    ("joint_limit", joints(joint_0=radians(30) - 0.04), 0.06),  # left hip yaw: -25 to 30 degrees, STAND 0
    ("joint_limit", joints(joint_0=radians(30) + 0.05), 0.15),
    ("joint_limit", joints(joint_0=radians(-25) + 0.03), 0.07),
    ("joint_limit", joints(joint_1=radians(-22) + 0.0872665 + 0.04), 0.06),  # hip roll: STAND -0.0872665
    ("joint_limit", joints(joint_0=radians(30) - 0.04, joint_7=radians(170) - 0.02), 0.14),
    ("joint_limit", {**joints(joint_0=radians(30) - 0.12), "joint_limit_margin": 0.2}, 0.08),
    ("self_collision", {"self_contacts": 3}, 3.0),
    ("action_acceleration", {"action": [0.5] * 14, "earlier_action": [0.5] * 14}, 14.0),
    ("action_acceleration", {"action": [0.2] * 14, "previous_action": [0.1] * 14}, 0.0),
    (
        "action_acceleration",
        {"action": [0.2] * 14, "previous_action": [0.1] * 14, "earlier_action": [0.1] * 14},
        0.14,
    ),
    ("flat_foot", {"foot_tilt": [0.3, 0.4]}, 0.25),
    ("air_time_moving", LANDING, 0.1),
    ("air_time_moving", {"touchdown_air_time": [0.9, 0.1]}, 0.175),  # capped and floored as air_time
    ("air_time_moving", {**LANDING, "body_velocity": [0.1, 0.0, 0.0]}, 0.05),
    ("air_time_moving", {**LANDING, "body_velocity": [0.0, 0.2, 0.0]}, 0.0),  # drifting sideways
    ("air_time_moving", {**LANDING, "body_velocity": [-0.2, 0.0, 0.0]}, 0.0),
    ("air_time_moving", {**LANDING, "command": [0.0, 0.0]}, 0.0),
    ("air_time_moving", {**LANDING, "upright": 0.34}, 0.0),
    ("flight", {"contacts": [False, False]}, 1.0),
    ("flight", {"contacts": [False, True]}, 0.0),
    ("flight", {"contacts": [False, False], "upright": 0.34}, 0.0),  # tumbling is no flight
    ("single_support", {"contacts": [False, True]}, 1.0),
    ("single_support", {"contacts": [True, True]}, 0.0),
    ("single_support", {"contacts": [False, False]}, 0.0),
    # STAND is 0.12 m high here: 1 cm above it earns nothing yet, 1.5 cm half, 2 cm all.
    ("soar", {**ALOFT, "base_height": 0.13}, 0.0),
    ("soar", {**ALOFT, "base_height": 0.135}, 0.5),
    ("soar", {**ALOFT, "base_height": 0.15}, 1.0),
    ("soar", {**ALOFT, "base_height": 0.15, "contacts": [True, False]}, 0.0),
    ("soar", {**ALOFT, "base_height": 0.15, "upright": 0.34}, 0.0),
    ("mean_velocity", {}, 1.0),
    ("mean_velocity", {"mean_velocity_error": [0.03, -0.04]}, 0.3678794),  # 0.05 m/s off: exp(-1)
    ("mean_velocity", {"mean_velocity_error": [0.0, 0.05], "mean_velocity_std": 0.1}, 0.7788008),  # exp(-1/4)
    ("mean_velocity", {"body_velocity": [0.9, 0.9, 0.0]}, 1.0),  # a moment tells nothing
]


@pytest.mark.parametrize(("name", "changes", "expected"), CASES)
def test_a_term_has_its_hand_worked_value(name, changes, expected, value):
    assert value(name, changes) == pytest.approx(expected, abs=2e-6)


def test_every_term_of_our_own_has_a_hand_worked_value():
    tested = list(dict.fromkeys(name for name, _, _ in CASES))
    assert tested == list(REWARD_TERMS)[20:]


@pytest.mark.parametrize("name", [name for name in list(REWARD_TERMS)[22:] if name != "mean_velocity"])
def test_standing_still_in_stand_costs_nothing(name, value):
    standing = {
        "body_velocity": [0.0, 0.0, 0.0],
        "command": [0.0, 0.0],
        "contacts": [True, True],
        "foot_heights": [0.0, 0.0],
        "foot_velocity": [[0.0, 0.0], [0.0, 0.0]],
    }
    assert value(name, standing) == 0.0
