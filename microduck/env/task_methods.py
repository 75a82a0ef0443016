"""The task library as TorchRL's users reach it: methods of the environment class."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from torch import Tensor

from microduck import tasks
from microduck.env.task_rows import TaskRows
from microduck.rewards import REWARD_TERMS, RewardRegistry
from microduck.rewards.registry import TermFunction
from microduck.tasks import MicroDuckTask


class _Params:
    """Gives the parameters of a class's own reward terms."""

    def __get__(self, instance: object, owner: type[TaskMethods]) -> dict[str, float]:
        return owner.REWARD_TERMS.params


class TaskMethods:
    """Presets, stacking and the reward registry of one environment class.

    A subclass starts with a copy of its parent's terms, or with those its body names as `REWARD_TERMS`. From
    then on neither follows the other: what is registered on one stays there.

    Attributes:
        REWARD_TERMS: the terms a row of this class weighs, by name.
        REWARD_PARAMS: their parameters with defaults.
    """

    REWARD_TERMS: ClassVar[RewardRegistry] = REWARD_TERMS
    REWARD_PARAMS: ClassVar[Any] = _Params()
    _rows: TaskRows

    @property
    def task_shares(self) -> Tensor:
        """Probability that a reset draws each task, (num_tasks,); may be set to other relative weights."""
        return self._rows.shares

    @task_shares.setter
    def task_shares(self, weights: Tensor) -> None:
        self._rows.set_shares(weights)

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if TaskMethods in cls.__bases__:
            return  # the environment itself, whose terms are the toolkit's
        own: Mapping[str, Any] | None = cls.__dict__.get("REWARD_TERMS")
        cls.REWARD_TERMS = RewardRegistry.of(cls.REWARD_TERMS if own is None else own)
        if "REWARD_PARAMS" in cls.__dict__:
            del cls.REWARD_PARAMS  # TorchRL's subclasses copy both tables; here one follows the other

    @classmethod
    def register_reward(
        cls, name: str, *, weight: float = 0.0, per_second: bool = True, **params: float
    ) -> Callable[[TermFunction], TermFunction]:
        """Return a decorator that adds a term to this class; see `RewardRegistry.register`."""
        return cls.REWARD_TERMS.register(name, weight=weight, per_second=per_second, **params)

    @classmethod
    def unregister_reward(cls, name: str) -> None:
        """Take a term from this class; see `RewardRegistry.unregister`."""
        cls.REWARD_TERMS.unregister(name)

    @classmethod
    def make_task(
        cls, command_low: Sequence[float], command_high: Sequence[float], *, name: str, **overrides: Any
    ) -> MicroDuckTask:
        """Return one row; see `microduck.tasks.make_task`."""
        return tasks.make_task(command_low, command_high, name=name, registry=cls.REWARD_TERMS, **overrides)

    @classmethod
    def stack_tasks(cls, rows: Sequence[MicroDuckTask] | MicroDuckTask | None = None) -> MicroDuckTask:
        """Return a validated library; see `microduck.tasks.stack_tasks`."""
        return tasks.stack_tasks(rows, registry=cls.REWARD_TERMS)

    @classmethod
    def tracking_task(cls, speed: float = 0.03, **overrides: Any) -> MicroDuckTask:
        """Return a row that walks forward at one speed [m/s]."""
        return tasks.tracking_task(speed, registry=cls.REWARD_TERMS, **overrides)

    @classmethod
    def standing_task(cls, **overrides: Any) -> MicroDuckTask:
        """Return a row that stands still."""
        return tasks.standing_task(registry=cls.REWARD_TERMS, **overrides)

    @classmethod
    def speed_range_task(cls, low: float = 0.1, high: float = 0.3, **overrides: Any) -> MicroDuckTask:
        """Return a row that walks forward at any speed of an interval [m/s]."""
        return tasks.speed_range_task(low, high, registry=cls.REWARD_TERMS, **overrides)

    @classmethod
    def sidestep_task(cls, speed: float = 0.15, **overrides: Any) -> MicroDuckTask:
        """Return a row that walks sideways, to the left with a positive speed [m/s]."""
        return tasks.sidestep_task(speed, registry=cls.REWARD_TERMS, **overrides)

    @classmethod
    def turning_task(cls, rate: float = 1.0, **overrides: Any) -> MicroDuckTask:
        """Return a row that turns in place, to the left with a positive rate [rad/s]."""
        return tasks.turning_task(rate, registry=cls.REWARD_TERMS, **overrides)

    @classmethod
    def jump_task(cls, speed: float = 0.0, **overrides: Any) -> MicroDuckTask:
        """Return a row that hops, in place or forward at a speed [m/s]."""
        return tasks.jump_task(speed, registry=cls.REWARD_TERMS, **overrides)
