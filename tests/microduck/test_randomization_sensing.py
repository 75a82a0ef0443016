"""What the policy sees in place of the truth, and that nobody else sees it."""

import math
from dataclasses import replace

import pytest
import torch
from tensordict import TensorDict

from hardware import contract
from microduck import MicroDuckEnv
from microduck.randomization import Randomization
from microduck.randomization.pushes import Pushes

OFF = Randomization.off()
AT = contract.offsets("state")
GRAVITY, GYRO = slice(0, 3), slice(3, 6)
ERROR = slice(AT["joint_error"], AT["joint_error"] + 14)
VELOCITY = slice(AT["joint_velocity"], AT["joint_velocity"] + 14)


def fixed(**values):
    return replace(OFF, **{name: (value, value) for name, value in values.items()})


def make(num_envs=1, **settings):
    return MicroDuckEnv(num_envs=num_envs, seed=0, privileged=True, action_scale=1.0, **settings)


def still(env, height=0.12):
    """Put all ducks upright and at rest, and return what is seen."""
    qpos = env.physics.stand_qpos.repeat(env.num_envs, 1)
    qpos[:, 2] = height
    given = {"qpos": qpos, "qvel": torch.zeros(env.num_envs, 20, dtype=torch.float64)}
    return env.reset(TensorDict(given, batch_size=env.batch_size), set_state=True)


def step(env, action=None):
    action = torch.zeros(env.num_envs, 14) if action is None else action
    return env.step(TensorDict({"action": action}, batch_size=env.batch_size))["next"]


def walk(env, steps):
    """Return what the policy saw and what was true at the reset and after each random step."""
    generator = torch.Generator().manual_seed(1)
    told = [env.reset()]
    told += [step(env, torch.rand(env.num_envs, 14, generator=generator) - 0.5) for _ in range(steps)]
    seen = torch.stack([one["observation"] for one in told])
    return seen, torch.stack([one["privileged"][:, :56] for one in told])


def test_a_mounting_of_6_degrees_tips_gravity_by_6_degrees():
    """An IMU turned about its x axis, left side up, sees gravity come from the left."""
    env = make(randomization=fixed(imu_mounting=(math.radians(6), 0.0, 0.0)))
    seen = still(env)["observation"][0, GRAVITY]
    assert seen.tolist() == pytest.approx([0.0, -0.1045285, -0.9945219], abs=1e-6)  # sin, cos of 6 degrees


def test_a_mounting_turns_the_gyro_along_and_leaves_the_joints_alone():
    env = make(randomization=fixed(imu_mounting=(0.0, 0.0, math.pi / 2)))
    seen, true = walk(env, 3)
    assert torch.allclose(seen[..., 3], true[..., 4], atol=1e-5)  # its x axis lies along the trunk's y
    assert torch.allclose(seen[..., 4], -true[..., 3], atol=1e-5)
    assert torch.equal(seen[..., VELOCITY], true[..., VELOCITY])


def test_joint_velocities_are_exactly_one_control_period_late():
    seen, true = walk(make(3, randomization=fixed(joint_velocity_lateness=1.0)), 8)
    assert torch.equal(seen[1:, :, VELOCITY], true[:-1, :, VELOCITY])
    assert torch.equal(seen[0, :, VELOCITY], true[0, :, VELOCITY])
    assert not torch.equal(seen[1:, :, VELOCITY], true[1:, :, VELOCITY])
    assert torch.equal(seen[..., ERROR], true[..., ERROR])
    assert torch.equal(seen[..., GYRO], true[..., GYRO])


@pytest.mark.parametrize("lateness", [0.25, 1.0])
def test_the_imu_is_late_by_its_part_of_a_period(lateness):
    seen, true = walk(make(2, randomization=fixed(imu_lateness=lateness)), 8)
    expected = (1 - lateness) * true[1:, :, GYRO] + lateness * true[:-1, :, GYRO]
    assert torch.allclose(seen[1:, :, GYRO], expected, atol=1e-5)
    assert torch.equal(seen[..., VELOCITY], true[..., VELOCITY])
    assert torch.allclose(seen[..., GRAVITY].norm(dim=-1), torch.ones(9, 2))


def test_lateness_starts_anew_with_each_episode():
    env = make(randomization=fixed(joint_velocity_lateness=1.0, imu_lateness=1.0))
    walk(env, 5)
    told = env.reset()
    assert torch.equal(told["observation"][:, VELOCITY], told["privileged"][:, VELOCITY])


