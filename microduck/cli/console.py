"""What every command needs: a console, and errors a user can read."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from rich.console import Console
from rich.markup import escape

from firmware_bridge.cli.streams import drop_output
from hardware.errors import DuckError


class _Console(Console):
    """Leaves it to the program what follows when nobody reads any more; rich would end it."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


console = _Console(highlight=False)


def run_safely(command: Callable[[], None], *, debug: bool = False) -> int:
    """Run a command and return its exit code: 0, 1 for an error it named, 130 for Ctrl-C."""
    try:
        command()
    except DuckError as error:
        if debug:
            raise
        # Escaped: what a user typed may look like markup.
        Console(stderr=True, highlight=False).print(
            f"[bold red]error:[/] {escape(str(error))}", soft_wrap=True
        )
        return 1
    except BrokenPipeError:  # whoever reads, such as `head`, has enough
        drop_output()
    except KeyboardInterrupt:
        sys.stderr.write("stopped\n")
        return 130
    except OSError as error:
        if debug:
            raise
        drop_output()
        where = f"{error.filename}: " if error.filename else ""
        sys.stderr.write(f"error: {where}{error.strerror or error}; --debug shows where it came from\n")
        return 1
    return 0


def tell(text: str) -> None:
    """Print a line, if anybody is still reading; for a program that others depend on whoever reads."""
    try:
        console.print(text)
    except BrokenPipeError:
        drop_output()


@contextmanager
def asked_to_stop() -> Iterator[Callable[[], bool]]:
    """Note SIGINT and SIGTERM instead of dying of them, for work that ends at a place of its own choosing.

    A second signal does what it usually does.
    """
    asked: list[int] = []
    usual = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def note(number: int, frame: FrameType | None) -> None:
        asked.append(number)
        for each, handler in usual.items():
            signal.signal(each, handler)

    for number in usual:
        signal.signal(number, note)
    try:
        yield lambda: bool(asked)
    finally:
        for number, handler in usual.items():
            signal.signal(number, handler)
