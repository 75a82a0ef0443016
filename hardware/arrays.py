"""The library that arrays belong to, for code that runs on numpy arrays and on torch tensors alike."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import array_api_compat
import numpy as np

_NUMPY = (np.ndarray, np.generic)
_STANDARD = hasattr(np, "concat")
"""Whether numpy itself keeps to the array API, as from 2.0 on."""


def array_namespace(*arrays: Any) -> ModuleType:
    """Return the library of arrays, which keeps to the array API.

    That is numpy itself where it can be: the wrapper for it costs a drive 10 MB of memory and a tenth of a
    second at its start.

    Raises:
        TypeError: they belong to different libraries, or to none.
    """
    for array in arrays:
        if not (_STANDARD and isinstance(array, _NUMPY)):
            return array_api_compat.array_namespace(*arrays)
    return np
