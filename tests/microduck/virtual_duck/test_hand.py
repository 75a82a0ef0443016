"""The hand that holds the virtual duck, lets it go at its first step, and picks it up after a run."""

import mujoco
import numpy as np
import pytest

from hardware.joints import JOINT_NAMES, STAND
from microduck.hand import Grip, Hand
from microduck.virtual_body import VirtualBody

ON, OFF = np.ones(14, bool), np.zeros(14, bool)
KNEE, NECK = (JOINT_NAMES.index(name) for name in ("left_knee", "neck_pitch"))
UPRIGHT = [0, 0, 0.14, 1, 0, 0, 0]  # it stands at 0.12


def held_height(body):
    return body.data.qpos[:7].tolist()


def test_a_limp_duck_is_held_upright_and_still(duck, desk, body, steps):
    steps(duck, 2.0)
    assert held_height(body) == pytest.approx(UPRIGHT, abs=1e-12)
    assert desk.imu[0] == pytest.approx([0, 0, 0])
    assert not duck.reports


def test_a_held_duck_moves_its_joints_as_on_a_fixed_base(duck, desk, body, stand_up):
    """A trunk that fell freely would not feel its limbs' weight: held, 20 degrees of head lead to a sag."""
    stand_up(duck, desk)
    sag = np.abs(body.position - STAND)
    assert 0.03 < sag.max() < 0.1


def test_hand_holds_while_the_servos_rise_and_hold_stand(duck, desk, body, steps):
    desk.torque = ON.copy()
    start = np.array(body.position) + 0.3
    for part in np.linspace(0, 1, 100):
        desk.goals = start + part * (STAND - start)
        steps(duck, 0.02)
    steps(duck, 2.0)
    assert held_height(body) == pytest.approx(UPRIGHT, abs=1e-12)


def test_hand_lets_go_at_the_first_goal_that_leaves_stand(duck, desk, said, body, steps, stand_up):
    stand_up(duck, desk)
    desk.goals = STAND + 0.019
    steps(duck, 0.1)
    assert held_height(body) == pytest.approx(UPRIGHT, abs=1e-12)
    desk.first_step()
    steps(duck, 0.1)
    assert held_height(body) != pytest.approx(UPRIGHT, abs=1e-4)
    assert said == ["the hand lets go"]


def test_hand_keeps_a_duck_that_never_reached_stand(duck, desk, body, steps):
    desk.torque = ON.copy()
    desk.goals = STAND + 0.3
    steps(duck, 1.0)
    assert held_height(body) == pytest.approx(UPRIGHT, abs=1e-12)


def test_hand_lets_go_even_while_a_limp_head_still_lags_behind_the_rise():
    body = VirtualBody()
    hand = Hand(body)
    body.data.qpos[7 + NECK] = -1.57
    assert hand.update(ON, STAND) is None
    assert hand.update(ON, STAND + 0.05) is Grip.LET_GO


def test_hand_keeps_a_duck_with_one_limp_servo(duck, desk, body, steps, stand_up):
    stand_up(duck, desk)
    desk.torque[KNEE] = False
    desk.first_step()
    steps(duck, 0.5)
    assert held_height(body) == pytest.approx(UPRIGHT, abs=1e-12)


def test_fallen_duck_is_picked_up_a_second_after_its_torque_went_off(duck, desk, said, body, steps, stand_up):
    stand_up(duck, desk)
    desk.first_step()
    steps(duck, 2.0)
    desk.torque = OFF.copy()
    steps(duck, 0.9)
    lying = body.data.qpos[:3].copy()
    assert lying[2] < 0.08
    steps(duck, 0.2)
    x, y, z, *orientation = held_height(body)
    assert z == pytest.approx(0.14) and orientation == pytest.approx([1, 0, 0, 0])
    assert (x, y) == pytest.approx(lying[:2], abs=0.02)
    assert said[-1] == "the hand holds the duck again"


def test_soles_of_a_held_duck_touch_nothing_not_even_after_a_fall(duck, desk, body, steps, stand_up):
    def on_the_floor():
        floor = mujoco.mj_name2id(body.model, mujoco.mjtObj.mjOBJ_GEOM, "floor")
        return (body.data.contact.geom == floor).any()

    for _ in range(2):
        steps(duck, 2.0)
        assert not on_the_floor()
        stand_up(duck, desk)
        assert not on_the_floor()
        desk.first_step()
        steps(duck, 1.5)
        assert on_the_floor()
        desk.torque = OFF.copy()
        steps(duck, 1.2)


def test_hand_puts_the_duck_down_before_it_lets_go(duck, desk, body, stand_up):
    stand_up(duck, desk)
    desk.first_step()
    duck.step()
    assert body.height == pytest.approx(0.12, abs=5e-4)
    assert np.abs(body.data.qvel[:3]).max() < 0.1  # dropped from 2 cm it would soon be 0.6 m/s


def test_a_duck_that_gets_torque_again_in_time_is_left_lying(duck, desk, body, steps, stand_up):
    stand_up(duck, desk)
    desk.first_step()
    steps(duck, 2.0)
    for _ in range(4):
        desk.torque = OFF.copy()
        steps(duck, 0.6)
        desk.torque = ON.copy()
        steps(duck, 0.1)
    assert body.height < 0.1
