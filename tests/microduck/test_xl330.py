"""The XL330 on a bench: one servo that swings a weight, against published figures and the law in numpy."""

import functools
import math

import mujoco
import numpy as np
import pytest
import torch

from microduck.physics import xl330
from microduck.physics.options import PhysicsOptions
from microduck.physics.servo_model import fit_motors, make_room_for_delays
from microduck.physics.single import SingleModel
from microduck.physics.xl330_bank import make_servos

ONLY = torch.tensor([0])
STEP_S = 0.005
GRAVITY = 9.81
MOTOR = "xl330"
# Model m6 of the XL330 in Rhoban/bam.
KT, R, ARMATURE, VISCOUS = (
    0.36601349688984386,
    2.8113923539223227,
    0.0018077432831600838,
    0.005359668274599504,
)
BASE, STRIBECK, STRIBECK_SPEED, ALPHA = (
    0.004771183165566,
    0.004676345799486616,
    2.890372094130307,
    8.683259907618984,
)
LOAD_MOTOR, LOAD_EXTERNAL = 0.2667860954283698, 8.515871897059342e-06
SLOW_MOTOR, SLOW_EXTERNAL = 1.0722918395099123e-05, 0.08077928978935671
SQUARED_MOTOR, SQUARED_EXTERNAL = 0.009972471242139415, 0.004902565732332559

TIMES = np.arange(200) * STEP_S
MOTIONS = {
    "step": np.full(200, 0.3),
    "sine": 0.4 * np.sin(2 * np.pi * 2 * TIMES),
    "slow sine": 0.1 * np.sin(2 * np.pi * TIMES),
    "steps": np.repeat(np.cumsum(np.random.default_rng(1).uniform(-0.12, 0.12, 50)), 4),
}


class Bench:
    """A servo that holds a weight on a horizontal arm, positive angles down, and feels its load."""

    def __init__(self, actuator=MOTOR, mass=0.1, arm=0.05, step=STEP_S, feel_every=1):
        spec = mujoco.MjSpec.from_string(f"""
            <mujoco><option timestep="{step}" integrator="implicitfast" iterations="10"/>
            <worldbody><body><joint name="shaft" axis="0 1 0"
                damping="0.053" frictionloss="0.0048" armature="0.0018"/>
            <inertial pos="{arm} 0 0" mass="{mass}" diaginertia="1e-6 1e-6 1e-6"/></body></worldbody>
            <actuator><position joint="shaft" kp="0.55" forcerange="-0.96 0.96"/></actuator></mujoco>""")
        make_room_for_delays(spec)
        if actuator == MOTOR:
            fit_motors(spec)
        self.model = spec.compile()
        self.data = mujoco.MjData(self.model)
        self.servos = make_servos(SingleModel(self.model, self.data), PhysicsOptions(actuator=actuator))
        self.feel_every = feel_every

    def set(self, **columns):
        for name, value in columns.items():
            getattr(self.servos, name)[:] = value
        self.servos.apply(ONLY)

    def torque(self, target, angle=0.0, speed=0.0):
        """Return the motor's torque in a certain state."""
        self.data.ctrl[0], self.data.qpos[0], self.data.qvel[0] = target, angle, speed
        mujoco.mj_forward(self.model, self.data)
        return float(self.data.actuator_force[0])

    def follow(self, targets, angle=0.0):
        """Return the angle after each target was in force for a step."""
        self.data.qpos[0], angles = angle, []
        for count, target in enumerate(targets, 1):
            self.data.ctrl[0] = target
            mujoco.mj_step(self.model, self.data)
            if count % self.feel_every == 0:
                self.servos.feel()
            angles.append(float(self.data.qpos[0]))
        return np.array(angles)


