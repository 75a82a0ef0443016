import numpy as np
import pytest
import torch

from export.onnx_graph import to_onnx
from export.parity import check_parity, graph_actor, sample_inputs
from hardware.errors import ExportError
from microduck.policy import SkillPolicy


def test_exported_policy_agrees_on_a_thousand_observations(policy: SkillPolicy) -> None:
    parity = check_parity(policy, graph_actor(to_onnx(policy)))
    assert parity.observations == 1000
    assert 0 < parity.max_abs_difference <= 1e-5


def test_observations_spread_around_those_of_training_and_visit_every_task(policy: SkillPolicy) -> None:
    observation, task_id = sample_inputs(policy)
    spread = (observation - policy.normaliser.mean) / policy.normaliser.variance.sqrt()
    assert spread.std() == pytest.approx(3.0, rel=0.02)
    assert task_id.unique().tolist() == [0, 1]
    again = sample_inputs(policy)
    assert torch.equal(observation, again[0])


def test_every_task_of_a_large_library_is_compared() -> None:
    _, task_id = sample_inputs(SkillPolicy(3, 700, hidden=(4,)))
    assert task_id.ravel().bincount().tolist() == [2] * 700


def test_difference_is_found_in_any_single_action(policy: SkillPolicy) -> None:
    act = graph_actor(to_onnx(policy))
    calls = iter(range(1000))

    def off_once(observation: np.ndarray, task_id: int) -> np.ndarray:
        action = act(observation, task_id)
        action[13] += 2.05e-5 if next(calls) == 997 else 0.0
        return action

    with pytest.raises(ExportError, match=r"differs from the policy by 2\.\d*e-05; at most 1e-05 is valid"):
        check_parity(policy, off_once)


def test_graph_of_other_parameters_is_refused(policy: SkillPolicy) -> None:
    graph = to_onnx(policy)
    policy.normaliser.update(
        500, torch.ones(55), torch.ones(55)
    )  # as if the normaliser had been left out of step
    with pytest.raises(ExportError, match="differs from the policy"):
        check_parity(policy, graph_actor(graph))


def test_zeroed_last_layer_is_refused_as_a_frozen_duck(policy: SkillPolicy) -> None:
    with torch.no_grad():
        policy.heads.weight.zero_()
    with pytest.raises(ExportError, match="task 0 the same action whatever it observes"):
        check_parity(policy, graph_actor(to_onnx(policy)))


def test_action_that_depends_on_the_task_alone_is_refused(policy: SkillPolicy) -> None:
    with torch.no_grad():
        policy.first.weight.zero_()
    with pytest.raises(ExportError, match="the same action whatever it observes"):
        check_parity(policy, graph_actor(to_onnx(policy)))


def test_actions_that_are_not_finite_are_refused(policy: SkillPolicy) -> None:
    with pytest.raises(ExportError, match="the exported graph gives actions that are not finite"):
        check_parity(policy, lambda observation, task_id: np.full(14, np.nan, np.float32))


def test_overflow_inside_the_policy_is_refused(policy: SkillPolicy) -> None:
    with torch.no_grad():
        policy.first.weight.fill_(3e38)
    with pytest.raises(ExportError, match="the policy gives actions that are not finite"):
        check_parity(policy, graph_actor(to_onnx(policy)))