@pytest.mark.parametrize(
    ("name", "place", "most"),
    [
        ("gyro_noise", GYRO, 0.03),
        ("joint_position_noise", ERROR, 0.001),
        ("joint_velocity_noise", VELOCITY, 0.25),
        ("gravity_noise", slice(0, 2), 0.01),
    ],
)
def test_noise_is_uniform_and_new_in_every_step(name, place, most):
    env = make(256, randomization=fixed(**{name: most}))
    first = still(env)
    noise = (first["observation"] - first["privileged"][:, :56])[:, place]
    told = step(env)
    later = (told["observation"] - told["privileged"][:, :56])[:, place]
    assert 0.95 * most < noise.abs().max() <= 1.001 * most
    assert float(noise.std()) == pytest.approx(most / math.sqrt(3), rel=0.06)
    assert float(noise.mean()) == pytest.approx(0, abs=0.12 * most)
    assert not torch.allclose(noise, later, atol=0.1 * most)
    rest = torch.ones(56, dtype=torch.bool)
    rest[place] = rest[GRAVITY] = False
    assert torch.equal(told["observation"][:, rest], told["privileged"][:, :56][:, rest])


def test_the_heading_error_comes_from_the_biased_gyro():
    """A gyro that tells 0.2 rad/s too much sums up to 0.1 rad more in 25 periods of 20 ms."""
    ends = []
    for bias in (0.0, 0.2):
        env = make(randomization=fixed(gyro_bias=(0.0, 0.0, bias)), layout="sensor")
        still(env)
        for _ in range(25):
            told = step(env)
        ends.append(float(told["observation"][0, contract.offsets("sensor")["heading_error"]]))
    assert ends[1] - ends[0] == pytest.approx(0.1, abs=0.005)  # less by the cosine of its lean


def test_rewards_and_diagnostics_see_the_truth():
    disturbed = Randomization(delay=(0.0, 0.0), p_gain_scale=(1.0, 1.0)).without(
        "voltage", "sag", "sole_friction", "trunk_mass_scale", "trunk_com", "head_com", "armature_scale",
        "servo_friction_scale", "encoder_offset", "push_speed",
    )  # fmt: skip
    told = []
    for ranges in (None, disturbed):
        env = make(4, randomization=ranges, diagnostics=True)
        still(env)
        told.append([step(env, 0.3 * torch.ones(4, 14)) for _ in range(10)][-1])
    assert torch.equal(told[0]["reward"], told[1]["reward"])
    for key in ("diagnostic_yaw_rate", "diagnostic_pitch", "diagnostic_heading"):
        assert torch.equal(told[0][key], told[1][key])
    assert torch.equal(told[0]["privileged"][:, :63], told[1]["privileged"][:, :63])
    assert not torch.allclose(told[0]["observation"], told[1]["observation"], atol=0.01)


# Pushes


def test_a_push_changes_the_velocity_by_its_value_at_its_step_and_at_no_other():
    """In free fall nothing else acts, and a duck that is pushed is only faster than one that is not."""
    pushed = make(3, randomization=replace(OFF, push_speed=0.3, push_interval=(0.06, 0.06)), diagnostics=True)
    free = make(3)
    still(pushed, height=1.0)
    still(free, height=1.0)
    sum_of_pushes = torch.zeros(3, 2)
    for count in range(1, 7):
        told = step(pushed)
        step(free)
        push = told["diagnostic_push"]
        assert bool(push.any()) is (count % 3 == 0)  # every 60 ms
        sum_of_pushes += push
        faster = (pushed.physics.qvel - free.physics.qvel).float()
        assert torch.allclose(faster[:, :2], sum_of_pushes, atol=1e-6)
        assert torch.allclose(faster[:, 2:], torch.zeros(3, 18), atol=1e-6)


def test_pushes_come_every_3_to_6_seconds_within_their_speed_and_to_all_sides():
    pushes = Pushes(2000, (3.0, 6.0), torch.Generator().manual_seed(0))
    pushes.begin(torch.arange(2000), torch.full((2000,), 0.3))
    velocity = torch.zeros(2000, 6, dtype=torch.float64)
    times, kicks = [], []
    for count in range(1, 301):
        before = velocity.clone()
        pushes.advance(velocity)
        who = pushes.last.any(-1)
        assert torch.allclose((velocity - before)[:, :2].float(), pushes.last)
        times += [0.02 * count] * int(who.sum())
        kicks.append(pushes.last[who])
    kicks = torch.cat(kicks)
    assert not velocity[:, 2:].any()
    assert min(times) >= 3.0 and len(times) == 2000  # the next would come at 6 s or later
    assert sum(times) / 2000 == pytest.approx(4.5, abs=0.06)
    assert 0.29 < kicks.abs().max() <= 0.3 and kicks.mean(0).abs().max() < 0.012


def test_a_reset_starts_the_wait_for_the_next_push_anew():
    pushes = Pushes(2, (0.1, 0.1), torch.Generator().manual_seed(0))
    velocity = torch.zeros(2, 6)
    pushes.begin(torch.arange(2), torch.full((2,), 0.3))
    for _ in range(4):
        pushes.advance(velocity)
    pushes.begin(torch.tensor([1]), torch.tensor([0.3]))
    pushes.advance(velocity)
    assert velocity[0].any() and not velocity[1].any()
