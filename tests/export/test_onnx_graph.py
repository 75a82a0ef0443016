import numpy as np
import onnx
import onnxruntime
import pytest
import torch

from export.onnx_graph import check_graph, to_onnx
from firmware_bridge.skills.onnx_file import check_onnx
from hardware.errors import BundleError, ExportError
from microduck.policy import SkillPolicy


def run(graph: bytes, observation: list[float], task_id: int = 0) -> np.ndarray:
    session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    feed = {"observation": np.array([observation], np.float32), "task_id": np.array([[task_id]])}
    return session.run(["action"], feed)[0][0]


@pytest.fixture
def one_feature() -> SkillPolicy:
    """One feature of mean 2 and deviation 4, then layers that change nothing above zero."""
    policy = SkillPolicy(1, 2, num_actions=1, hidden=(1,))
    policy.normaliser.mean.fill_(2.0)
    policy.normaliser.variance.fill_(16.0 - policy.normaliser.FLOOR)
    with torch.no_grad():
        for layer in (policy.first, policy.heads):
            layer.weight.fill_(1.0)
            layer.bias.zero_()
    return policy


def test_file_normalises_what_it_is_given(one_feature: SkillPolicy) -> None:
    assert run(to_onnx(one_feature), [6.0]) == pytest.approx(1.0, abs=1e-6)  # (6 - 2) / 4


def test_file_clips_far_observations_as_training_does(one_feature: SkillPolicy) -> None:
    assert run(to_onnx(one_feature), [1e6]) == pytest.approx(10.0, abs=1e-5)


def test_task_id_selects_its_embedding(one_feature: SkillPolicy) -> None:
    with torch.no_grad():
        one_feature.task.weight[1] = 5.0
    graph = to_onnx(one_feature)
    assert run(graph, [6.0], task_id=1) - run(graph, [6.0], task_id=0) == pytest.approx(5.0, abs=1e-5)


def test_training_and_evaluation_mode_give_the_same_bytes(policy: SkillPolicy) -> None:
    assert to_onnx(policy.train()) == to_onnx(policy.eval())


def test_export_leaves_the_policy_as_it_was(policy: SkillPolicy) -> None:
    before = {name: value.clone() for name, value in policy.state_dict().items()}
    to_onnx(policy.train())
    assert policy.training
    assert all(torch.equal(value, before[name]) for name, value in policy.state_dict().items())


def test_file_is_old_enough_for_the_oldest_robot(policy: SkillPolicy) -> None:
    assert check_onnx(to_onnx(policy)) == (8, 17)


def test_robot_refuses_a_newer_file_and_names_both_numbers(policy: SkillPolicy) -> None:
    model = onnx.load_from_string(to_onnx(policy))
    model.ir_version = 14
    with pytest.raises(BundleError, match=r"IR 14, opset 17; this robot reads up to IR 10"):
        check_onnx(model.SerializeToString())


def test_inputs_output_and_numbers_have_the_types_the_robot_feeds(policy: SkillPolicy) -> None:
    model = onnx.load_from_string(to_onnx(policy))
    ports = {
        port.name: (port.type.tensor_type.elem_type, [d.dim_value for d in port.type.tensor_type.shape.dim])
        for port in (*model.graph.input, *model.graph.output)
    }
    single, whole = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
    assert ports == {
        "observation": (single, [1, 55]),
        "task_id": (whole, [1, 1]),
        "action": (single, [1, 14]),
    }
    assert {tensor.data_type for tensor in model.graph.initializer} == {single}


def test_exploration_noise_is_not_exported(policy: SkillPolicy) -> None:
    before = to_onnx(policy)
    with torch.no_grad():
        policy.log_std.fill_(3.0)
    assert to_onnx(policy) == before


def test_double_precision_is_refused(policy: SkillPolicy) -> None:
    with pytest.raises(ExportError, match=r"is DOUBLE; the graph must be float32"):
        to_onnx(policy.double())


def test_weights_that_are_not_finite_are_refused(policy: SkillPolicy) -> None:
    with torch.no_grad():
        policy.rest[1].weight[3, 4] = float("inf")
    with pytest.raises(ExportError, match=r"rest\.1\.weight holds values that are not finite"):
        to_onnx(policy)


def test_weights_in_another_file_are_refused(policy: SkillPolicy) -> None:
    model = onnx.load_from_string(to_onnx(policy))
    onnx.external_data_helper.set_external_data(model.graph.initializer[0], "weights.bin")
    with pytest.raises(ExportError, match=r"kept outside the ONNX file"):
        check_graph(model)


def test_another_operator_set_is_refused(policy: SkillPolicy) -> None:
    model = onnx.load_from_string(to_onnx(policy))
    model.opset_import[0].version = 18
    with pytest.raises(ExportError, match=r"has opset \{'': 18\} and IR 8; the robot gets opset 17"):
        check_graph(model)


def test_broken_graph_is_refused(policy: SkillPolicy) -> None:
    model = onnx.load_from_string(to_onnx(policy))
    del model.graph.node[3]
    with pytest.raises(ExportError, match=r"not valid ONNX"):
        check_graph(model)
