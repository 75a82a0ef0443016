import math

import numpy as np
import pytest
import torch
from tensordict import TensorDict
from torchrl.envs import RewardSum, StepCounter, TransformedEnv
from torchrl.envs.utils import check_env_specs

from hardware.errors import CommandError, ConfigError, FeatureError, TaskError
from hardware.joints import STAND
from microduck.env import MicroDuckEnv
from microduck.physics.options import PhysicsOptions


def two_tasks():
    return [MicroDuckEnv.speed_range_task(0.1, 0.3), MicroDuckEnv.standing_task()]


def make(num_envs=4, **arguments):
    return MicroDuckEnv(tasks=two_tasks(), num_envs=num_envs, seed=0, **arguments)


def scripted(env, steps, seed=0):
    """Return observations, rewards and dones of a run with fixed random actions."""
    generator = torch.Generator().manual_seed(seed)
    state, seen = env.reset(), []
    for _ in range(steps):
        state["action"] = 2 * torch.rand(env.action_spec.shape, generator=generator) - 1
        row, state = env.step_and_maybe_reset(state)
        seen.append(torch.cat([row["next", key].float() for key in ("observation", "reward", "done")], -1))
    return torch.stack(seen)


@pytest.mark.parametrize(("layout", "width"), [("state", 56), ("sensor", 55)])
def test_specs_hold_for_both_layouts(layout, width):
    env = make(layout=layout)
    check_env_specs(env)
    assert env.batch_size == (4,)
    assert env.reset()["observation"].shape == (4, width)


def test_state_layout_at_reset_shows_the_command_the_pose_and_a_clock_at_its_start():
    env = MicroDuckEnv(tasks=[MicroDuckEnv.tracking_task(0.2, joint_reset_noise_scale=0.0)], seed=0)
    seen = env.reset()["observation"][0]
    assert seen[0:3].tolist() == pytest.approx([0, 0, -1], abs=1e-6)
    assert seen[9:11].tolist() == pytest.approx([0.2, 0.0])
    assert seen[11:25].abs().max() < 1e-6
    # sin and cos of -1.5237 rad, worked out by hand; no ramp yet; no action yet
    assert seen[39:42].tolist() == pytest.approx([-0.9988910, 0.0470789, 0.0], abs=1e-6)
    assert seen[42:56].tolist() == [0] * 14


def test_clock_and_previous_action_after_ten_steps():
    env = MicroDuckEnv(tasks=[MicroDuckEnv.speed_range_task(0.2, 0.2)], seed=0)
    state = env.reset()
    for _ in range(10):
        state["action"] = torch.full((1, 14), 2.0)
        state = env.step(state)["next"]
    # 1 Hz + 5 Hz s/m * 0.2 m/s = 2 Hz for 0.2 s: -1.5237 + 2 pi * 0.4 = 0.9895741 rad, half of the ramp
    assert state["observation"][0, 39:42].tolist() == pytest.approx([0.8357951, 0.5490413, 0.5], abs=1e-5)
    assert state["observation"][0, 42:56].tolist() == [2.0] * 14  # raw, not clipped


def test_actions_move_joint_targets_by_the_scale_and_stop_at_the_range():
    env = MicroDuckEnv(num_envs=1, action_scale=1.0, seed=0)
    state = env.reset()
    state["action"] = torch.full((1, 14), 5.0)
    env.step(state)
    targets = env.physics.batch.ctrl[0]
    assert targets[2] == pytest.approx(STAND[2] + 1.0)  # hip pitch: clipped to an action of 1
    assert targets[1] == pytest.approx(math.radians(22))  # hip roll: end of its range


def test_controls_are_the_pose_at_reset():
    env = make()
    env.reset()
    assert env.physics.batch.ctrl == pytest.approx(np.tile(STAND, (4, 1)))


def test_rows_draw_different_numbers_and_equal_seeds_draw_equal_ones():
    one, two = make(8), make(8)
    first = one.reset()["observation"]
    assert torch.equal(first, two.reset()["observation"])
    assert len({tuple(row.tolist()) for row in first[:, 11:25]}) == 8
    second = one.reset()["observation"]
    assert not torch.equal(first, second)
    one.set_seed(0)
    assert torch.equal(first, one.reset()["observation"])


def test_results_do_not_depend_on_the_thread_count():
    runs = [scripted(make(64, physics_options=PhysicsOptions(threads=threads)), 100) for threads in (1, 2, 4)]
    assert torch.equal(runs[0], runs[1])
    assert torch.equal(runs[0], runs[2])


def test_a_task_and_command_given_at_reset_last_through_wrappers():
    env = TransformedEnv(make(2), RewardSum())
    env.append_transform(StepCounter())
    given = {"task_id": torch.tensor([[0], [1]]), "command": torch.tensor([[0.25, 0.0], [0.0, 0.0]])}
    rollout = env.rollout(20, tensordict=env.reset(TensorDict(given, batch_size=[2])), auto_reset=False)
    assert rollout["next", "task_id"][0].unique().tolist() == [0]
    assert rollout["next", "task_id"][1].unique().tolist() == [1]
    assert rollout["next", "command"][0, :, 0].unique().tolist() == [0.25]
    summed = rollout["next", "reward"].sum(1)
    assert torch.allclose(rollout["next", "episode_reward"][:, -1], summed, atol=1e-5)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"task_id": torch.tensor([[2], [0]])}, TaskError, "task_id 2 does not exist; choose 0 to 1"),
        ({"task_id": torch.tensor([[0.0], [1.0]])}, TaskError, "whole numbers, one per environment"),
        ({"task_id": torch.tensor([[0, 1], [0, 1]])}, TaskError, r"2 whole numbers.* of shape \(2, 2\)"),
        (
            {"task_id": torch.tensor([[0], [0]]), "command": torch.tensor([[0.2, 0.0], [0.4, 0.0]])},
            CommandError,
            r"vx = 0.4 is outside \[0.1, 0.3\]",
        ),
        (
            {"task_id": torch.tensor([[0], [0]]), "command": torch.full((2, 2), float("nan"))},
            CommandError,
            "vx = nan",
        ),
        ({"command": torch.zeros(2, 3)}, TaskError, r"command must have shape \(2, 2\), not \(2, 3\)"),
    ],
)
def test_bad_reset_requests_are_refused(given, error, message):
    with pytest.raises(error, match=message):
        make(2).reset(TensorDict(given, batch_size=[2]))


def test_partial_reset_leaves_the_other_rows_alone():
    env = make(4)
    scripted(env, 5)
    before = env.physics.qpos.clone()
    mask = torch.tensor([[False], [True], [False], [True]])
    env.reset(TensorDict({"_reset": mask}, batch_size=[4]))
    kept = ~mask.squeeze(-1)
    assert torch.equal(env.physics.qpos[kept], before[kept])
    assert (env.physics.qpos[~kept] != before[~kept]).any(-1).all()
    assert env.episodes.steps.tolist() == [5, 0, 5, 0]


def test_standing_open_loop_tips_over_and_terminates():
    env = MicroDuckEnv(tasks=[MicroDuckEnv.standing_task()], seed=0)
    rollout = env.rollout(200, policy=lambda td: td.set("action", torch.zeros(1, 14)))
    # The duck held at STAND passes 69.5 degrees about 1 s after it starts to tip.
    assert 30 < rollout.shape[1] < 80
    last = rollout[0, -1]["next"]
    assert bool(last["terminated"]) and bool(last["fallen"]) and not bool(last["truncated"])
    assert float(last["reward"]) < -3.5  # the termination costs 4


def test_the_time_limit_truncates_and_does_not_terminate():
    env = make(2, max_episode_steps=3)
    rollout = env.rollout(5, policy=lambda td: td.set("action", torch.zeros(2, 14)))
    assert rollout.shape[1] == 3
    assert rollout["next", "truncated"][:, -1].all()
    assert not rollout["next", "terminated"].any()


def test_a_diverged_simulation_is_terminated_counted_told_of_and_leaves_no_nan(caplog):
    env = make(3)
    state = env.reset()
    env.physics.qvel[1, 0] = float("nan")
    env.physics.qvel[2, 4] = 1e9
    state["action"] = torch.zeros(3, 14)
    after = env.step(state)["next"]
    assert after["terminated"].squeeze(-1).tolist() == [False, True, True]
    assert after["fallen"].squeeze(-1).tolist() == [False, True, True]
    assert torch.isfinite(after["observation"]).all() and torch.isfinite(after["reward"]).all()
    assert env.divergences == 2
    assert "2 simulation(s) diverged and are terminated: [1, 2]" in caplog.text
    env.physics.qpos[0, 4] = float("inf")
    assert env.step(after.set("action", torch.zeros(3, 14)))["next", "terminated"][0]
    assert env.divergences == 3


def test_feet_are_told_left_and_right():
    env = make(1)
    env.reset()
    env.physics.qpos[0, 3:7] = torch.tensor([0.9962, 0.0872, 0.0, 0.0])  # rolled by 10 degrees, to the right
    env.physics.refresh(torch.tensor([0]))
    assert env.foot_contacts().tolist() == [[False, True]]
    left, right = env.foot_heights()[0].tolist()
    assert left - right == pytest.approx(0.0836 * 0.1736, abs=0.004)  # feet 84 mm apart, times sin 10 degrees


