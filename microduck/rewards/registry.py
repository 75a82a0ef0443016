"""The registry of reward terms: names, functions, default weights and parameters."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from numbers import Real

from torch import Tensor

from hardware.errors import TaskError
from microduck.rewards.features import Features

Params = Mapping[str, Tensor]
"""Parameters by name, each (num_envs,): those of every environment's task row."""
TermFunction = Callable[[Features, Params], Tensor]


@dataclass(frozen=True)
class RewardTerm:
    """A registered term.

    Attributes:
        function: features and parameters to a value, (num_envs,).
        weight: default weight of a new row.
        per_second: whether the value is multiplied by the control period.
        params: its parameters and their defaults.
    """

    function: TermFunction
    weight: float
    per_second: bool
    params: Mapping[str, float]


class RewardRegistry(Mapping[str, RewardTerm]):
    """Reward terms by name, in the order of a row's weights.

    To add terms to one environment class only, register them on a `copy`.
    """

    def __init__(self) -> None:
        self._terms: dict[str, RewardTerm] = {}

    def __getitem__(self, name: str) -> RewardTerm:
        return self._terms[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._terms)

    def __len__(self) -> int:
        return len(self._terms)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self)})"

    @property
    def weights(self) -> dict[str, float]:
        """The default weight of every term."""
        return {name: term.weight for name, term in self.items()}

    @property
    def params(self) -> dict[str, float]:
        """Every parameter of the terms with its default."""
        return {name: value for term in self.values() for name, value in term.params.items()}

    @classmethod
    def of(cls, terms: Mapping[str, RewardTerm]) -> RewardRegistry:
        """Return a registry of terms that another one, or a dictionary, holds by name."""
        made = cls()
        made._terms.update(terms)
        return made

    def copy(self) -> RewardRegistry:
        """Return a registry of the same terms; what happens to one leaves the other alone."""
        return self.of(self)

    def register(
        self, name: str, *, weight: float = 0.0, per_second: bool = True, **params: float
    ) -> Callable[[TermFunction], TermFunction]:
        """Return a decorator that appends a term.

        Rows made before weigh it zero; make a row anew to give it a weight. The function must not write into
        what it gets.

        Args:
            name: name of the term, new and without commas.
            weight: default weight of rows made from now on.
            per_second: whether the value is multiplied by the control period; False for what happens once.
            params: parameters a row may override, with their defaults; names new, values finite.

        Raises:
            TaskError: the name is not valid, it or a parameter is taken, or a number is not finite.
        """
        self._check(name, weight, params)

        def append(function: TermFunction) -> TermFunction:
            defaults = {key: float(value) for key, value in params.items()}
            self._terms[name] = RewardTerm(function, float(weight), per_second, defaults)
            return function

        return append

    def _check(self, name: str, weight: float, params: Mapping[str, float]) -> None:
        # Rows store the names of their terms joined by commas.
        if not isinstance(name, str) or not name or "," in name:
            raise TaskError(f"{name!r} cannot name a reward term; give a string, not empty, without commas")
        if name in self:
            raise TaskError(
                f"reward term {name!r} is registered already; choose another name, or unregister it first"
            )
        for key in params:
            if not key.isidentifier():
                raise TaskError(f"{key!r} cannot name a parameter of term {name!r}; give a Python name")
        for key in params.keys() & self.params.keys():
            raise TaskError(f"parameter {key!r} of term {name!r} belongs to another; choose another name")
        for key, value in {"weight": weight, **params}.items():
            if not isinstance(value, Real) or not math.isfinite(value):
                raise TaskError(f"{key} of term {name!r} is {value!r}; it must be a finite number")

    def unregister(self, name: str) -> None:
        """Remove a term and its parameters; a term that reads them as well must go first.

        Rows that still weigh it are refused from then on.

        Raises:
            TaskError: no term has that name.
        """
        if name not in self:
            raise TaskError(f"no reward term is named {name!r}; the terms are {list(self)}")
        del self._terms[name]


REWARD_TERMS = RewardRegistry()
"""The toolkit's terms: TorchRL's in its order, then our own."""

register_reward = REWARD_TERMS.register