@functools.cache
def law(motion, volts=7.4, register=200):
    """Return what model m6 does on the bench, in steps so small that nothing is left to solve."""
    count, mass, arm = 40, 0.1, 0.05
    step, inertia = STEP_S / count, ARMATURE + mass * arm**2 + 1e-6
    angle = speed = 0.0
    angles = []
    for target in MOTIONS[motion].tolist():
        for _ in range(count):
            duty = max(-1.0, min(1.0, 0.0028773775 * register * (target - angle)))
            motor = KT / R * (volts * duty - KT * speed)
            load = mass * GRAVITY * arm * math.cos(angle)
            slow = math.exp(-((abs(speed) / STRIBECK_SPEED) ** ALPHA))
            driven = SQUARED_EXTERNAL * load**2 if abs(motor) > abs(load) else SQUARED_MOTOR * motor**2
            most = BASE + abs(load * LOAD_EXTERNAL - motor * LOAD_MOTOR)
            most += slow * (STRIBECK + abs(load * SLOW_EXTERNAL - motor * SLOW_MOTOR) + driven)
            free = speed + step / inertia * (motor + load - VISCOUS * speed)
            speed = math.copysign(max(abs(free) - step / inertia * most, 0.0), free)
            angle += step * speed
        angles.append(angle)
    return np.array(angles)


def rms(difference):
    return float(np.sqrt(np.mean(difference**2)))


# Published equivalents


@pytest.mark.parametrize(
    ("actuator", "volts", "stiffness", "stall"),
    [
        (MOTOR, 6.0, 0.450, 0.781),
        (MOTOR, 7.35, 0.551, 0.957),
        (MOTOR, 8.2, 0.614, 1.068),
        ("position", 7.4, 0.55, 0.96),
    ],
)
def test_stiffness_and_stall_torque_are_the_published_ones(actuator, volts, stiffness, stall):
    bench = Bench(actuator)
    bench.set(voltage=volts)
    assert bench.torque(0.1) == pytest.approx(0.1 * stiffness, rel=2e-3)
    assert bench.torque(-0.1) == pytest.approx(-0.1 * stiffness, rel=2e-3)
    assert bench.torque(3.0) == pytest.approx(stall, rel=1e-3)
    assert bench.torque(-3.0) == pytest.approx(-stall, rel=1e-3)


@pytest.mark.parametrize("volts", [6.0, 7.35, 8.2])
def test_full_duty_needs_1_738_radians_of_error_whatever_the_voltage(volts):
    bench = Bench()
    bench.set(voltage=volts)
    assert bench.torque(1.70) < 0.985 * bench.torque(3.0)
    assert bench.torque(1.74) == bench.torque(3.0)


@pytest.mark.parametrize("actuator", [MOTOR, "position"])
def test_damping_is_the_published_one(actuator):
    bench = Bench(actuator)
    drag = bench.torque(0.0, speed=1.0) + float(bench.data.qfrc_passive[0])
    assert drag == pytest.approx(-0.0530, rel=1e-3)
    if actuator == MOTOR:
        assert bench.data.actuator_force[0] == pytest.approx(-0.04765, rel=1e-3)


@pytest.mark.parametrize(("volts", "speed"), [(6.0, 16.4), (7.35, 20.1), (8.2, 22.4)])
def test_without_friction_the_motor_reaches_the_published_no_load_speed(volts, speed):
    bench = Bench(mass=1e-6)
    bench.model.dof_damping[:] = 0.0
    bench.set(voltage=volts, friction_scale=0.0)
    for _ in range(200):
        bench.follow([bench.data.qpos[0] + 3.0], angle=bench.data.qpos[0])
    assert bench.data.qvel[0] == pytest.approx(speed, rel=3e-3)


@pytest.mark.parametrize("volts", [6.0, 7.35, 8.2])
def test_torque_is_the_voltage_law_up_to_rounding(volts):
    bench = Bench()
    bench.set(voltage=volts)
    for error in np.linspace(-2.5, 2.5, 11):
        for speed in (-9.0, -1.0, 0.0, 2.0, 9.0):
            duty = np.clip(0.0028773775 * 200 * error, -1, 1)
            expected = KT / R * (volts * duty - KT * speed)
            limit = KT / R * 8.4
            assert bench.torque(error, 0.0, speed) == pytest.approx(
                np.clip(expected, -limit, limit), abs=1e-12
            )


# Friction


