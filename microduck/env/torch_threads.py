"""One thread for small tensors.

An environment's tensors are small: a thousand ducks make fifty thousand numbers. Handing such work to torch's
thread pool costs more than doing it, above all while another program holds a core, when each of some hundred
operations in a step waits for a thread to wake.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import torch

Method = TypeVar("Method", bound=Callable[..., Any])


def on_one_thread(method: Method) -> Method:
    """Return `method` so that torch uses one thread within it, and as many as before afterwards."""

    @wraps(method)
    def alone(*arguments: Any, **keywords: Any) -> Any:
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            return method(*arguments, **keywords)
        finally:
            torch.set_num_threads(before)

    return alone  # type: ignore[return-value]  # a wrapped method has the method's type
