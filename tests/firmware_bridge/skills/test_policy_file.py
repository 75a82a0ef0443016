from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from firmware_bridge.skills.bundle import load_bundle
from firmware_bridge.skills.onnx_file import check_onnx
from hardware.errors import BundleError

Manifest = dict[str, Any]


def test_a_policy_written_in_too_new_a_format_is_refused_with_both_numbers(
    draft: Any, tmp_path: Path, make_model: Callable[..., onnx.ModelProto]
) -> None:
    draft.model, draft.versions = make_model(ir_version=14).SerializeToString(), (14, 17)
    with pytest.raises(BundleError, match=r"IR 14, .* up to IR 10, .*`microduck export`"):
        load_bundle(draft.write(tmp_path / "b"))


def test_a_policy_of_too_new_operators_is_refused_with_both_numbers(
    draft: Any, tmp_path: Path, make_model: Callable[..., onnx.ModelProto]
) -> None:
    draft.model, draft.versions = make_model(opset=26).SerializeToString(), (8, 26)
    with pytest.raises(BundleError, match=r"opset 26; .* opset 21"):
        load_bundle(draft.write(tmp_path / "b"))


def test_versions_that_differ_from_the_manifests_are_refused(draft: Any, tmp_path: Path) -> None:
    draft.versions = (9, 17)
    with pytest.raises(BundleError, match="has IR 8, opset 17; the manifest says IR 9, opset 17"):
        load_bundle(draft.write(tmp_path / "b"))


def external(tensor: onnx.TensorProto) -> None:
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="weights.bin")


def in_initializer(model: onnx.ModelProto) -> None:
    external(model.graph.initializer[0])


def in_constant(model: onnx.ModelProto) -> None:
    constant = helper.make_node(
        "Constant", [], ["c"], value=helper.make_tensor("c", TensorProto.FLOAT, [1], [1])
    )
    external(constant.attribute[0].t)
    model.graph.node.append(constant)


def in_branch(model: onnx.ModelProto) -> None:
    inner = helper.make_graph([], "inner", [], [], [helper.make_tensor("w", TensorProto.FLOAT, [1], [1])])
    external(inner.initializer[0])
    model.graph.node.append(helper.make_node("If", ["c"], ["y"], then_branch=inner, else_branch=inner))


def in_sparse_constant(model: onnx.ModelProto) -> None:
    values = helper.make_tensor("v", TensorProto.FLOAT, [1], [1])
    indices = helper.make_tensor("i", TensorProto.INT64, [1], [0])
    sparse = helper.make_sparse_tensor(values, indices, [4])
    model.graph.node.append(helper.make_node("Constant", [], ["s"], sparse_value=sparse))
    external(model.graph.node[-1].attribute[0].sparse_tensor.values)


@pytest.mark.parametrize("hide", [in_initializer, in_constant, in_branch, in_sparse_constant])
def test_weights_in_another_file_are_found_wherever_they_hide(
    draft: Any, tmp_path: Path, make_model: Callable[..., onnx.ModelProto], hide: Callable[..., None]
) -> None:
    model = make_model()
    hide(model)
    draft.model = model.SerializeToString()
    with pytest.raises(BundleError, match="external data"):
        load_bundle(draft.write(tmp_path / "b"))


def test_the_versions_are_read_from_the_files_own_bytes(make_model: Callable[..., onnx.ModelProto]) -> None:
    assert check_onnx(make_model(ir_version=9, opset=15).SerializeToString()) == (9, 15)


def test_a_damaged_policy_file_is_refused_and_never_crashes_the_reader(
    make_model: Callable[..., onnx.ModelProto],
) -> None:
    data = make_model().SerializeToString()
    rng = np.random.default_rng(0)
    outcomes = set()
    for place in rng.integers(0, len(data), 400):
        for broken in (data[:place], data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :]):
            try:
                check_onnx(broken)
                outcomes.add("read")
            except BundleError:
                outcomes.add("refused")
    assert outcomes == {"read", "refused"}


@pytest.mark.parametrize("data", [b"", b"\x00" * 8, b"\xff" * 40, b"not an onnx file"])
def test_what_is_no_onnx_file_is_refused(data: bytes) -> None:
    with pytest.raises(BundleError, match=r"not an ONNX file|cut short"):
        check_onnx(data)


def test_a_policy_onnxruntime_cannot_load_is_refused(
    draft: Any, tmp_path: Path, make_model: Callable[..., onnx.ModelProto]
) -> None:
    draft.model = make_model([helper.make_node("Quack", ["observation"], ["action"])]).SerializeToString()
    with pytest.raises(BundleError, match=r"cannot load the policy: .*Quack"):
        load_bundle(draft.write(tmp_path / "b"))


def test_a_policy_whose_action_is_not_finite_is_refused(
    draft: Any, tmp_path: Path, make_model: Callable[..., onnx.ModelProto]
) -> None:
    nodes = [
        helper.make_node("MatMul", ["observation", "weight"], ["zero"]),
        helper.make_node("Div", ["zero", "zero"], ["action"]),
    ]
    draft.model = make_model(nodes).SerializeToString()
    with pytest.raises(BundleError, match="not 14 finite values"):
        load_bundle(draft.write(tmp_path / "b"))


def test_a_skill_whose_task_the_policy_does_not_know_is_refused(
    draft: Any, tmp_path: Path, make_model: Callable[..., onnx.ModelProto]
) -> None:
    draft.model = make_model(rows=1).SerializeToString()
    with pytest.raises(BundleError, match="failed on 'walk'"):
        load_bundle(draft.write(tmp_path / "b"))
