"""What the drawn values do to the simulated ducks, held against physics."""

import math
from dataclasses import replace

import mujoco
import pytest
import torch
from tensordict import TensorDict

from hardware.errors import ConfigError
from hardware.joints import JOINT_NAMES, STAND
from microduck import MicroDuckEnv, PhysicsOptions
from microduck.randomization import Randomization

OFF = Randomization.off()
MASS, TRUNK_MASS = 0.737243, 0.199224  # kg, of the upstream model
XL330 = PhysicsOptions(actuator="xl330")
HEAD_YAW = JOINT_NAMES.index("head_yaw")


def make(num_envs=1, **settings):
    return MicroDuckEnv(num_envs=num_envs, seed=0, reset_noise_scale=0.0, action_scale=1.0, **settings)


def fixed(**values):
    """Ranges that hold one value."""
    return replace(OFF, **{name: (value, value) for name, value in values.items()})


def step(env, action=None, count=1):
    action = torch.zeros(env.num_envs, 14) if action is None else action
    for _ in range(count):
        after = env.step(TensorDict({"action": action}, batch_size=env.batch_size))["next"]
    return after


def start_in_stand(env):
    qpos = env.physics.stand_qpos.repeat(env.num_envs, 1)
    given = {"qpos": qpos, "qvel": torch.zeros(env.num_envs, 20, dtype=torch.float64)}
    return env.reset(TensorDict(given, batch_size=env.batch_size), set_state=True)


def model_of(env, duck):
    model = env.physics.batch.get_model(duck)
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_forward(model, data)
    return model, data


def test_a_duck_slides_down_a_slope_that_a_rougher_sole_holds():
    """Across a slope of 20 degrees, tan 20 = 0.36: 0.3 slides at g (sin - 0.3 cos) = 0.59 m/s2, 1.0 stays."""
    moved = {}
    for friction in (0.3, 1.0):
        env = make(randomization=fixed(sole_friction=friction, p_gain_scale=10.0))
        start_in_stand(env)
        slope = math.radians(20)
        env.physics.expand("opt.gravity")[:] = 9.81 * torch.tensor([0.0, math.sin(slope), -math.cos(slope)])
        env.physics.refresh(torch.arange(1))
        before = env.physics.foot_positions().clone()
        step(env, count=20)
        moved[friction] = (env.physics.foot_positions() - before)[0, :, 1]
    assert moved[0.3].tolist() == pytest.approx([0.047, 0.047], abs=0.01)  # 0.59 / 2 * 0.4^2
    assert moved[1.0].abs().max() < 0.008  # it rocks on its edges


def test_masses_add_up_to_the_models_with_a_scaled_trunk():
    env = make(3, randomization=Randomization(trunk_mass_scale=(1.05, 1.05)).without("voltage", "sag"))
    env.reset()
    for duck in range(3):
        model, data = model_of(env, duck)
        assert model.body_mass.sum() == pytest.approx(MASS + 0.05 * TRUNK_MASS, rel=1e-5)
        assert model.body_subtreemass[1] == pytest.approx(MASS + 0.05 * TRUNK_MASS, rel=1e-5)
    plain = env.mj_model.body_inertia[1]
    assert model.body_inertia[1] == pytest.approx(1.05 * plain, rel=1e-12)
    assert data.qfrc_bias[2] == pytest.approx(9.81 * (MASS + 0.05 * TRUNK_MASS), rel=1e-4)  # the weight


def test_shifted_parts_shift_the_whole_by_their_share_of_the_mass():
    env = make(2, randomization=OFF)
    env.reset()
    _, before = model_of(env, 0)
    shifts = replace(OFF, trunk_com=((0.01, 0.0, -0.01),) * 2, head_com=((*[0.0] * 9, 0.0, 0.005, 0.0),) * 2)
    env = make(2, randomization=shifts)
    env.reset()
    _, after = model_of(env, 1)
    moved = after.subtree_com[1] - before.subtree_com[1]
    # The head turns with the neck's two pitches of 20 degrees, which leave its y axis alone.
    expected = [0.01 * TRUNK_MASS / MASS, 0.005 * 0.188766 / MASS, -0.01 * TRUNK_MASS / MASS]
    assert moved == pytest.approx(expected, abs=1e-7)


