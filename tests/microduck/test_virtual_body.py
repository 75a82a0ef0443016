"""Servos that may be limp, and a body that is otherwise the plain model. Physics is stepped by hand."""

from importlib import resources

import mujoco
import numpy as np
import pytest

from hardware import joints
from hardware.joints import JOINT_NAMES, STAND
from microduck.virtual_body import VirtualBody

ON, OFF = np.ones(14, bool), np.zeros(14, bool)
GAIN = np.full(14, 200)
KNEE, HEAD_YAW = JOINT_NAMES.index("left_knee"), JOINT_NAMES.index("head_yaw")


def test_limp_servo_has_no_torque_whatever_its_goal():
    body = VirtualBody()
    body.set_servos(OFF, STAND + 1.0, GAIN)
    body.step()
    assert not body.data.actuator_force.any()
    assert not body.current.any()


def test_only_the_servos_that_are_on_have_torque():
    body = VirtualBody()
    torque = OFF.copy()
    torque[KNEE] = True
    body.set_servos(torque, STAND + 0.2, GAIN)
    body.step()
    assert np.flatnonzero(body.data.actuator_force).tolist() == [KNEE]


@pytest.mark.parametrize(("gain", "torque_nm"), [(200, 0.055), (100, 0.0275), (400, 0.11), (50, 0.01375)])
def test_stiffness_is_0_55_newton_metres_per_radian_at_gain_200_in_proportion(gain, torque_nm):
    body = VirtualBody()
    body.set_servos(ON, body.position + 0.1, np.full(14, gain))
    mujoco.mj_forward(body.model, body.data)
    assert body.data.actuator_force == pytest.approx(torque_nm)
    assert body.current == pytest.approx(torque_nm / 0.366013, rel=1e-5)


def test_torque_is_limited_to_the_stall_torque():
    body = VirtualBody()
    body.set_servos(ON, body.position + 3.0, np.full(14, 400))
    mujoco.mj_forward(body.model, body.data)
    assert body.data.actuator_force == pytest.approx(0.96)


def test_limp_servo_keeps_damping_and_friction():
    body = VirtualBody()
    body.hold()
    body.data.qvel[6 + HEAD_YAW] = 5.0
    for _ in range(100):
        body.step()
    assert abs(body.velocity[HEAD_YAW]) < 0.01
    assert body.position[HEAD_YAW] == pytest.approx(0.0, abs=0.6)


def test_step_is_the_one_policies_are_trained_with():
    body = VirtualBody()
    assert body.model.opt.timestep == pytest.approx(0.005)
    assert body.model.opt.integrator == mujoco.mjtIntegrator.mjINT_IMPLICITFAST


def test_a_free_stiff_duck_moves_as_the_plain_model_does():
    """Torque, gain and hand leave nothing behind: the same motion as MuJoCo's own at the same controls."""
    body = VirtualBody()
    body.hold()
    body.let_go()
    body.set_servos(ON, STAND, GAIN)
    plain = mujoco.MjModel.from_xml_string(resources.files("hardware").joinpath("duck.xml").read_text())
    data = mujoco.MjData(plain)
    mujoco.mj_resetDataKeyframe(plain, data, 0)
    for _ in range(60):
        body.step()
        mujoco.mj_step(plain, data)
    assert body.data.qpos == pytest.approx(data.qpos, abs=1e-9)


def test_joint_order_of_the_body_is_the_contract_s():
    body = VirtualBody()
    names = [body.model.actuator(i).name for i in range(14)]
    assert tuple(names) == joints.JOINT_NAMES
    assert body.position == pytest.approx(STAND)
