from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

MakeArray = Callable[[Any], Any]


@pytest.fixture(params=["numpy", "torch"])
def array(request: pytest.FixtureRequest) -> MakeArray:
    """Makes double-precision arrays of numpy, then of torch: every test with it runs on both."""
    if request.param == "numpy":
        return lambda values: np.array(values, dtype=np.float64)
    return lambda values: torch.tensor(values, dtype=torch.float64)


@pytest.fixture
def close() -> Callable[..., bool]:
    """Compares an array of either library with numbers; a wrong shape is a difference."""

    def compare(got: Any, wanted: Any, tolerance: float = 1e-9) -> bool:
        got, wanted = np.asarray(got), np.asarray(wanted, dtype=np.float64)
        return got.shape == wanted.shape and bool(np.abs(got - wanted).max(initial=0.0) <= tolerance)

    return compare
