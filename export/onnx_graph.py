"""The policy as an ONNX graph: its normaliser inside, in one file, readable by old runtimes."""

from __future__ import annotations

import io
import warnings
from typing import Any

import numpy as np
import onnx
import torch

from hardware.errors import ExportError
from microduck.policy import SkillPolicy

OPSET = 17
"""Operator set of the graph."""
IR_VERSION = 8
"""File format of the graph; onnxruntime 1.17 reads up to 9."""
INPUTS = ("observation", "task_id")
OUTPUT = "action"

# torch warns of its tracing exporter, which we choose: it is the one that writes the chosen opset directly.
_EXPORTER_NOISE = ("You are using the legacy TorchScript-based ONNX export", "The feature will be removed")
_FLOATING = {
    onnx.TensorProto.FLOAT16,
    onnx.TensorProto.BFLOAT16,
    onnx.TensorProto.FLOAT,
    onnx.TensorProto.DOUBLE,
}


def to_onnx(policy: SkillPolicy) -> bytes:
    """Return the policy's mean action as a checked ONNX file.

    The inputs are `observation` (1, width) float32 and `task_id` (1, 1) int64, the output is `action`
    (1, num_actions) float32. Training and evaluation mode give the same bytes.

    Raises:
        ExportError: the policy or its graph holds something a robot must not get.
    """
    observation = torch.zeros(1, policy.first.in_features)
    task_id = torch.zeros(1, 1, dtype=torch.int64)
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        for message in _EXPORTER_NOISE:
            warnings.filterwarnings("ignore", message, DeprecationWarning)
        torch.onnx.export(
            policy,
            (observation, task_id),
            buffer,  # type: ignore[arg-type]  # this exporter writes to buffers; the annotation forgets it
            dynamo=False,
            opset_version=OPSET,
            input_names=list(INPUTS),
            output_names=[OUTPUT],
        )
    model = onnx.load_from_string(buffer.getvalue())
    model.ir_version = IR_VERSION
    check_graph(model)
    return model.SerializeToString(deterministic=True)


def check_graph(model: Any) -> None:
    """Refuse a graph that is not valid, not self-contained, not float32 or not finite.

    Raises:
        ExportError: names the part at fault.
    """
    for name, tensor in _constants(model.graph):
        _check_constant(name, tensor)
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise ExportError(f"the exported graph is not valid ONNX: {error}") from error
    opsets = {entry.domain: entry.version for entry in model.opset_import}
    if opsets != {"": OPSET} or model.ir_version != IR_VERSION:
        raise ExportError(
            f"the exported graph has opset {opsets} and IR {model.ir_version}; "
            f"the robot gets opset {OPSET} and IR {IR_VERSION}"
        )


def _constants(graph: Any) -> list[tuple[str, Any]]:
    """Return every number the graph holds: initializers and the values of Constant nodes."""
    values = [
        (node.name, attribute.t)
        for node in graph.node
        for attribute in node.attribute
        if attribute.type == onnx.AttributeProto.TENSOR
    ]
    return [(tensor.name, tensor) for tensor in graph.initializer] + values


def _check_constant(name: str, tensor: Any) -> None:
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        raise ExportError(f"{name} is kept outside the ONNX file; a bundle's graph must be one file")
    if tensor.data_type not in _FLOATING:
        return
    if tensor.data_type != onnx.TensorProto.FLOAT:
        kind = onnx.TensorProto.DataType.Name(tensor.data_type)
        raise ExportError(f"{name} is {kind}; the graph must be float32, so call policy.float() first")
    if not np.isfinite(onnx.numpy_helper.to_array(tensor)).all():
        raise ExportError(
            f"{name} holds values that are not finite; the training went wrong, export a checkpoint before it"
        )
