"""What a robot must know of an ONNX file before it loads it: versions, and that it is one whole file.

An ONNX file is a protocol-buffer message. A few lines walk the fields of interest, so that the robot needs
no `onnx` package and the message can name both version numbers. Field numbers: `onnx.proto`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from hardware.errors import BundleError

MAX_IR_VERSION = 10
"""Newest IR version that onnxruntime 1.20, the oldest this toolkit allows, can read."""
MAX_OPSET = 21
"""Newest operator set of the same onnxruntime."""
MAX_DEPTH = 64

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
# For each message, the fields that lead to a tensor and the message they hold.
_PATHS: dict[str, dict[int, str]] = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "function": {7: "node", 11: "attribute"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
}
_IR_VERSION, _OPSET_IMPORT, _OPSET_DOMAIN, _OPSET_VERSION = 1, 8, 1, 2
_EXTERNAL_DATA, _DATA_LOCATION = 13, 14


class OnnxVersions(NamedTuple):
    """Versions an ONNX file declares."""

    ir_version: int
    opset: int


def check_onnx(data: bytes) -> OnnxVersions:
    """Return the versions of an ONNX file that the robot can load.

    Raises:
        BundleError: the file is no ONNX file, too new, or keeps weights in another file.
    """
    versions = _read_versions(data)
    if versions.ir_version > MAX_IR_VERSION or versions.opset > MAX_OPSET:
        raise BundleError(
            f"the policy is written in ONNX IR {versions.ir_version}, opset {versions.opset}; this robot "
            f"reads up to IR {MAX_IR_VERSION}, opset {MAX_OPSET}; export it again with `microduck export`"
        )
    if _has_external_data(memoryview(data), "model", MAX_DEPTH):
        raise BundleError("the policy keeps weights in another file (external data); export it as one file")
    return versions


def _read_versions(data: bytes) -> OnnxVersions:
    ir_version, opset = 0, 0
    for field, value in _fields(memoryview(data)):
        if field == _IR_VERSION and isinstance(value, int):
            ir_version = value
        elif field == _OPSET_IMPORT and isinstance(value, memoryview):
            entry = dict(_fields(value))
            version = entry.get(_OPSET_VERSION, 0)
            if bytes(entry.get(_OPSET_DOMAIN, b"")) in (b"", b"ai.onnx") and isinstance(version, int):
                opset = version
    if not (ir_version and opset):
        raise BundleError("the policy is not an ONNX file; export it again")
    return OnnxVersions(ir_version, opset)


def _has_external_data(data: memoryview, message: str, depth: int) -> bool:
    if depth == 0:
        raise BundleError(f"the policy nests its graphs deeper than {MAX_DEPTH} levels")
    for field, value in _fields(data):
        if message == "tensor":
            if field == _EXTERNAL_DATA or (field == _DATA_LOCATION and value != 0):
                return True
        elif isinstance(value, memoryview):
            inner = _PATHS[message].get(field)
            if inner and _has_external_data(value, inner, depth - 1):
                return True
    return False


def _fields(data: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Yield the number and the value of each field of one message."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        field, kind = key >> 3, key & 7
        if kind == _VARINT:
            number, at = _varint(data, at)
            yield field, number
            continue
        if kind == _BYTES:
            length, at = _varint(data, at)
        elif kind in (_FIXED32, _FIXED64):
            length = 4 if kind == _FIXED32 else 8
        else:
            raise BundleError("the policy is not an ONNX file; export it again")
        if at + length > len(data):
            raise BundleError("the policy's ONNX file is cut short; copy or export it again")
        yield field, data[at : at + length]
        at += length


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 64, 7):  # at most ten bytes
        if at >= len(data):
            raise BundleError("the policy's ONNX file is cut short; copy or export it again")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise BundleError("the policy is not an ONNX file; export it again")