def test_building_an_environment_repeats_under_one_torch_seed():
    drawn = []
    for _ in range(2):
        torch.manual_seed(5)
        env = MicroDuckEnv(num_envs=2)
        drawn.append(torch.cat([env.reset()["observation"].reshape(-1), torch.rand(3)]))
    assert torch.equal(*drawn)


def test_a_step_before_the_first_reset_is_refused():
    with pytest.raises(ConfigError, match="no duck has been reset yet; call reset"):
        make(1)._step(TensorDict({"action": torch.zeros(1, 14)}, batch_size=[1]))


def test_warm_start_pushes_along_the_command():
    row = MicroDuckEnv.speed_range_task(
        0.2, 0.2, warm_start_fraction=1.0, warm_start_velocity=(0.15, 0.15), joint_reset_noise_scale=0.25
    )
    env = MicroDuckEnv(tasks=[row], num_envs=16, seed=0)
    env.reset()
    assert env.physics.qvel[:, 0].numpy() == pytest.approx(0.15)
    assert env.physics.qvel[:, 1:3].numpy() == pytest.approx(0.0)
    joint_noise = (env.physics.qpos[:, 7:] - env.physics.stand_qpos[7:]).abs()
    assert 0.2 < float(joint_noise.max()) <= 0.25


def test_air_time_is_paid_at_touchdown():
    env = MicroDuckEnv(tasks=[MicroDuckEnv.tracking_task(0.2)], seed=0)
    env.reset()
    env.physics.qpos[0, 2] = 0.2  # 8 cm above the ground: a free fall of sqrt(2 * 0.083 / 9.81) = 0.13 s
    paid = []
    for _ in range(12):
        state = TensorDict({"action": torch.zeros(1, 14)}, batch_size=[1])
        env.step(state)
        paid.append(env.features["touchdown_air_time"].max().item())
    assert sum(value > 0 for value in paid) >= 1
    assert max(paid) == pytest.approx(0.13, abs=0.021)


def test_the_heading_to_keep_turns_with_the_commanded_yaw_rate():
    row = MicroDuckEnv.make_task((0, 0), (0, 0), name="turn", yaw_rate_interval=(1.0, 1.0))
    env = MicroDuckEnv(tasks=[row], layout="sensor", seed=0)
    state = env.reset()
    assert state["observation"][0, 6:9].tolist() == [0.0, 0.0, 1.0]
    for _ in range(10):
        state["action"] = torch.zeros(1, 14)
        state = env.step(state)["next"]
    yaw = float(env.features["heading"]) + 0.2  # 1 rad/s for 0.2 s was wanted
    assert abs(yaw) < 0.05  # and the duck has hardly turned


def test_nothing_returned_shares_memory_with_the_environment():
    env = make(2)
    state = env.reset()
    state["action"] = torch.zeros(2, 14)
    first = env.step(state)["next"].clone()
    kept = env.step(state)["next"]
    snapshot = kept.clone()
    scripted(env, 3)
    assert all(torch.equal(kept[key], snapshot[key]) for key in ("observation", "command", "task_id"))
    assert not torch.equal(first["observation"], snapshot["observation"])


def test_a_caller_who_writes_into_a_step_changes_neither_features_nor_later_resets():
    env = make(2)
    state = env.reset()
    after = env._step(state.set("action", torch.zeros(2, 14)))
    kept = after.clone()
    for key in set(after.keys()):
        after[key][:] = 1
    assert not env.features["fallen"].any()
    nobody = TensorDict({"_reset": torch.zeros(2, 1, dtype=torch.bool)}, batch_size=[2])
    again = env._reset(nobody)
    assert all(torch.equal(again[key], kept[key]) for key in ("observation", "command", "task_id", "fallen"))


@pytest.mark.parametrize(("body_contacts", "rests"), [(True, True), (False, False)])
def test_a_fallen_duck_rests_on_the_floor_only_with_body_contacts(body_contacts, rests):
    env = MicroDuckEnv(physics_options=PhysicsOptions(body_contacts=body_contacts), seed=0)
    state = env.reset()
    for _ in range(150):
        state["action"] = torch.zeros(1, 14)
        state = env.step(state)["next"]
    assert bool(state["fallen"])
    assert (float(env.physics.qpos[0, 2]) > 0.02) == rests


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda features, params: features["grace"], "'clumsy' asks for 'grace'; features are .*'upright'"),
        (
            lambda features, params: features["contacts"].float(),
            r"'clumsy' returned shape \(2, 2\); one value",
        ),
    ],
)
def test_a_faulty_reward_term_is_named(function, message):
    class Clumsy(MicroDuckEnv):
        pass

    Clumsy.register_reward("clumsy", weight=1.0)(function)
    env = Clumsy(tasks=Clumsy.standing_task(), num_envs=2, seed=0)
    with pytest.raises(TaskError, match=message):
        env.rollout(1)