def test_armature_is_scaled_on_the_joints_alone():
    env = make(randomization=fixed(armature_scale=1.1))
    env.reset()
    model, _ = model_of(env, 0)
    assert model.dof_armature[6:] == pytest.approx(1.1 * 0.0018)
    assert not model.dof_armature[:6].any()


def test_a_positive_encoder_offset_turns_the_joint_the_other_way_while_the_measured_angle_reads_the_target():
    """Measured = true + offset, and the servo brings the measured angle to the target."""
    offset = [0.0] * 14
    offset[HEAD_YAW] = 0.1
    ranges = replace(OFF, encoder_offset=(tuple(offset),) * 2, p_gain_scale=(5.0, 5.0))
    env = make(randomization=ranges, layout="sensor")
    start_in_stand(env)
    seen = step(env, count=50)
    at = 3 + 3 + 3 + 1  # after gravity, turn rate, command and heading error
    measured = float(seen["observation"][0, at + HEAD_YAW])  # relative to STAND
    true = float(env.physics.qpos[0, 7 + HEAD_YAW])
    assert STAND[HEAD_YAW] == 0.0
    assert true == pytest.approx(-0.1, abs=0.005)
    assert measured == pytest.approx(0.0, abs=0.005)


@pytest.mark.parametrize(("delay", "steps_untouched"), [(0.0, 0), (0.015, 0), (0.02, 1), (0.04, 2)])
def test_a_command_reaches_the_joints_after_its_delay(delay, steps_untouched):
    env = make(2, randomization=fixed(delay=delay))
    start_in_stand(env)
    action = torch.zeros(2, 14)
    action[1] = 0.5
    same = []
    for _ in range(3):
        step(env, action)
        same.append(torch.equal(env.physics.qpos[0], env.physics.qpos[1]))
    assert same == [True] * steps_untouched + [False] * (3 - steps_untouched)


def test_a_delay_of_15_ms_leaves_the_last_of_four_substeps_to_the_command():
    """Speed gained in one control period by a constant torque: one substep against four."""
    gained = []
    for delay in (0.0, 0.015):
        env = make(randomization=fixed(delay=delay, p_gain_scale=0.1))
        start_in_stand(env)
        action = torch.zeros(1, 14)
        action[:, HEAD_YAW] = 1.0
        step(env, action)
        gained.append(float(env.physics.qvel[0, 6 + HEAD_YAW]))
    assert gained[1] / gained[0] == pytest.approx(0.25, abs=0.06)  # damping and friction take some of four


def test_servos_get_voltage_sag_gain_and_friction():
    env = make(2, randomization=fixed(voltage=6.5, sag=0.15, p_gain_scale=1.05, servo_friction_scale=0.9),
               physics_options=XL330)  # fmt: skip
    env.reset()
    servos = env.physics.servos
    assert servos.voltage.tolist() == [6.5, 6.5] and servos.sag.tolist() == [0.15, 0.15]
    assert torch.equal(servos.p_gain, torch.full((2, 14), 210.0, dtype=torch.float64))
    assert servos.friction_scale.tolist() == [0.9, 0.9]


def test_a_fuller_battery_moves_a_joint_further():
    turned = []
    for voltage in (6.0, 8.4):
        env = make(randomization=fixed(voltage=voltage), physics_options=XL330)
        start_in_stand(env)
        action = torch.zeros(1, 14)
        action[:, HEAD_YAW] = 1.0
        step(env, action, 2)
        turned.append(float(env.physics.qpos[0, 7 + HEAD_YAW]))
    assert turned[1] > 1.1 * turned[0] > 0.01


def test_what_a_position_servo_has_not_is_refused():
    with pytest.raises(
        ConfigError,
        match=r"varies .'voltage', 'sag'., .*\(actuator='xl330'\), .* \.without\('voltage', 'sag'\)",
    ):
        MicroDuckEnv(randomization=Randomization.full())
    with pytest.raises(ConfigError, match="randomization is 'full'"):
        MicroDuckEnv(randomization="full")


