"""A bundle's task library: written as the trainer writes it, proven to read back on the robot bit for bit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tensordict import is_non_tensor

from firmware_bridge.skills.archive import read_archive
from hardware.errors import ArchiveError
from hardware.files import replacing
from microduck.tasks import MicroDuckTask, save_library, stack_tasks


def write_archive(library: MicroDuckTask, path: Path) -> None:
    """Write a library and prove it with the robot's reader; an older file stays until then.

    Args:
        library: what `stack_tasks` takes.
        path: the file.

    Raises:
        TaskError: the library is not valid.
        ArchiveError: the file does not read back equal.
    """
    wanted = stack_tasks(library)
    with replacing(path) as temporary:
        save_library(wanted, temporary)
        _check_equal(path.name, _leaves(wanted), _leaves(read_archive(temporary)))


def _leaves(level: Any, prefix: str = "") -> dict[str, Any]:
    """Return every array and text of nested dictionaries or TensorDicts by its path."""
    found: dict[str, Any] = {}
    for key, value in level.items():
        name = f"{prefix}{key}"
        if is_non_tensor(value):
            found[name] = value.tolist()
        elif isinstance(value, torch.Tensor):
            found[name] = value.numpy(force=True)
        elif isinstance(value, np.ndarray | str | list):
            found[name] = value
        else:
            found |= _leaves(value, f"{name}/")
    return found


def _check_equal(file: str, wanted: Mapping[str, Any], got: Mapping[str, Any]) -> None:
    for name in sorted({*wanted, *got}):
        if name not in got:
            raise ArchiveError(f"{file} has lost {name!r}; write it again")
        if name not in wanted or not _same(wanted[name], got[name]):
            raise ArchiveError(f"{file} holds another {name!r} than was written; write it again")


def _same(wanted: Any, got: Any) -> bool:
    if not (isinstance(wanted, np.ndarray) and isinstance(got, np.ndarray)):
        return type(wanted) is type(got) and wanted == got
    # As bytes: -0.0 differs from 0.0.
    return wanted.dtype == got.dtype and wanted.shape == got.shape and wanted.tobytes() == got.tobytes()