@pytest.mark.parametrize("shape", [(2, 1), (2, 13), (1, 14), (2, 14, 1)])
def test_an_action_of_another_shape_is_refused_before_anything_moves(shape):
    env = make(2)
    env.reset()
    before = env.get_state()
    with pytest.raises(ConfigError, match=r"it must be \(2, 14\) real numbers"):
        env._step(TensorDict({"action": torch.zeros(shape)}, batch_size=shape[:1]))
    assert torch.equal(env.get_state()["qpos"], before["qpos"])


def test_a_term_that_is_not_finite_is_named_and_other_precisions_become_float32():
    class Own(MicroDuckEnv):
        pass

    Own.register_reward("wild", weight=1.0, wild_scale=1.0)(
        lambda features, params: (features["upright"] / params["wild_scale"]).double()
    )
    env = Own(tasks=Own.standing_task(), num_envs=2, seed=0)
    assert env.rollout(1)["next", "reward"].dtype == torch.float32
    with pytest.raises(TaskError, match=r"reward terms \['wild'\] returned NaN or infinity"):
        Own(tasks=Own.standing_task(wild_scale=0.0), num_envs=2, seed=0).rollout(1)


def test_changing_the_library_in_place_changes_no_running_environment():
    env, other = (make(2) for _ in range(2))
    env.tasks.gait_frequency_hz.fill_(9.0)
    env.tasks.weight.copy_(torch.tensor([0.0, 1.0]))
    assert torch.equal(scripted(env, 5), scripted(other, 5))


def test_features_of_the_simulator_end_with_their_step():
    env = make(2)
    state = env.reset()
    env.step(state.set("action", torch.zeros(2, 14)))
    with pytest.raises(FeatureError, match="'foot_tilt' was not computed in this step"):
        env.features["foot_tilt"]


def test_features_compare_with_the_step_before():
    seen = []

    class Watching(MicroDuckEnv):
        pass

    @Watching.register_reward("watch", weight=1.0)
    def watch(features, params):
        seen.append(
            {key: features[key].clone() for key in ("foot_velocity", "previous_contacts", "contacts")}
        )
        return features["upright"]

    env = Watching(tasks=Watching.standing_task(), seed=0)
    env.reset()
    env.physics.qpos[0, 2] += 0.01  # dropped from a centimetre
    env.physics.qvel[0, :3] = torch.tensor([0.3, 0.0, 0.0])
    for _ in range(6):
        env.step(TensorDict({"action": torch.zeros(1, 14)}, batch_size=[1]))
    assert not seen[0]["foot_velocity"].any() and not seen[0]["previous_contacts"].any()
    assert seen[1]["foot_velocity"][0, :, 0].tolist() == pytest.approx([0.3, 0.3], abs=0.05)
    landed = next(i for i, step in enumerate(seen) if step["contacts"].any())
    assert landed > 0 and not seen[landed]["previous_contacts"].any()
    assert torch.equal(seen[landed + 1]["previous_contacts"], seen[landed]["contacts"])


def test_the_heading_to_keep_goes_round():
    row = MicroDuckEnv.make_task((0, 0), (0, 0), name="turn", yaw_rate_interval=(3.0, 3.0))
    env = MicroDuckEnv(tasks=row, seed=0)
    env.reset()
    for _ in range(120):  # 7.2 rad wanted, none turned: 0.917 rad short of a whole turn back
        env.physics.reset(torch.tensor([0]), env.physics.stand_qpos[None], torch.zeros(1, 20))
        env.step(TensorDict({"action": torch.zeros(1, 14)}, batch_size=[1]))
    assert float(env.features["heading"]) == pytest.approx(2 * math.pi - 7.2, abs=0.02)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1e30])
def test_an_action_no_policy_should_give_is_refused_by_row(value):
    env = make(3)
    state = env.reset()
    state["action"] = torch.zeros(3, 14)
    state["action"][1, 4] = value
    with pytest.raises(ConfigError, match=r"action of environments \[1\] is not finite or beyond"):
        env.step(state)