# Drawn again and again


def fields(env):
    names = ("geom_friction", "body_mass", "body_inertia", "body_ipos", "dof_armature", "dof_frictionloss")
    return {name: env.physics.expand(name).clone() for name in names}


def partly_reset(env, ducks):
    mask = torch.zeros(env.num_envs, 1, dtype=torch.bool)
    mask[ducks] = True
    return env.reset(TensorDict({"_reset": mask}, batch_size=env.batch_size))


def test_a_hundred_resets_do_not_pile_up():
    ranges = fixed(trunk_mass_scale=2.0, armature_scale=0.5, servo_friction_scale=0.5)
    env = make(4, randomization=replace(ranges, trunk_com=(-0.01, 0.01)))
    plain = env.mj_model
    for _ in range(100):
        env.reset()
    written = fields(env)
    assert float(written["body_mass"][0, 1]) / plain.body_mass[1] == 2.0
    assert float(written["dof_armature"][0, 6]) / plain.dof_armature[6] == 0.5
    assert float(written["dof_frictionloss"][0, 6]) / plain.dof_frictionloss[6] == 0.5
    shift = written["body_ipos"][:, 1] - torch.tensor(plain.body_ipos[1])
    assert 0.003 < shift.abs().max() <= 0.01
    assert torch.allclose(shift, env.randomized["trunk_com"], atol=1e-15)


def test_a_reset_draws_other_ducks_and_leaves_the_rest_alone():
    env = make(5, randomization=Randomization.full(), physics_options=XL330)
    env.reset()
    before, properties = fields(env), env.randomized
    partly_reset(env, [1, 3])
    rows = torch.tensor([0, 2, 4])
    for name, now in fields(env).items():
        assert torch.equal(now[rows], before[name][rows]), name
    after = env.randomized
    assert torch.equal(after["encoder_offset"][rows], properties["encoder_offset"][rows])
    changed = after["sole_friction"] != properties["sole_friction"]
    assert changed.tolist() == [False, True, False, True, False]
    assert torch.equal(env.physics.servos.voltage, after["voltage"])
    assert torch.equal(env.physics.expand("geom_friction")[:, 0, 0], after["sole_friction"])


def test_a_new_strength_counts_at_each_ducks_next_reset():
    env = make(64, randomization=replace(OFF, sole_friction=(0.5, 2.0), push_speed=0.4))
    env.reset()
    env.randomization_strength = 0.1
    before = env.randomized["sole_friction"]
    partly_reset(env, list(range(32)))
    after = env.randomized["sole_friction"]
    assert torch.equal(after[32:], before[32:])
    assert after[:32].min() >= 0.95 and after[:32].max() <= 1.1 and before.max() > 1.5
    assert env.ducks.pushes.speed.tolist() == pytest.approx([0.04] * 32 + [0.4] * 32)
    env.randomization_strength = 0.0
    env.reset()
    assert env.randomized["sole_friction"].tolist() == [1.0] * 64
    assert env.randomization_strength == 0.0


def test_a_wrong_strength_is_refused_and_so_is_one_without_ranges():
    env = make(randomization=OFF)
    with pytest.raises(ConfigError, match="strength is 2"):
        env.randomization_strength = 2
    assert env.randomization_strength == 1.0
    plain = make()
    assert plain.randomization_strength == 0.0
    with pytest.raises(ConfigError, match="randomization is off; make the environment with"):
        plain.randomization_strength = 0.5


def test_a_scene_whose_friction_lies_in_pairs_is_refused(plain_scene):
    text = plain_scene.read_text()
    pair = '<contact><pair geom1="floor" geom2="left_foot_collision"/></contact>'
    plain_scene.write_text(text.replace("</mujoco>", f"{pair}</mujoco>"))
    with pytest.raises(ConfigError, match=r"pairs of geoms .* \.without\('sole_friction'\)"):
        MicroDuckEnv(plain_scene, randomization=fixed(sole_friction=0.5))
    MicroDuckEnv(plain_scene, randomization=fixed(trunk_mass_scale=1.05)).reset()
