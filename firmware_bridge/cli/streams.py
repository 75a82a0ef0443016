"""Standard streams that nobody reads, or that were closed before the program began, do no harm."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_STREAMS = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))


def open_missing_streams() -> None:
    """Open the null device in place of each standard stream that is closed.

    Otherwise the next file that is opened takes the number of the closed one: a library's message to standard
    error would then go to the servos.
    """
    for descriptor, (name, mode) in enumerate(_STREAMS):
        try:
            os.fstat(descriptor)
        except OSError:
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, descriptor)
            if null != descriptor:
                os.close(null)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(descriptor, mode, closefd=False))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a file name may hold bytes that are no text


@contextmanager
def flushed_output() -> Iterator[None]:
    """Write out what was printed, here, where a failure can still be handled.

    Raises:
        OSError: standard output takes no more, BrokenPipeError when its reader has gone; the rest is dropped.
    """
    try:
        yield
    finally:
        try:
            sys.stdout.flush()
        except OSError:
            drop_output()
            raise


def drop_output() -> None:
    """Let what is still buffered not fail once more, when the interpreter flushes it at its end."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)
