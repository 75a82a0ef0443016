"""The `microduck` command; says what to install where only the robot's part is."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    try:
        from export.cli.app import run
    except ModuleNotFoundError as error:
        sys.stderr.write(
            f"microduck: {error.name} is not installed; training needs the extra: "
            "in a checkout, pip install -c constraints.txt '.[train]'\n"
        )
        return 1
    return run(list(sys.argv[1:] if arguments is None else arguments))
