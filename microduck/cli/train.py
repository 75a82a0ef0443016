"""`microduck train` and `microduck resume`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import tyro

from hardware.errors import ConfigError
from microduck.cli.console import asked_to_stop, console
from microduck.cli.progress import Bar
from microduck.learning.config import TrainConfig, save_config

if TYPE_CHECKING:
    from microduck.learning.log import LogRow
    from microduck.learning.train import Trainer


def train(
    run: tyro.conf.Positional[Path], config: tyro.conf.OmitArgPrefixes[TrainConfig] = TrainConfig()
) -> None:
    """Train a skill policy in a new folder. Ctrl-C saves it; `microduck resume` goes on.

    Args:
        run: folder of the run.
        config: the training's numbers.
    """
    from microduck.learning.run_folder import RunFolder
    from microduck.learning.train import Trainer

    _train(Trainer.start(RunFolder(run), config))


def resume(
    run: tyro.conf.Positional[Path], minutes: float | None = None, transitions: int | None = None
) -> None:
    """Go on with a run at its last checkpoint.

    Args:
        run: folder of the run.
        minutes: new limit of the whole run's training time [min]; the run's own unless given.
        transitions: new limit of the whole run's control steps, 0 for none; the run's own unless given.
    """
    from microduck.learning.run_folder import RunFolder
    from microduck.learning.train import Trainer

    folder = RunFolder(run)
    given = {"minutes": minutes, "transitions": transitions}
    limits = {name: value for name, value in given.items() if value is not None}
    config = replace(folder.config(), **limits)  # type: ignore[arg-type]
    trainer = Trainer.resume(folder, config)
    if trainer.progress() >= 1:
        raise ConfigError(
            f"the run has reached its limit at {trainer.seconds / 60:.1f} minutes and "
            f"{trainer.transitions:,} transitions; give more --minutes or --transitions"
        )
    save_config(config, folder.config_file)
    console.print(f"going on at {trainer.seconds / 60:.1f} minutes, {trainer.transitions:,} transitions")
    _train(trainer)


def _train(trainer: Trainer) -> None:
    def show(row: LogRow) -> None:
        bar.show(
            trainer.progress(),
            f"{row.transitions / 1e6:.2f} M steps  {row.rate:,.0f}/s  "
            f"episode {row.episode_length / 50:.1f} s  off {row.speed_error:.3f} m/s",
        )

    folder = trainer.run_folder.path
    with Bar("training", 1.0) as bar, asked_to_stop() as stopped:
        trainer.train(show, stopped)
        if stopped():
            console.print(f"saved {trainer.transitions:,} transitions; microduck resume {folder} goes on")
            raise KeyboardInterrupt
    minutes = trainer.seconds / 60
    console.print(f"trained {trainer.transitions:,} transitions in {minutes:.1f} minutes -> {folder}")
