from math import pi

import pytest
import torch
from tensordict import TensorDict
from torchrl.collectors.utils import split_trajectories

from hardware.errors import TaskError
from microduck.env import MicroDuckEnv
from microduck.gait_metrics import gait_metrics
from microduck.metrics import planar_score, trajectory_metrics

# Three episodes, of 2, 3 and 5 steps.
EPISODES = {
    "command": [[(0.2, 0)] * 2, [(0, 0)] * 3, [(0, -0.5)] * 5],
    "yaw_rate_command": [[0.5, 0.5], [0, 0, 0], [0, 0, 0, 0, 0]],
    "velocity": [
        [(0.2, 0), (0.1, 0)],
        [(0, 0.05), (0, 0), (0.3, 0.4)],
        [(0, -0.5), (0, -0.5), (0, -0.25), (0.3, -0.5), (0, -0.5)],
    ],
    "terminated": [[0, 0], [0, 0, 1], [0, 0, 0, 0, 0]],
    "left_foot_contact": [[1, 1], [0, 0, 0], [1, 0, 1, 0, 1]],
    "right_foot_contact": [[1, 0], [0, 1, 0], [1, 0, 1, 0, 0]],
    "head_pitch": [[0.1, -0.1], [0, 0.2, -0.4], [0.1, 0.1, 0.1, -0.3, 0.2]],
    "head_yaw": [[0.1, 0.1], [0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 0.1, -0.9]],
    "yaw_rate": [[1, 1], [0, 0, 0], [-0.5, -0.5, 0, 0, 0]],
    "height_gain": [[-0.01, 0.01], [0.02, 0, 0.03], [0, 0.05, 0, 0.04, 0]],
    "position_x": [[0, 1], [1, 1, 1], [0, 0, 0, 0, 3]],
    "position_y": [[0, 0], [1, 3, 1], [0, -1, -2, -3, -4]],
    "time": [[1, 2], [1, 2, 3], [1, 2, 3, 4, 5]],
    "heading": [[pi - 0.1, 0.1 - pi], [0, 0, 0], [0, 0, -pi / 2, -pi / 2, -pi / 2]],
    "action_rate_rms": [[0.1, 0.3], [0, 0, 0], [0, 0, 0, 0, 0]],
    "action_saturation_fraction": [[1, 1], [0, 0, 0], [0.5, 0.5, 0, 0, 0]],
}
BASIC = {
    "tracking_error": 0.12,  # errors 0, 0.1; 0.05, 0, 0.5; 0, 0, 0.25, 0.3, 0
    "forward_speed": 0.09,
    "lateral_speed": -0.18,
    "survival_rate": 2 / 3,
    "episode_length_min": 2.0,
    "task_score": 0.69,  # scores 1, 0.5; 0.5, 1, 0; 1, 1, 0.5, 0.4, 1
    "task_score_min": 0.5,
}


def padded(name, padding, width=0):
    """Return one entry of EPISODES, with `padding` behind the end of each episode."""
    rows = [torch.tensor(episode, dtype=torch.float32) for episode in EPISODES[name]]
    rows = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=padding)
    return rows if width else rows.unsqueeze(-1)


def recorded(width=56, diagnostics=True, padding=float("nan")):
    """Return EPISODES as an environment records them, in a layout of that width."""
    velocity = padded("velocity", padding, 2)
    mask = torch.arange(5) < torch.tensor([[2], [3], [5]])
    observation = torch.full((3, 5, width), float("nan"))
    if width == 56:
        observation[..., 6:8] = velocity
    after = {"observation": observation, "terminated": padded("terminated", 1).bool()}
    if diagnostics:
        names = list(EPISODES)[4:]
        after |= {f"diagnostic_{name}": padded(name, padding) for name in names}
        after |= {f"diagnostic_body_velocity_{axis}": velocity[..., i : i + 1] for i, axis in enumerate("xy")}
    return TensorDict(
        {
            "command": padded("command", padding, 2),
            "yaw_rate_command": padded("yaw_rate_command", padding),
            "next": after,
            "collector": {"mask": mask},
        },
        batch_size=[3, 5],
    )


@pytest.mark.parametrize(
    ("velocity", "command", "score"),
    [
        ((0.3, 0.0), (0.3, 0.0), 1.0),
        ((0.15, 0.0), (0.3, 0.0), 0.5),
        ((-0.3, 0.0), (0.3, 0.0), 0.0),  # an error of twice the command is no worse than standing
        ((0.03, 0.04), (0.0, 0.0), 0.5),  # judged against 0.1 m/s
        ((0.05, 0.0), (0.05, 0.05), 0.5),
    ],
)
def test_score_of_a_velocity(velocity, command, score):
    assert float(planar_score(torch.tensor(velocity), torch.tensor(command))) == pytest.approx(score)


@pytest.mark.parametrize("padding", [float("nan"), 99.0, -99.0])
def test_every_figure_of_three_short_episodes_worked_out_by_hand(padding):
    root = 0.5**0.5
    expected = {
        **BASIC,
        "airborne_fraction": 0.4,
        "head_pitch": 0.0,
        "head_pitch_abs": 0.16,
        "head_pitch_abs_p95": 0.355,  # between 0.3 and 0.4, at 8.55 of 0 to 9
        "head_yaw": 0.0,
        "head_yaw_abs": 0.18,
        "head_yaw_abs_p95": 0.54,
        "yaw_rate": 0.1,
        "yaw_rate_abs": 0.3,
        "hop_height_max": 0.03,
        "planar_speed": (2.6 + 0.34**0.5) / 10,
        "takeoffs_per_episode": 1.0,
        "landings_per_episode": 1.0,
        "hopping_episode_fraction": 1 / 3,
        "drift_speed": 0.75,  # 1 m in 1 s, back after 2 s, 5 m in 4 s
        "drift_speed_max": 1.25,
        "displacement_max": 5.0,
        "heading_rate": (0.2 - pi / 8) / 3,
        "heading_rate_min": -pi / 8,
        "heading_rate_max": 0.2,
        # backward through heading pi; left and back; right, right while turning, forward twice
        "ground_forward_speed": (-1 + root + 1 + 1) / 7,
        "ground_lateral_speed": (2 - 2 - 1 - root + 3) / 7,
        "action_rate_rms": 0.1,
        "action_saturation": 0.3,
        "yaw_rate_error": 0.2,
    }
    assert trajectory_metrics(recorded(padding=padding)) == pytest.approx(expected, abs=1e-6)
    assert trajectory_metrics(recorded(width=54, padding=padding)) == pytest.approx(expected, abs=1e-6)


def test_jumping_is_scored_by_the_time_in_the_air():
    metrics = trajectory_metrics(recorded(), jumping=True)
    assert metrics["task_score"] == pytest.approx(0.4)
    assert metrics["task_score_min"] == 0.0  # the first episode never leaves the ground
    assert metrics["tracking_error"] == pytest.approx(0.12)


def test_without_diagnostics_the_observation_gives_the_basic_figures():
    metrics = trajectory_metrics(recorded(diagnostics=False))
    assert metrics == pytest.approx({**BASIC, "airborne_fraction": 0.0})


def test_without_diagnostics_the_sensor_layout_is_refused():
    with pytest.raises(
        TaskError, match=r"54 values does not hold the velocity; record with diagnostics=True"
    ):
        trajectory_metrics(recorded(width=54, diagnostics=False))


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (None, r"no mask \('collector', 'mask'\).*split_trajs=True"),
        (torch.ones(3, 5), r"torch.float32 of shape \(3, 5\); one torch.bool per step"),
        (torch.ones(3, 5, 1, dtype=torch.bool), r"shape \(3, 5, 1\); one torch.bool per step, \(3, 5\)"),
        (torch.zeros(3, 5, dtype=torch.bool), r"\(3, 5\) hold an empty episode"),
        (torch.tensor([[True, False, True, False, False]] * 3), "the mask has gaps"),
    ],
)
def test_a_mask_that_does_not_fit_is_refused(mask, message):
    trajectories = recorded()
    del trajectories["collector"]
    if mask is not None:
        trajectories["collector", "mask"] = mask
    with pytest.raises(TaskError, match=message):
        trajectory_metrics(trajectories)


def test_no_trajectories_at_all_are_refused():
    with pytest.raises(TaskError, match="empty episode"):
        trajectory_metrics(recorded()[:0])


