"""`microduck train` and `microduck resume`."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Annotated

import tyro

from hardware.errors import ConfigError, TermNotRegisteredError
from microduck.cli.console import asked_to_stop, console
from microduck.cli.progress import Bar
from microduck.learning.config import TrainConfig

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from microduck.learning.log import LogRow, ScoreRow
    from microduck.learning.ranks import Ranks
    from microduck.learning.train import Trainer


class _Given(TrainConfig):
    """Numbers as they were typed. `train` checks them, whose errors come without the parser's own words."""

    def __post_init__(self) -> None:
        pass


def train(
    run: tyro.conf.Positional[Path],
    config: Annotated[TrainConfig, tyro.conf.arg(name="", constructor=_Given)] = TrainConfig(),
) -> None:
    """Train a skill policy in a new folder. Ctrl-C saves it; `microduck resume` goes on.

    Args:
        run: folder of the run.
        config: the training's numbers.
    """
    checked = TrainConfig(**vars(config))

    from microduck.learning.ranks import joined
    from microduck.learning.run_folder import RunFolder
    from microduck.learning.train import Trainer

    given = {name: value for name, value in vars(checked).items() if value != getattr(TrainConfig, name)}
    lines = f"Trainer.start(RunFolder(Path({str(run)!r})), TrainConfig({_arguments(given)})).train(print)"
    with joined() as ranks:
        with _own_terms_explained(lines):
            trainer = Trainer.start(RunFolder(run), checked, ranks)
        _train(trainer, ranks)


def resume(
    run: tyro.conf.Positional[Path],
    minutes: float | None = None,
    transitions: int | None = None,
    num_envs: int | None = None,
    steps: int | None = None,
    wandb: str | None = None,
) -> None:
    """Go on with a run at its last checkpoint. What is not given stays as the run has it.

    Args:
        run: folder of the run.
        minutes: new limit of the whole run's training time [min].
        transitions: new limit of the whole run's control steps; 0 for none.
        num_envs: ducks stepped at once.
        steps: control steps per duck between two updates.
        wandb: project at Weights & Biases to log to; empty for none.
    """
    from microduck.learning.ranks import joined
    from microduck.learning.run_folder import RunFolder
    from microduck.learning.train import Trainer

    folder = RunFolder(run)
    limits = {"minutes": minutes, "transitions": transitions}
    given = {**limits, "num_envs": num_envs, "steps": steps, "wandb": wandb}
    changes = {name: value for name, value in given.items() if value is not None}
    config = replace(folder.config(), **changes)  # type: ignore[arg-type]
    with joined() as ranks:
        with _own_terms_explained(_resuming(run, changes)):
            trainer = Trainer.resume(folder, config, ranks)
        if trainer.progress() >= 1:
            raise ConfigError(
                f"the run has reached its limit at {trainer.seconds / 60:.1f} minutes and "
                f"{trainer.transitions:,} transitions; give more --minutes or --transitions"
            )
        console.quiet = not ranks.first
        _tell(f"going on at {trainer.seconds / 60:.1f} minutes, {trainer.transitions:,} transitions")
        if ranks.first:
            folder.save_config(config)
        _train(trainer, ranks)


def _arguments(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in values.items())


def _resuming(run: Path, changes: Mapping[str, object]) -> str:
    """Return the lines of Python that resume a run."""
    config = f"replace(run.config(), {_arguments(changes)})" if changes else "run.config()"
    lines = ["from dataclasses import replace"] if changes else []
    lines += [f"run = RunFolder(Path({str(run)!r}))", f"Trainer.resume(run, {config}).train(print)"]
    return "\n".join(lines)


@contextmanager
def _own_terms_explained(lines: str) -> Iterator[None]:
    """Name the lines that do the same in a script, where a library has terms that only a script knows."""
    try:
        yield
    except TermNotRegisteredError as error:
        raise TermNotRegisteredError(
            f"{error}. The command line knows no terms of your own: in the script that registers them, put\n"
            f"{indent(lines, '    ')}\nin the place of what trains there"
        ) from error


def _train(trainer: Trainer, ranks: Ranks) -> None:
    def show(row: LogRow) -> None:
        bar.show(trainer.progress(), str(row))

    def show_check(row: ScoreRow) -> None:
        _tell(_told(row, trainer.env.tasks.names))

    folder = trainer.run_folder.path
    console.quiet = not ranks.first
    with Bar("training", 1.0) as bar, asked_to_stop() as stopped:
        trainer.train(show, stopped, show_check)
        if stopped():
            _tell(f"saved {trainer.transitions:,} transitions; microduck resume {folder} goes on")
            raise KeyboardInterrupt
    minutes = trainer.seconds / 60
    _tell(f"trained {trainer.transitions:,} transitions in {minutes:.1f} minutes -> {folder}")


def _tell(text: str) -> None:
    # Names of folders and tasks may look like markup.
    console.print(text, markup=False, soft_wrap=True)


def _told(row: ScoreRow, names: Sequence[str]) -> str:
    worst = min(row.scores)
    mean = sum(row.scores) / len(row.scores)
    return (
        f"checked at {row.seconds / 60:.1f} min: worst task {names[row.scores.index(worst)]} {worst:.2f}, "
        f"mean {mean:.2f}{', the best so far' if row.best else ''}"
    )
