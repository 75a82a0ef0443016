"""`microduck train`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import tyro

from hardware.errors import ConfigError
from microduck.cli.console import console
from microduck.cli.progress import Bar
from microduck.learning.config import TrainConfig, save_config


def train(
    run: tyro.conf.Positional[Path],
    config: tyro.conf.OmitArgPrefixes[TrainConfig] = TrainConfig(),
    resume: bool = False,
) -> None:
    """Train a skill policy; Ctrl-C saves it, `--resume` goes on.

    Args:
        run: folder of the run.
        config: the training's numbers.
        resume: go on with the run in the folder; of the other options only --minutes and --transitions count.
    """
    from microduck.learning.log import LogRow
    from microduck.learning.run_folder import RunFolder
    from microduck.learning.train import Trainer

    folder = RunFolder(run)
    if resume:
        limits = replace(folder.config(), minutes=config.minutes, transitions=config.transitions)
        trainer = Trainer.resume(folder, limits)
        save_config(limits, folder.config_file)
        console.print(
            f"going on at {trainer.transitions:,} transitions and {trainer.seconds / 60:.1f} minutes"
        )
        if trainer.progress() >= 1:
            raise ConfigError("the run has reached its limit; give more --minutes, or other --transitions")
    else:
        trainer = Trainer.start(folder, config)

    def show(row: LogRow) -> None:
        bar.show(
            trainer.progress(),
            f"{row.transitions / 1e6:.2f} M transitions  {row.rate:,.0f}/s  "
            f"episode {row.episode_length / 50:.1f} s  speed error {row.speed_error:.3f} m/s",
        )

    with Bar("training", 1.0) as bar:
        trainer.train(show)
    console.print(
        f"trained {trainer.transitions:,} transitions in {trainer.seconds / 60:.1f} minutes -> {run}"
    )