@pytest.mark.parametrize(
    ("motor", "external", "speed", "level"),
    [
        (0.0, 0.0, 0.0, 0.009448),
        (0.0, 0.0, 10.0, 0.004771),
        (0.4, 0.0, 10.0, 0.111486),  # 0.004771 + 0.4 x 0.266786
        (-0.4, 0.0, 0.0, 0.116166),  # and 0.004676 near standstill, and 0.4 x 0.0000107
        (0.0, 0.5, 0.0, 0.049842),  # 0.009448 + 0.5 x 0.080779 + 0.5 x 0.0000085
        (0.4, -0.3, 0.0, 0.140844),  # 0.116165 + 0.3 x 0.080779 + 0.4 x 0.0000107 + 0.0049026 x 0.09
    ],
)
def test_friction_grows_with_motor_torque_and_near_standstill_with_load(motor, external, speed, level):
    for kind in (np.array, torch.tensor):
        found = xl330.friction_level(kind([motor]), kind([external]), kind([speed]))
        assert float(found[0]) == pytest.approx(level, abs=3e-6)


@pytest.mark.parametrize(("load", "holds"), [(0.0100, True), (0.0106, False)])
def test_unpowered_gearbox_holds_up_to_a_hundredth_newton_metre(load, holds):
    """0.00945 N m, and 8 % of the load itself: 0.00945 / (1 - 0.0808) = 0.01028."""
    bench = Bench(mass=load / GRAVITY / 0.05)
    bench.set(p_gain=0.0)
    bench.model.actuator_gainprm[0, 6] = 0.0  # no current
    bench.follow(np.zeros(100))
    sank = bench.data.qpos[0]
    assert (sank < 2e-3) if holds else (sank > 4e-3)


def test_a_held_weight_creeps_by_less_than_4_milliradians_in_a_second():
    bench = Bench()
    bench.follow(np.zeros(100))
    before = bench.data.qpos[0]
    bench.follow(np.zeros(200), angle=before)
    assert abs(bench.data.qpos[0] - before) < 4e-3


def test_friction_torque_is_the_one_mujoco_solved_for():
    bench = Bench(mass=0.3)
    for count in range(60):
        bench.data.ctrl[0] = 0.4 * math.sin(count / 5)
        level = bench.model.dof_frictionloss.copy()
        mujoco.mj_step(bench.model, bench.data)
        found = xl330.friction_torque(
            bench.data.qacc, bench.data.actuator_velocity, level, bench.model.dof_invweight0
        )
        assert found == pytest.approx(bench.data.efc_force[:1], abs=1e-9)
        bench.servos.feel()


# Trajectories


@pytest.mark.parametrize("motion", MOTIONS)
def test_small_steps_give_the_law_of_m6(motion):
    fine = Bench(step=STEP_S / 10).follow(np.repeat(MOTIONS[motion], 10))[9::10]
    assert rms(fine - law(motion)) < 2e-3


@pytest.mark.parametrize("motion", MOTIONS)
def test_friction_that_follows_once_in_a_control_period_stays_close_to_the_law(motion):
    exact = law(motion)
    every_step = Bench().follow(MOTIONS[motion])
    every_period = Bench(feel_every=4).follow(MOTIONS[motion])
    never = Bench(feel_every=10**9).follow(MOTIONS[motion])
    assert rms(every_step - exact) < 3.5e-3
    assert rms(every_period - exact) < 6e-3
    assert rms(never - exact) > 3 * rms(every_period - exact)


@pytest.mark.parametrize(("volts", "register"), [(6.0, 200), (8.2, 200), (7.4, 400), (7.4, 50)])
def test_voltage_and_gain_act_as_in_the_law(volts, register):
    bench = Bench(step=STEP_S / 10)
    bench.set(voltage=volts, p_gain=float(register))
    fine = bench.follow(np.repeat(MOTIONS["step"], 10))[9::10]
    assert rms(fine - law("step", volts, register)) < 1.5e-3


def test_without_load_friction_both_servos_move_alike():
    """The position servo is the motor near 7.35 V, so a small step looks the same."""
    motor, plain = Bench(), Bench("position")
    motor.set(voltage=7.35, friction_scale=0.0)
    plain.set(friction_scale=0.0)
    both = [bench.follow(np.full(100, 0.2)) for bench in (motor, plain)]
    assert both[0][-1] > 0.2
    assert np.abs(both[0] - both[1]).max() < 1e-3
