"""The `microduck` command. It is put together here, in the package that may import all others."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import tyro

from export.cli.demo import demo
from export.cli.export import export
from microduck.cli.bench import bench
from microduck.cli.console import run_safely
from microduck.cli.evaluate import evaluate
from microduck.cli.play import play
from microduck.cli.train import resume, train
from microduck.cli.virtual_duck import virtual_duck


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given  # for every command: show where an error came from
    app = tyro.extras.SubcommandApp()
    app.command(train)
    app.command(resume)
    app.command(name="eval")(evaluate)
    app.command(play)
    app.command(export)
    app.command(virtual_duck)
    app.command(bench)
    app.command(demo)
    arguments = [argument for argument in given if argument != "--debug"]
    return run_safely(
        lambda: app.cli(
            prog="microduck",
            description="Train MicroDuck skills and export them. --debug shows where an error came from.",
            args=arguments,
        ),
        debug=debug,
    )
