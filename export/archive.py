"""A task library as a `.tdz` archive: plain numbers and text, proven to read back bit for bit.

TensorDict stores any Python object in a `.tdz`, as a pickle. Whoever reads such a file runs foreign code, so
none is written here.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tensordict import is_non_tensor

from firmware_bridge.archive import DTYPES, read_archive
from hardware.errors import ArchiveError
from hardware.files import replacing


def write_archive(data: Any, path: Path) -> None:
    """Write an archive and prove it with the robot's reader; an older file stays until then.

    Args:
        data: a TensorDict or tensorclass of tensors and text.
        path: the file.

    Raises:
        ArchiveError: `data` holds something else, or the file does not read back equal.
    """
    wanted = _leaves(data)  # refuses what is not plain before a byte is written
    with replacing(path) as temporary:
        data.save(temporary, archive=True)
        _check_equal(path.name, wanted, _leaves(read_archive(temporary)))


def _leaves(level: Any, prefix: str = "") -> dict[str, Any]:
    """Return every array and text of nested dictionaries or TensorDicts by its path."""
    found: dict[str, Any] = {}
    for key, value in level.items():
        name = f"{prefix}{key}"
        if is_non_tensor(value):
            found[name] = _text(name, value.tolist())
        elif isinstance(value, torch.Tensor):
            found[name] = _array(name, value)
        elif isinstance(value, np.ndarray | str | list):
            found[name] = value
        else:
            found |= _leaves(value, f"{name}/")
    return found


def _text(name: str, value: Any) -> Any:
    for item in value if isinstance(value, list) else [value]:
        if not isinstance(item, str):
            raise ArchiveError(
                f"{name!r} holds a {type(item).__name__}; an archive holds tensors and text only"
            )
    return value


def _array(name: str, tensor: torch.Tensor) -> np.ndarray:
    if str(tensor.dtype) not in DTYPES:
        raise ArchiveError(
            f"{name!r} is {tensor.dtype}, which no robot reads; convert it to one of {sorted(DTYPES)}"
        )
    return tensor.numpy(force=True)


def _check_equal(file: str, wanted: Mapping[str, Any], got: Mapping[str, Any]) -> None:
    for name in sorted({*wanted, *got}):
        if name not in got:
            raise ArchiveError(f"{file} has lost {name!r}; write it again")
        if name not in wanted or not _same(wanted[name], got[name]):
            raise ArchiveError(f"{file} holds another {name!r} than was written; write it again")


def _same(wanted: Any, got: Any) -> bool:
    if not (isinstance(wanted, np.ndarray) and isinstance(got, np.ndarray)):
        return type(wanted) is type(got) and wanted == got
    # As bytes: NaN equals itself and -0.0 differs from 0.0.
    return wanted.dtype == got.dtype and wanted.shape == got.shape and wanted.tobytes() == got.tobytes()
