"""The second library of the nine skills against the first."""

import torch

from microduck.learning.nine_skills import nine_skills
from microduck.learning.polish import CHANGES, changed, polish
from microduck.rewards import REWARD_TERMS
from microduck.tasks import stack_tasks, standing_task


def weight(row, term):
    return float(row.reward_weights[row.reward_terms.split(",").index(term)])


def test_it_has_the_same_tasks_and_commands_so_that_one_policy_can_go_on():
    first, second = stack_tasks(nine_skills()), stack_tasks(polish())
    assert list(first.name) == list(second.name) == list(CHANGES)
    for field in ("command_low", "command_high", "yaw_rate_interval"):
        assert torch.equal(first.get(field), second.get(field))


def test_every_skill_is_paid_for_its_mean_velocity_there_and_only_there():
    assert [weight(row, "mean_velocity") for row in nine_skills()] == [0.0] * 9
    assert all(weight(row, "mean_velocity") > 0 for row in polish())


def test_a_changed_row_differs_in_what_was_named_alone():
    row = standing_task()
    other = changed(row, {"pose": 6.0}, {"pose_std": 0.4, "gait_frequency_hz": 3.5})
    differing = row.reward_weights != other.reward_weights
    assert [name for name, differs in zip(REWARD_TERMS, differing, strict=True) if differs] == ["pose"]
    assert (weight(row, "pose"), weight(other, "pose")) == (1.0, 6.0)
    assert float(other.params["pose_std"]) == torch.tensor(0.4) and float(row.params["pose_std"]) != 0.4
    assert float(other.gait_frequency_hz) == 3.5 and float(row.gait_frequency_hz) != 3.5
