"""What every command needs: a console, and errors a user can read."""

from __future__ import annotations

import sys
from collections.abc import Callable

from rich.console import Console

from hardware.errors import DuckError

console = Console(highlight=False)


def run_safely(command: Callable[[], None], *, debug: bool = False) -> int:
    """Run a command and return its exit code: 0, 1 for an error it named, 130 for Ctrl-C."""
    try:
        command()
    except DuckError as error:
        if debug:
            raise
        Console(stderr=True, highlight=False).print(f"[bold red]error:[/] {error}", soft_wrap=True)
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("stopped\n")
        return 130
    return 0
