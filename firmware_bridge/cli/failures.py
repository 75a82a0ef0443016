"""What a user sees of an error that nobody expected: one line, and the whole of it with `--debug`."""

from __future__ import annotations

import sys
import threading
from types import TracebackType


def shorten_tracebacks() -> None:
    """Replace Python's report of an error that ends the program or one of its threads by one line."""
    sys.excepthook = _report
    threading.excepthook = _report_thread


def _report(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    text = f"{kind.__name__}: {error}".rstrip(": ")
    print(f"duck: internal error: {text}; --debug shows where it came from", file=sys.stderr)


def _report_thread(failed: threading.ExceptHookArgs) -> None:
    if failed.exc_value is not None:
        _report(failed.exc_type, failed.exc_value, failed.exc_traceback)
