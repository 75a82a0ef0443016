"""A skill of layout `state`, for tests of several packages: the shipped walker, fed by other inputs."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from firmware_bridge.skills.bundle import shipped_bundle
from hardware import contract

if TYPE_CHECKING:
    import onnx

GAIN = 1.0
"""How much faster the walker is told to go for each m/s that the trunk is too slow."""
FASTEST = 0.3
"""Fastest that the walker was trained for [m/s]."""
SENT, WIDE = contract.offsets("state"), contract.width("state")


def state_walker(graph: onnx.ModelProto) -> onnx.ModelProto:
    """Put nodes before a walker of layout `sensor` that make its observation out of one of layout `state`.

    All that is in both is handed on. The walker's forward command becomes the one asked for, plus what the
    trunk lacks of it: without a good velocity it walks too fast or stands still. What layout `state` has not,
    the turn that is commanded and the error in heading, is zero: so it goes straight only as far as it does
    so by itself.
    """
    from onnx import helper

    table = {"zero": np.zeros((1, 2), np.float32), "gain": np.float32(GAIN), "axis": np.array([1])}
    table |= {"slowest": np.float32(0.0), "fastest": np.float32(FASTEST)}
    nodes = []

    def part(name: str, start: int, end: int) -> str:
        table[f"{name}_from"], table[f"{name}_to"] = np.array([start]), np.array([end])
        inputs = ["observation", f"{name}_from", f"{name}_to", "axis"]
        nodes.append(helper.make_node("Slice", inputs, [name]))
        return name

    trunk = part("trunk", 0, SENT["linear_velocity"])
    speed = part("speed", SENT["linear_velocity"], SENT["linear_velocity"] + 1)
    asked = part("asked", SENT["planar_command"], SENT["planar_command"] + 1)
    aside = part("aside", SENT["planar_command"] + 1, SENT["planar_command"] + 2)
    rest = part("rest", SENT["joint_error"], WIDE)
    nodes += [
        helper.make_node("Sub", [asked, speed], ["lacking"]),
        helper.make_node("Mul", ["lacking", "gain"], ["more"]),
        helper.make_node("Add", [asked, "more"], ["free"]),
        helper.make_node("Clip", ["free", "slowest", "fastest"], ["ahead"]),
        helper.make_node("Concat", [trunk, "ahead", aside, "zero", rest], ["sensed"], axis=1),
    ]
    return _put_before(graph, nodes, table)


def _put_before(
    graph: onnx.ModelProto, nodes: list[onnx.NodeProto], table: dict[str, Any]
) -> onnx.ModelProto:
    """Return the graph fed by `sensed`, with a prefix for its own names so that none is taken twice."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    walker = onnx.compose.add_prefix(graph, "walker/", inplace=False).graph
    for node in walker.node:
        renamed = ["sensed" if name == "walker/observation" else name for name in node.input]
        node.input[:] = ["task_id" if name == "walker/task_id" else name for name in renamed]
        node.output[:] = ["action" if name == "walker/action" else name for name in node.output]
    constants = [numpy_helper.from_array(np.asarray(value), name) for name, value in table.items()]
    inputs = [
        helper.make_tensor_value_info("observation", TensorProto.FLOAT, [1, WIDE]),
        helper.make_tensor_value_info("task_id", TensorProto.INT64, [1, 1]),
    ]
    output = helper.make_tensor_value_info("action", TensorProto.FLOAT, [1, 14])
    whole = helper.make_graph(
        [*nodes, *walker.node], "state walker", inputs, [output], [*constants, *walker.initializer]
    )
    model = helper.make_model(whole, opset_imports=graph.opset_import, ir_version=graph.ir_version)
    onnx.checker.check_model(model)
    return model


@pytest.fixture(scope="session")
def state_walker_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped walker, as a bundle of layout `state`."""
    import onnx

    shipped, folder = shipped_bundle("walk"), tmp_path_factory.mktemp("bundle")
    manifest = json.loads((shipped / "manifest.json").read_text())
    model = state_walker(onnx.load(shipped / "policy.onnx")).SerializeToString()
    (folder / "policy.onnx").write_bytes(model)
    shutil.copy(shipped / "tasks.tdz", folder)
    old = manifest["contract"]
    described = contract.describe("state", old["action_scale_rad"], old["position_p_gain"])
    manifest["contract"], manifest["contract_digest"] = described, contract.digest(described)
    manifest["policy"]["sha256"] = hashlib.sha256(model).hexdigest()
    manifest["policy"]["inputs"]["observation"] = [1, WIDE]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder
