"""What a training run is made of; saved with the run, and the source of the command line's options."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardware import contract
from hardware.errors import ConfigError, ContractError
from hardware.files import parse_object, read_bounded, replacing
from microduck.checks import check_flag, check_whole
from microduck.physics.options import PhysicsOptions

if TYPE_CHECKING:
    from microduck.randomization import Randomization

MAX_FILE_BYTES = 64 * 1024
"""Most a configuration's file may hold."""
NOMINAL_SHARE = 0.25
"""Part of the episodes on the nominal duck, where ducks differ."""
_MAY_BE_ZERO = {
    "randomize",
    "transitions",
    "threads",
    "seed",
    "entropy",
    "evaluate_every_minutes",
}
_AT_MOST_ONE = {"randomize", "gamma", "lmbda", "clip"}


def _check_whole(name: str, value: Any) -> None:
    check_whole(name, value, least=0 if name in _MAY_BE_ZERO else 1)


def _check_number(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConfigError(f"{name} is {value!r}; it must be a number")
    most = 1.0 if name in _AT_MOST_ONE else math.inf
    enough = value >= 0 if name in _MAY_BE_ZERO else value > 0
    if not (math.isfinite(value) and enough and value <= most):
        wanted = "0 or more" if name in _MAY_BE_ZERO else "above 0"
        raise ConfigError(f"{name} is {value}; it must be {wanted}" + (" and at most 1" if most == 1 else ""))


def _check_text(name: str, value: Any) -> None:
    if not isinstance(value, str):
        raise ConfigError(f"{name} is {value!r}; it must be a text")


def _check_folder(name: str, value: Any) -> None:
    if value is not None and not (isinstance(value, str) and value.strip()):
        raise ConfigError(f"{name} is {value!r}; it must name the folder of a run, or be left out")


_CHECKS: dict[str, Callable[[str, Any], None]] = {
    "int": _check_whole,
    "float": _check_number,
    "bool": check_flag,
    "str": _check_text,
    "str | None": _check_folder,
}
"""What a value must be, by the type of its field."""


@dataclass(frozen=True)
class TrainConfig:
    """A training run. The defaults learn to walk on two CPU cores.

    Attributes:
        library: named task library of `microduck.learning.recipes`, or the path of a saved one (`.tdz`).
        start_from: folder of a run of the same tasks whose networks to begin with, None for new ones; its
            rewards may have been others. No task leads then, and ducks differ from the start.
        layout: observation layout; `sensor` runs on the robot.
        num_envs: ducks stepped at once.
        steps: control steps per duck between two updates.
        minutes: stop after this much training time [min].
        transitions: stop after this many control steps over all ducks; 0 for no such limit.
        seed: seed of the networks, the environment and the updates.
        action_scale: joint travel for an action of 1 [rad].
        substeps: physics steps in one control period.
        actuator: servo model, `position` or `xl330`; see `microduck.physics.options`.
        randomize: how much of the full ranges the ducks are drawn from, in [0, 1]; 0 for nominal ducks, and
            more than 0 needs the actuator `xl330`. It grows from 0 in the middle of a run.
        lead: let the first task that is told to move learn alone until it does; the others start from it.
        threads: physics threads; 0 for the CPUs this process may use.
        learning_rate: Adam's first step size; adapted afterwards to hold the KL divergence.
        kl_low: KL divergence of an update under which the step size grows.
        kl_high: KL divergence over which it shrinks.
        epochs: passes over each batch.
        minibatches: parts of a batch per pass.
        gamma: discount per control step.
        lmbda: GAE's trade of bias and variance.
        clip: PPO's clipping of the probability ratio.
        entropy: weight of the entropy bonus.
        initial_std: standard deviation of the actions at the start.
        final_std: most standard deviation in the last tenth of the run; see `microduck.learning.annealing`.
        max_grad_norm: largest gradient norm of actor and critic each.
        mirror: show the learner about half of the transitions with left and right exchanged.
        save_every_minutes: most training that a crash costs [min].
        evaluate_every_minutes: training time between two checks of every task, after which tasks that lag are
            drawn more often and the policy with the best worst task is kept [min]; 0 for no checks.
        tensorboard: write TensorBoard's event files into the folder `tensorboard` of the run.
        wandb: project at Weights & Biases to log to; empty for none.

    Raises:
        ConfigError: a value is of another type or out of range.
        ContractError: the layout does not exist.
    """

    library: str = "walk"
    start_from: str | None = None
    layout: str = "sensor"
    num_envs: int = 1024
    steps: int = 24
    minutes: float = 9.0
    transitions: int = 0
    seed: int = 0
    action_scale: float = 1.0
    substeps: int = 4
    actuator: str = "position"
    randomize: float = 0.0
    lead: bool = True
    threads: int = 0
    learning_rate: float = 5e-4
    kl_low: float = 0.01
    kl_high: float = 0.025
    epochs: int = 4
    minibatches: int = 4
    gamma: float = 0.99
    lmbda: float = 0.95
    clip: float = 0.2
    entropy: float = 0.002
    initial_std: float = 1.0
    final_std: float = 0.25
    max_grad_norm: float = 1.0
    mirror: bool = True
    save_every_minutes: float = 1.0
    evaluate_every_minutes: float = 3.0
    tensorboard: bool = False
    wandb: str = ""

    def __post_init__(self) -> None:
        for field in fields(self):
            _CHECKS[str(field.type)](field.name, getattr(self, field.name))
        contract.blocks(self.layout)
        if self.kl_low > self.kl_high:
            raise ConfigError(f"kl_low is {self.kl_low}, above kl_high {self.kl_high}; give it less")
        if self.randomize and self.actuator != "xl330":
            raise ConfigError(
                f"randomize is {self.randomize}, but actuator is {self.actuator!r}; it needs xl330: "
                "add --actuator xl330"
            )
        rows = self.steps * self.num_envs
        if rows < 2 * self.minibatches:
            raise ConfigError(
                f"minibatches is {self.minibatches}; {rows} rows make {rows // 2} of two rows each"
            )

    @property
    def physics_options(self) -> PhysicsOptions:
        """How the ducks are simulated."""
        return PhysicsOptions(substeps=self.substeps, threads=self.threads or None, actuator=self.actuator)

    @property
    def randomization(self) -> Randomization | None:
        """The full ranges that most ducks are drawn from in the end, None for nominal ducks alone."""
        from microduck.randomization import Randomization  # noqa: PLC0415  (brings torch, slow to import)

        return replace(Randomization.full(), nominal_share=NOMINAL_SHARE) if self.randomize else None


def save_config(config: TrainConfig, path: Path) -> None:
    """Write the configuration as JSON."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(asdict(config), indent=2) + "\n", encoding="utf-8")


def load_config(path: Path) -> TrainConfig:
    """Read a configuration.

    Raises:
        ConfigError: the file is absent, no JSON, or holds an unknown field or a bad value.
    """
    data = parse_object(read_bounded(path, MAX_FILE_BYTES, ConfigError), str(path), ConfigError)
    unknown = sorted(data.keys() - {field.name for field in fields(TrainConfig)})
    if unknown:
        raise ConfigError(f"{path} is no training configuration of this version: {unknown} are unknown")
    if data.get("start_from") == "":  # which meant none in earlier versions
        del data["start_from"]
    try:
        return TrainConfig(**data)
    except (ConfigError, ContractError) as error:
        raise ConfigError(f"{path}: {error}") from error
