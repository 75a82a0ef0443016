"""The bound on exploration over a run."""

import pytest
import torch

from microduck.learning.annealing import most_std, randomization
from microduck.policy import SkillPolicy


@pytest.mark.parametrize(
    ("progress", "most"),
    # From 1 to a quarter: half way between 0.3 and 0.9 it is the geometric mean, a half.
    [(0.0, 1.0), (0.3, 1.0), (0.6, 0.5), (0.9, 0.25), (1.0, 0.25), (1.2, 0.25)],
)
def test_the_bound_falls_by_equal_factors_in_the_middle_of_a_run(progress, most):
    assert most_std(1.0, 0.25, progress) == pytest.approx(most)


def test_a_policy_explores_no_more_than_it_may_and_no_more_than_it_learned():
    policy = SkillPolicy(55, 2, initial_std=0.8)
    with torch.no_grad():
        policy.log_std[1] = -2.0  # 0.135
    policy.limit_std(0.3)
    std = policy.std(torch.tensor([[0], [1]]))
    assert std[0].tolist() == pytest.approx([0.3] * 14)
    assert std[1].tolist() == pytest.approx([0.1353] * 14, abs=1e-4)


@pytest.mark.parametrize(("progress", "on"), [(0.0, 0.0), (0.15, 0.0), (0.3, 0.5), (0.45, 1.0), (1.0, 1.0)])
def test_ducks_begin_to_differ_early_in_a_run_and_fully_before_its_half(progress, on):
    assert randomization(progress) == pytest.approx(on)