def test_episodes_of_the_environment_as_torchrl_splits_them_are_understood():
    env = MicroDuckEnv(
        tasks=MicroDuckEnv.standing_task(), num_envs=3, diagnostics=True, max_episode_steps=30, seed=0
    )

    def rest(tensordict):
        return tensordict.set("action", torch.zeros(3, 14))

    rollout = env.rollout(60, rest, break_when_any_done=False)
    trajectories = split_trajectories(rollout, prefix="collector", done_key="done")
    assert trajectories.batch_size == (6, 30)
    metrics = trajectory_metrics(trajectories)
    assert metrics["survival_rate"] == 1.0  # the pose topples, but later
    assert metrics["episode_length_min"] == 30
    assert 0 < metrics["tracking_error"] < 0.2
    assert metrics["ground_forward_speed"] == pytest.approx(metrics["forward_speed"], abs=0.05)
    for axis in "xy":
        del trajectories["next", f"diagnostic_body_velocity_{axis}"]
    assert trajectory_metrics(trajectories) == pytest.approx(metrics)  # velocity of the observation


def walk(swing=5, direction=1, speed=0.03, pitch=0.1, contacts=None):
    """Return eight phases of 6 steps, left first; the swinging foot is in the air for `swing` of them."""
    step = torch.arange(48)
    left_swings = step // 6 % 2 == 0
    lifted = step % 6 < swing
    left, right = ~(left_swings & lifted), ~(~left_swings & lifted)
    before, after = torch.zeros(48, 56), torch.zeros(48, 56)
    before[:, 39] = direction * torch.where(left_swings, 0.5, -0.5)
    after[20, 0] = torch.tensor(pitch).sin()
    last = step == 47
    values = {
        "left_foot_contact": left.float() if contacts is None else torch.full((48,), contacts),
        "right_foot_contact": right.float() if contacts is None else torch.full((48,), contacts),
        "left_foot_height": torch.where(left, 0.0, 0.02),
        "right_foot_height": torch.where(right, 0.0, 0.01),
        "body_velocity_x": torch.full((48,), speed),
    }
    flags = {"terminated": torch.zeros(48, 1, dtype=torch.bool), "done": last.unsqueeze(-1)}
    diagnostics = {f"diagnostic_{name}": value.unsqueeze(-1) for name, value in values.items()}
    command = torch.tensor([0.03 * direction, 0.0]).expand(48, 2)
    found = {"observation": after, **flags, **diagnostics}
    return TensorDict({"observation": before, "command": command, "next": found}, batch_size=[48])


def test_figures_of_a_scripted_walk():
    metrics = gait_metrics(walk().reshape(1, 48))
    assert metrics == pytest.approx(
        {
            "survived": True,
            "episode_length": 48,
            "forward_speed": 0.03,
            "max_abs_pitch": 0.1,
            "left_swing_phases": 4,
            "left_single_support_steps": 20,
            "left_foot_height_max": 0.02,
            "right_swing_phases": 4,
            "right_single_support_steps": 20,
            "right_foot_height_max": 0.01,
            "walking": True,
        }
    )


def test_backward_the_clock_runs_mirrored():
    metrics = gait_metrics(walk(direction=-1, speed=-0.03))
    assert metrics["walking"]
    assert metrics["left_single_support_steps"] == 20


def test_a_foot_swings_when_it_lifts_for_four_steps_and_not_for_three():
    metrics = gait_metrics(walk(swing=4))
    assert (metrics["left_swing_phases"], metrics["left_single_support_steps"]) == (4, 16)
    assert metrics["walking"]
    metrics = gait_metrics(walk(swing=3))
    assert (metrics["left_swing_phases"], metrics["left_single_support_steps"]) == (0, 12)
    assert not metrics["walking"]


@pytest.mark.parametrize(
    "changed",
    [
        {"speed": -0.03},
        {"pitch": 0.21},
        {"pitch": -0.21},
        {"contacts": 1.0},  # moved by pitching on planted feet
        {"contacts": 0.0},  # a hop has no single support
    ],
)
def test_what_moves_otherwise_does_not_walk(changed):
    assert not gait_metrics(walk(**changed))["walking"]


def test_a_walk_that_ends_in_a_fall_is_none():
    rollout = walk()
    rollout["next", "terminated"][-1] = True
    metrics = gait_metrics(rollout)
    assert not metrics["survived"]
    assert not metrics["walking"]


def test_several_ducks_or_episodes_or_no_diagnostics_are_refused():
    with pytest.raises(TaskError, match=r"batch shape \(2, 48\).*rollout\[i\]"):
        gait_metrics(torch.stack([walk(), walk()]))
    with pytest.raises(TaskError, match="96 steps and not exactly one episode"):
        gait_metrics(torch.cat([walk(), walk()]))
    with pytest.raises(TaskError, match="diagnostics=True"):
        gait_metrics(MicroDuckEnv(tasks=MicroDuckEnv.standing_task()).rollout(2))
