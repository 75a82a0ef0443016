"""All commands of `microduck`, put together in the package that may import all others."""

from __future__ import annotations

import tyro

from export.cli.demo import demo
from export.cli.export import export
from microduck.cli.bench import bench
from microduck.cli.console import run_safely
from microduck.cli.evaluate import evaluate
from microduck.cli.play import play
from microduck.cli.replay import replay
from microduck.cli.train import resume, train
from microduck.cli.twin import twin
from microduck.cli.virtual_duck import virtual_duck


def run(arguments: list[str]) -> int:
    """Run the command named by the arguments and return its exit code."""
    debug = "--debug" in arguments  # for every command: show where an error came from
    app = tyro.extras.SubcommandApp()
    app.command(train)
    app.command(resume)
    app.command(name="eval")(evaluate)
    app.command(play)
    app.command(export)
    app.command(virtual_duck)
    app.command(twin)
    app.command(replay)
    app.command(bench)
    app.command(demo)
    return run_safely(
        lambda: app.cli(
            prog="microduck",
            description="Train MicroDuck skills and export them. --debug shows where an error came from.",
            args=[argument for argument in arguments if argument != "--debug"],
        ),
        debug=debug,
    )
