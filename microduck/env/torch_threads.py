"""One thread for small tensors.

An environment's tensors are small: a thousand ducks make fifty thousand numbers. Handing such work to torch's
thread pool costs more than doing it, above all while another program holds a core, when each of some hundred
operations in a step waits for a thread to wake.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import torch

Method = TypeVar("Method", bound=Callable[..., Any])

_here = threading.local()
_lock = threading.Lock()
_inside = 0
_usual = 1


def on_one_thread(method: Method) -> Method:
    """Return `method` so that torch uses one thread within it, and as many as before afterwards."""

    @wraps(method)
    def alone(*arguments: Any, **keywords: Any) -> Any:
        if getattr(_here, "inside", False):  # a step within step_and_maybe_reset
            return method(*arguments, **keywords)
        _here.inside = True
        _enter()
        try:
            return method(*arguments, **keywords)
        finally:
            _leave()
            _here.inside = False

    return alone  # type: ignore[return-value]  # a wrapped method has the method's type


def _enter() -> None:
    global _inside, _usual  # noqa: PLW0603  (torch's setting is global as well)
    with _lock:
        if not _inside:  # else this is the one that another thread's step has set
            _usual = torch.get_num_threads()
        _inside += 1
        torch.set_num_threads(1)


def _leave() -> None:
    global _inside  # noqa: PLW0603
    with _lock:
        _inside -= 1
        torch.set_num_threads(_usual)
