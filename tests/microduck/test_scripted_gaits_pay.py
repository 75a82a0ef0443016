"""Stepping in place under a command earns less than walking it: one second of each, scripted by hand."""

import pytest
import torch

from hardware.contract import CONTROL_PERIOD_S
from microduck.learning.nine_skills import stepping_row
from microduck.rewards import REWARD_TERMS, Features
from microduck.tasks import tracking_task

SPEED, STEPS, SWING = 0.3, 50, 10
"""Command [m/s], control steps in the second, and steps of a swing: 0.2 s, a clock of 2.5 Hz."""


def gait(speed):
    """Return one second on the clock, a row per step: the feet lift 2 cm and swing at twice the speed."""
    step = torch.arange(STEPS)
    left_swings = step // SWING % 2 == 0
    contacts = torch.stack([~left_swings, left_swings], dim=-1)
    previous = contacts.roll(1, 0)
    previous[0] = True
    landed = (contacts & ~previous).float()
    landed[0] = 0
    swinging = (~contacts).float()
    velocity = torch.tensor([speed, 0.0, 0.0]).expand(STEPS, 3)
    nothing = torch.zeros(STEPS)
    return {
        "body_velocity": velocity,
        "world_velocity": velocity,
        "angular_velocity": torch.zeros(STEPS, 3),
        "upright": torch.ones(STEPS),
        **dict.fromkeys(["base_height", "standing_height"], torch.full((STEPS,), 0.12)),
        **dict.fromkeys(["heading", "head_pitch", "head_yaw", "yaw_rate_command"], nothing),
        **dict.fromkeys(["joint_error", "joint_velocity"], torch.zeros(STEPS, 14)),
        **dict.fromkeys(["action", "previous_action"], torch.zeros(STEPS, 14)),
        "contacts": contacts,
        "previous_contacts": previous,
        "foot_heights": 0.02 * swinging,
        "touchdown_air_time": SWING * CONTROL_PERIOD_S * landed,
        "gait_phase": torch.pi * (step + 0.5) / SWING,
        "command": torch.tensor([SPEED, 0.0]).expand(STEPS, 2),
        "fallen": torch.zeros(STEPS, dtype=torch.bool),
        "foot_velocity": torch.stack([2 * speed * swinging, torch.zeros(STEPS, 2)], dim=-1),
    }


def pay(row, speed, *terms):
    """Return what a row pays for the second, all in all or for some terms."""
    features = Features(gait(speed))
    params = {name: value.expand(STEPS) for name, value in row.params.items()}
    paid = 0.0
    for (name, term), weight in zip(REWARD_TERMS.items(), row.reward_weights.tolist(), strict=True):
        if weight and (not terms or name in terms):
            seconds = CONTROL_PERIOD_S if term.per_second else 1.0
            paid += weight * seconds * float(term.function(features, params).sum())
    return paid


def tracking(**overrides):
    weights = {"air_time_moving": 3.0, "foot_clearance": -10.0}
    return tracking_task(SPEED, reward_weights=weights, **overrides)


def test_the_tracking_row_pays_little_more_than_half_for_stepping_in_place():
    # Walking: 2+1+1+2+1 for tracking, yaw, head, upright and pose; 2 for progress, 2 for the swing, 3 for the
    # contacts. Four times a foot lands after 0.2 s, 0.075 s beyond the least, in a step of 0.02 s: 3 * 0.006
    # for the air time, and as much for the one that asks for motion.
    assert pay(tracking(), SPEED) == pytest.approx(14.0 + 0.018 + 0.018, abs=1e-4)
    # In place: 2 exp(-9) of the tracking, no progress, half of the gait, no air time that must move.
    assert pay(tracking(), 0.0) == pytest.approx(5.0 + 0.000247 + 2.5 + 0.009, abs=1e-4)


def test_the_shipped_walkers_row_pays_less_for_stepping_in_place():
    row = stepping_row("walk", (0.0, 0.0), (0.3, 0.0))
    assert 0 < pay(row, 0.0) < 0.6 * pay(row, SPEED)


def test_bonuses_for_the_feet_that_ask_for_motion_pay_nothing_in_place():
    assert pay(tracking(), 0.0, "air_time_moving", "foot_clearance") <= 0
    assert pay(tracking(), SPEED, "air_time_moving") > 0


def test_without_a_floor_no_bonus_for_the_feet_pays_in_place():
    feet = ("air_time", "swing_height", "phase_contact")
    row = tracking(gait_progress_floor=0.0)
    assert pay(row, 0.0, *feet) == 0
    assert pay(row, SPEED, *feet) == pytest.approx(2 + 3 + 0.018, abs=1e-4)


def test_dragging_the_feet_along_costs_where_lifting_them_does_not():
    low = Features({**gait(SPEED), "foot_heights": torch.zeros(STEPS, 2)})
    target = {"clearance_target_height": torch.full((STEPS,), 0.02)}
    cost = REWARD_TERMS["foot_clearance"].function
    assert cost(Features(gait(SPEED)), target).tolist() == [0.0] * STEPS
    assert cost(low, target).tolist() == pytest.approx([0.012] * STEPS)  # 2 cm at 0.6 m/s
