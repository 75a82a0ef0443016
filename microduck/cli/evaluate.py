"""`microduck eval`."""

from __future__ import annotations

from math import degrees
from pathlib import Path
from typing import TYPE_CHECKING

import tyro
from rich.table import Table

from microduck.cli.console import console
from microduck.cli.progress import Bar

if TYPE_CHECKING:
    from microduck.learning.evaluate import Evaluation


def evaluate(
    run: tyro.conf.Positional[Path], episodes: int = 64, seconds: float = 10.0, seed: int = 10_000
) -> None:
    """Evaluate a run's policy on every task: a table, evaluation.json and evaluation.png in its folder.

    Args:
        run: folder of the run.
        episodes: episodes for each task and command.
        seconds: length of an episode [s].
        seed: seed of the resets; keep it apart from the training's.
    """
    from hardware.contract import CONTROL_PERIOD_S
    from hardware.errors import ConfigError
    from microduck.learning import evaluate as learning
    from microduck.learning.run_folder import RunFolder, load_policy

    steps = round(seconds / CONTROL_PERIOD_S)
    if episodes < 1 or steps <= learning.SETTLE_STEPS:
        raise ConfigError(
            f"--episodes {episodes} --seconds {seconds:g}: give 1 episode or more of over 1 second"
        )
    policy, library, config, _ = load_policy(RunFolder(run))
    options = learning.EvaluationOptions(config.layout, config.action_scale, episodes, steps, seed)
    with Bar("evaluating", steps) as bar:
        results = learning.evaluate(policy, library, options, bar.show)
    learning.save_evaluation(results, run / "evaluation.json")
    learning.plot_evaluation(results, run / "evaluation.png")
    console.print(table(results))
    console.print(f"evaluation.json and evaluation.png -> {run}")


def table(results: list[Evaluation]) -> Table:
    """Return the results as a table for a terminal."""
    out = Table(
        title=f"{results[0].episodes} episodes a row, mean action, cold start",
        caption="heading drift: 95th percentile; action: RMS change a step",
    )
    for head in ("task", "vx vy yaw", "survival", "speed", "error", "drift p95", "action"):
        out.add_column(head, justify="left" if head == "task" else "right", no_wrap=head != "task")
    for row in results:
        out.add_row(
            row.task,
            " ".join(f"{value:.2g}" for value in row.command),
            f"{row.survival:.1%}",
            f"{row.speed:.3f} m/s",
            f"{row.speed_error:.3f} m/s",
            f"{degrees(row.heading_drift_p95):.0f} deg",
            f"{row.action_rate:.3f}",
        )
    return out
