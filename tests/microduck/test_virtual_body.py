"""Servos that may be limp, and a body that is otherwise the plain model. Physics is stepped by hand."""

from importlib import resources

import mujoco
import numpy as np
import pytest
import torch

from hardware import joints
from hardware.errors import ConfigError
from hardware.joints import JOINT_NAMES, STAND
from microduck.virtual_body import BodyOptions, VirtualBody

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
    assert abs(body.velocity[HEAD_YAW]) < 0.05
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


# The servo as it is


def motors(**options):
    body = VirtualBody(BodyOptions(actuator="xl330", **options))
    body.hold()
    return body


def steps(body, count):
    for _ in range(count):
        body.step()


@pytest.mark.parametrize(
    ("options", "gain", "torque_nm"),
    [
        ({}, 200, 0.05544),  # 0.1 rad at 7.4 V, by 0.07492 N m/rad for each volt at gain 200
        ({"voltage": 6.0}, 200, 0.0450),
        ({"voltage": 8.2}, 200, 0.0614),
        ({}, 100, 0.02772),
        ({"gain_scale": 1.5}, 100, 0.04158),
    ],
)
def test_motor_s_stiffness_goes_with_register_and_voltage(options, gain, torque_nm):
    body = motors(**options)
    body.set_servos(ON, body.position + 0.1, np.full(14, gain))
    mujoco.mj_forward(body.model, body.data)
    assert body.data.actuator_force == pytest.approx(torque_nm, rel=2e-3)
    assert body.current == pytest.approx(torque_nm / 0.366013, rel=2e-3)


def test_no_current_flows_in_a_limp_motor_however_it_is_moved():
    body = motors()
    body.set_servos(OFF, STAND + 1.0, GAIN)
    body.data.qvel[6 + HEAD_YAW] = 8.0
    steps(body, 5)
    assert body.velocity[HEAD_YAW] > 2.0
    assert np.abs(body.current).max() < 1e-12


def test_a_limp_motor_coasts_where_one_with_torque_and_no_gain_brakes():
    """The first has open ends, the second is shorted: 0.048 N m s/rad of braking on top of 0.005."""
    lost = []
    for torque in (OFF, ON):
        body = motors()
        body.set_servos(torque, body.position, np.zeros(14))
        body.data.qvel[6 + HEAD_YAW] = 8.0
        steps(body, 6)
        lost.append(8.0 - body.velocity[HEAD_YAW])
    assert 0 < lost[0] < 0.25 * lost[1]


def test_a_limp_motor_s_gearbox_rubs_until_it_stands():
    body = motors()
    body.data.qvel[6 + HEAD_YAW] = 3.0
    steps(body, 100)
    assert abs(body.velocity[HEAD_YAW]) < 0.05
    assert 0.05 < body.position[HEAD_YAW] < 1.5


def test_the_battery_sags_under_load_and_recovers():
    body = motors(sag=0.1)
    assert body.voltage == pytest.approx(7.4)
    body.set_servos(ON, body.position + 1.0, GAIN)
    steps(body, 1)
    # 14 servos with 0.5544 N m each take 0.776 V.
    assert body.voltage == pytest.approx(6.624, abs=2e-3)
    body.set_servos(OFF, body.position, GAIN)
    steps(body, 2)
    assert body.voltage == pytest.approx(7.4)


@pytest.mark.parametrize("actuator", ["position", "xl330"])
def test_a_goal_waits_for_the_delay(actuator):
    body = VirtualBody(BodyOptions(actuator=actuator, delay=0.02))
    body.hold()
    loaded = []
    for _ in range(6):
        body.set_servos(ON, STAND + 0.3, GAIN)
        body.step()
        loaded.append(abs(body.data.actuator_force[HEAD_YAW]) > 0.1)
    assert loaded == [False] * 4 + [True] * 2


def test_goals_of_limp_times_are_forgotten_when_torque_comes():
    body = motors(delay=0.04)
    for _ in range(20):
        body.set_servos(OFF, STAND + 1.0, GAIN)
        body.step()
    body.set_servos(ON, body.position.copy(), GAIN)
    steps(body, 3)
    assert np.abs(body.data.actuator_force).max() < 0.1  # 1 rad would be 0.55


@pytest.mark.parametrize("actuator", ["position", "xl330"])
def test_friction_scale_holds_more(actuator):
    ways = []
    for scale in (1.0, 4.0):
        body = VirtualBody(BodyOptions(actuator=actuator, friction_scale=scale))
        body.hold()
        body.data.qvel[6 + HEAD_YAW] = 4.0
        steps(body, 60)
        ways.append(body.position[HEAD_YAW])
    assert 0 < ways[1] < 0.9 * ways[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"actuator": "servo"}, "actuator is 'servo'; choose one of"),
        ({"sag": 0.1}, "actuator='xl330'"),
        ({"actuator": "xl330", "voltage": 12.0}, "voltage of simulation 0 is 12"),
        ({"delay": 0.1}, r"delay of simulation 0 is 0\.1"),
    ],
)
def test_impossible_servos_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        VirtualBody(BodyOptions(**options))


def test_model_fields_can_be_written():
    body = motors()
    body.fields.expand("body_mass")[0, 1] += 0.1
    body.fields.set_constants(torch.tensor([0]))
    assert body.model.body_mass[1] == pytest.approx(0.299224)
    assert body.model.body_subtreemass[1] == pytest.approx(0.837243, abs=1e-6)
