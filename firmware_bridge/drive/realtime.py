"""Undisturbed ticks: real-time priority and locked memory where the system allows them, and no collector.

A loop without these may be kept waiting by other programs, by a page that was swapped out, or by Python's
cycle collector, for many milliseconds at a moment nobody chose.
"""

from __future__ import annotations

import ctypes
import gc
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager

from hardware.errors import ConfigError

PRIORITY = 40
"""Real-time priority: above every usual program, below the kernel's interrupt threads, which have 50 and
bring the servos' bytes."""
_CURRENT_FUTURE_ON_FAULT = 1 | 2 | 4
"""Flags of mlockall: all memory now and later, but each page only once it is used; else stacks and buffers
that nobody fills would take several times the memory."""
_ADVICE = (
    "run as root, or put `USER - rtprio 40` and `USER - memlock unlimited` into a file in "
    "/etc/security/limits.d and log in again, or leave --realtime out"
)


@contextmanager
def quiet_collector() -> Iterator[None]:
    """Keep Python's cycle collector out of the block; what exists before is not looked at again in it."""
    was_enabled = gc.isenabled()
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.unfreeze()
        if was_enabled:
            gc.enable()


@contextmanager
def realtime() -> Iterator[None]:
    """Give this thread real-time priority and keep this process's memory from being swapped out.

    Threads that are started inside keep their usual priority.

    Raises:
        ConfigError: the system does not allow it; nothing was changed.
    """
    policy, parameters = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(PRIORITY))
    except OSError as error:
        raise ConfigError(f"no real-time priority ({error.strerror}); {_ADVICE}") from error
    try:
        _lock_memory()
        try:
            yield
        finally:
            _c_library().munlockall()
    finally:
        os.sched_setscheduler(0, policy, parameters)


def _lock_memory() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    # Under a limit, locking may work now and the next buffer be refused in the middle of a walk.
    if soft != resource.RLIM_INFINITY and os.geteuid() != 0:
        if hard != resource.RLIM_INFINITY:
            raise ConfigError(f"no locked memory (limit {hard} bytes); {_ADVICE}")
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (hard, hard))
    if _c_library().mlockall(_CURRENT_FUTURE_ON_FAULT):
        raise ConfigError(f"no locked memory ({os.strerror(ctypes.get_errno())}); {_ADVICE}")


def _c_library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
