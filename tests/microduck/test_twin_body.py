"""The virtual duck as one certain duck: its body, servos and sensors. Physics is stepped by hand."""

import math
from dataclasses import replace

import mujoco
import numpy as np
import pytest

from hardware import rotations
from hardware.errors import ConfigError
from hardware.joints import JOINT_NAMES, STAND
from microduck.cli.twin import twin as write_twin
from microduck.cli.virtual_duck import virtual_duck
from microduck.randomization import Randomization, Twin, load_twin
from microduck.randomization.body_senses import TwinSenses
from microduck.randomization.twin_body import twin_body
from microduck.virtual_duck import VirtualDuckOptions, run_virtual_duck

ON, GAIN = np.ones(14, bool), np.full(14, 200)
HEAD_YAW = JOINT_NAMES.index("head_yaw")
PERIOD_STEPS = 4  # of 5 ms in a control period


def held(twin):
    body = twin_body(twin)
    body.hold()
    return body, TwinSenses(body, twin)


def hold_at(body, senses, goals, steps, gain=GAIN):
    for _ in range(steps):
        body.set_servos(ON, senses.goals(goals), gain)
        body.step()
        told = senses.read()
    return told


def head_offset(value):
    offsets = [0.0] * 14
    offsets[HEAD_YAW] = value
    return tuple(offsets)


def test_the_body_has_the_masses_centres_and_friction_of_its_file():
    nominal = twin_body(Twin()).model
    twin = Twin(sole_friction=0.6, trunk_mass_scale=1.2, trunk_com=(0.01, 0.0, 0.0), armature_scale=1.1)
    model = twin_body(twin).model
    assert model.body_mass[1] == pytest.approx(1.2 * 0.199224)
    assert model.body_mass[2:] == pytest.approx(nominal.body_mass[2:])
    assert model.body_subtreemass[1] == pytest.approx(0.737243 + 0.2 * 0.199224, rel=1e-5)
    assert model.body_ipos[1] - nominal.body_ipos[1] == pytest.approx([0.01, 0.0, 0.0])
    assert model.dof_armature[6:] / nominal.dof_armature[6:] == pytest.approx(1.1)
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    data.qpos[2] -= 0.004
    mujoco.mj_forward(model, data)
    assert data.ncon and {contact.friction[0] for contact in data.contact} == {0.6}


def test_an_encoder_offset_turns_the_joint_and_not_what_is_told():
    body, senses = held(Twin(encoder_offset=head_offset(0.1)))
    told = hold_at(body, senses, STAND, 100, np.full(14, 1000))  # so stiff that friction holds back little
    assert body.position[HEAD_YAW] == pytest.approx(-0.1, abs=0.01)
    assert told.position[HEAD_YAW] == pytest.approx(0.0, abs=0.01)


def test_a_command_waits_for_its_delay():
    """With 20 ms, no joint moves otherwise in the first four steps of 5 ms."""
    still, moved = held(Twin(delay=0.02)), held(Twin(delay=0.02))
    same = []
    for _ in range(6):
        hold_at(*still, STAND, 1)
        hold_at(*moved, STAND + 0.3, 1)
        same.append(np.array_equal(still[0].position, moved[0].position))
    assert same == [True] * 4 + [False] * 2


def test_a_limp_servo_does_not_drive_and_a_stiff_one_does():
    body, senses = held(Twin())
    for _ in range(100):
        body.set_servos(np.zeros(14, bool), STAND + 0.5, GAIN)
        body.step()
    assert abs(body.position[HEAD_YAW]) < 0.01
    hold_at(body, senses, STAND + 0.5, 200)
    assert body.position[HEAD_YAW] == pytest.approx(0.5, abs=0.05)


def test_the_bus_hears_a_battery_that_sags_under_load():
    body, senses = held(Twin(voltage=7.8, sag=0.2))
    assert body.voltage == pytest.approx(7.8)
    told = hold_at(body, senses, STAND, 200)
    load = np.abs(body.data.actuator_force).sum()
    assert load > 0.05
    assert told.voltage == pytest.approx(7.8 - 0.2 * load)
    assert body.model.actuator_gainprm[0, 7] < 7.8 - 0.1 * load  # what limits the motor


def test_the_imu_tells_the_mounting_and_the_bias():
    twin = Twin(imu_mounting=(math.radians(6), 0.0, 0.0), gyro_bias=(0.0, 0.0, 0.02))
    _, senses = held(twin)
    told = senses.read()
    gravity = rotations.projected_gravity(told.orientation)
    assert gravity == pytest.approx([0.0, -0.1045285, -0.9945219], abs=1e-6)
    assert told.angular_velocity == pytest.approx([0.0, 0.0, 0.02], abs=1e-6)


def test_joint_velocities_are_told_one_control_period_late():
    body, senses = held(Twin(joint_velocity_lateness=1.0))
    true, told = [], []
    for _ in range(20):
        told.append(hold_at(body, senses, STAND + 0.3, 1).velocity)
        true.append(body.velocity.copy())
    assert np.abs(true[-1] - true[-1 - PERIOD_STEPS]).max() > 0.01
    assert np.array(told)[PERIOD_STEPS:] == pytest.approx(np.array(true)[:-PERIOD_STEPS], abs=1e-5)


def test_noise_stays_within_its_bounds_and_differs_from_step_to_step():
    twin = Twin(joint_position_noise=0.01, joint_velocity_noise=0.25, gravity_noise=0.01, gyro_noise=0.03)
    body, senses = held(twin)
    told = [senses.read() for _ in range(200)]  # the body does not move
    position = np.array([one.position for one in told]) - body.position
    assert 0.0095 < np.abs(position).max() <= 0.01001
    assert position.std() == pytest.approx(0.01 / math.sqrt(3), rel=0.05)
    rate = np.array([one.angular_velocity for one in told])
    assert 0.028 < np.abs(rate).max() <= 0.03001
    gravity = np.array([rotations.projected_gravity(one.orientation) for one in told])
    assert 0.008 < np.abs(gravity[:, :2]).max() < 0.0102
    assert np.linalg.norm([one.orientation for one in told], axis=1) == pytest.approx(1.0)


def test_a_nominal_twin_tells_the_truth():
    body, senses = held(Twin())
    told = hold_at(body, senses, STAND, 50)
    assert told.position == pytest.approx(body.position, abs=1e-6)
    assert told.velocity == pytest.approx(body.velocity, abs=1e-5)
    assert told.orientation == pytest.approx(body.orientation, abs=1e-6)


def test_twin_is_a_duck_on_a_serial_port():
    said = []
    twin = replace(Twin.draw(Randomization.full(), 2), trunk_mass_scale=1.05)
    run_virtual_duck(VirtualDuckOptions(seconds=0.1, twin=twin), said.append)
    assert said[0].startswith("the virtual duck is on /dev/pts/")


def test_the_command_takes_the_file_of_a_twin_and_names_what_is_wrong_with_it(tmp_path, capsys):
    path = tmp_path / "duck.toml"
    write_twin(path, seed=4, strength=0.5)
    assert load_twin(path) == Twin.draw(Randomization.full().scaled(0.5), 4)
    assert "duck 4 -> " in capsys.readouterr().out
    virtual_duck(seconds=0.02, twin=path)
    path.write_text("[twin]\nvoltage = 5\n")
    with pytest.raises(ConfigError, match=r"duck\.toml:2: voltage: voltage is 5"):
        virtual_duck(seconds=0.02, twin=path)
