"""What the virtual duck's servos and its IMU report of the physics."""

import mujoco
import numpy as np
import pytest

from firmware_bridge.emulator.duck import EmulatedDuck
from hardware.joints import STAND
from microduck.virtual_duck import VirtualDuck


def test_bus_hears_position_velocity_current_voltage_and_temperature(duck, desk, body, stand_up):
    stand_up(duck, desk)
    assert desk.state["position"] == pytest.approx(body.position)
    assert desk.state["velocity"] == pytest.approx(body.velocity)
    assert desk.state["current"] == pytest.approx(body.data.actuator_force / 0.366013, rel=1e-5)
    assert np.abs(desk.state["current"]).max() > 0.01
    assert desk.state["voltage"] == 7.4
    assert 20 < desk.state["temperature"] < 50


def test_imu_reports_turn_rate_and_orientation_of_its_site(duck, desk, body, steps, stand_up):
    stand_up(duck, desk)
    desk.first_step()
    steps(duck, 0.5)
    mujoco.mj_forward(body.model, body.data)
    rate, quaternion = desk.imu
    assert np.linalg.norm(rate) > 0.1
    assert rate == pytest.approx(body.data.sensor("angular-velocity").data, abs=1e-9)
    assert quaternion == pytest.approx(body.data.sensor("orientation").data, abs=1e-9)


def test_a_real_bus_carries_goals_in_and_angles_out(said, body, steps):
    bus = EmulatedDuck(follow=False)
    with bus:
        duck = VirtualDuck(bus, body, said.append)
        steps(duck, 0.5)
        assert bus.positions == pytest.approx(body.position, abs=0.001)
        assert np.abs(bus.positions - STAND).max() > 0.2  # limp in the air, it hangs
