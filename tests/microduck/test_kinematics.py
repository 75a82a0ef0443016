"""The legs' table against the compiled model, over random joint angles."""

import mujoco
import numpy as np
import pytest

from hardware import kinematics
from hardware.joints import HIGH, LOW, NUM_JOINTS
from microduck.physics.model import load_model

SIDES = ("left", "right")


@pytest.fixture(scope="module")
def duck():
    """The model, and its state with the trunk at the origin, so that world and trunk are one frame."""
    model = load_model()
    data = mujoco.MjData(model)
    data.qpos[:7] = 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0
    return model, data


def drawn(seed):
    """Joint angles and speeds of any size that joints can have."""
    generator = np.random.default_rng(seed)
    return generator.uniform(LOW, HIGH), generator.uniform(-20.0, 20.0, NUM_JOINTS)


@pytest.mark.parametrize("seed", range(20))
def test_the_feet_are_where_the_model_has_their_sites(duck, seed):
    model, data = duck
    position, velocity = drawn(seed)
    data.qpos[7:] = position
    mujoco.mj_kinematics(model, data)
    pose = kinematics.posture(position, velocity).pose
    for side, foot, site in zip(SIDES, pose, kinematics.SITES, strict=True):
        there = data.site(f"{side}_foot")
        assert foot[:3] @ [*site, 1.0] == pytest.approx(there.xpos, abs=1e-12)
        assert foot[:3, :3] == pytest.approx(data.body(f"ankle_{side}").xmat.reshape(3, 3), abs=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_the_feet_move_as_the_models_jacobian_says(duck, seed):
    model, data = duck
    position, velocity = drawn(seed)
    data.qpos[7:] = position
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    rate = kinematics.posture(position, velocity).rate
    jacobian = np.zeros((3, model.nv))
    for side, foot, site in zip(SIDES, rate, kinematics.SITES, strict=True):
        mujoco.mj_jacSite(model, data, jacobian, None, model.site(f"{side}_foot").id)
        assert foot[:3] @ [*site, 1.0] == pytest.approx(jacobian[:, 6:] @ velocity, abs=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_the_centre_of_mass_is_and_moves_where_the_model_has_it(duck, seed):
    model, data = duck
    position, velocity = drawn(seed)
    data.qpos[7:] = position
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    jacobian = np.zeros((3, model.nv))
    mujoco.mj_jacSubtreeCom(model, data, jacobian, 1)
    posture = kinematics.posture(position, velocity)
    assert posture.centre == pytest.approx(data.subtree_com[1], abs=1e-9)
    assert posture.drift == pytest.approx(jacobian[:, 6:] @ velocity, abs=1e-7)


@pytest.mark.parametrize("side", SIDES)
def test_the_corners_of_a_sole_are_the_ends_of_the_models_edges(duck, side):
    model, _ = duck
    leg = kinematics.LEGS[SIDES.index(side)]
    for edge, ends in (("toe", leg.sole[:2]), ("heel", leg.sole[2:])):
        geom = model.geom(f"{side}_{edge}_edge")
        turn = np.zeros(9)
        mujoco.mju_quat2Mat(turn, geom.quat)
        half = geom.size[1] * turn.reshape(3, 3)[:, 2]
        found = sorted([(geom.pos - half).tolist(), (geom.pos + half).tolist()])
        assert np.array(sorted(list(ball.centre) for ball in ends)) == pytest.approx(
            np.array(found), abs=1e-9
        )
        assert [ball.radius for ball in ends] == pytest.approx([geom.size[0]] * 2)
