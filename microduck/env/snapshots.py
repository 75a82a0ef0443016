"""Taking some ducks out of an environment, as they are now, and putting them back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor

from hardware.errors import ConfigError
from microduck.env.episode import Episodes
from microduck.env.options import EnvOptions
from microduck.env.pixels import Pictures
from microduck.env.task_rows import TaskRows
from microduck.physics.base import Physics
from microduck.randomization.ducks import NominalDucks
from microduck.tasks import MicroDuckTask

_ALIKE = (
    "physics",
    "physics_options",
    "layout",
    "action_scale",
    "diagnostics",
    "privileged",
    "randomization",
    "from_pixels",
)
"""Settings that the state of a duck depends on."""


def whole_ids(index: Any, count: int) -> Tensor:
    """Return the ducks that an index of a batch of `count` means, (k,) int64.

    Raises:
        IndexError: there is no such duck, or none at all.
        TypeError: the index is a mask or holds no whole numbers.
    """
    if isinstance(index, slice):
        chosen = torch.tensor(range(count)[index], dtype=torch.int64)  # torch knows no negative steps
    else:
        chosen = _numbers(index).reshape(-1)
    if not len(chosen):
        raise IndexError(f"index {index!r} means none of the {count} ducks; choose 0 to {count - 1}")
    outside = chosen[(chosen < -count) | (chosen >= count)]
    if len(outside):
        raise IndexError(f"duck {int(outside[0])} does not exist; choose 0 to {count - 1}")
    return chosen % count


def _numbers(index: Any) -> Tensor:
    try:
        numbers = torch.as_tensor(index)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"index {index!r} is no number, slice or list of numbers") from error
    if numbers.dtype == torch.bool or numbers.is_floating_point() or numbers.is_complex() or numbers.ndim > 1:
        raise TypeError(f"index {index!r} must be a whole number, a slice or a list of whole numbers")
    return numbers.to(torch.int64).cpu()


def check_alike(target: Any, source: Any, count: int) -> None:
    """Refuse a source whose ducks `target` could not go on with.

    Raises:
        TypeError: `source` is another kind of environment.
        ConfigError: the two differ in what the state depends on, or in the number of ducks.
    """
    if not isinstance(source, type(target)):
        raise TypeError(f"a {type(source).__name__} cannot be written into a {type(target).__name__}")
    if source.num_envs != count:
        raise ConfigError(f"the source has {source.num_envs} ducks where the index means {count}")
    for name in _ALIKE:
        ours, theirs = getattr(target.options, name), getattr(source.options, name)
        if ours != theirs:
            raise ConfigError(f"{name} is {theirs!r} in the source and {ours!r} here; make them alike")
    if source.scene != target.scene:
        raise ConfigError(f"the source's scene is {source.scene} and {target.scene} here; make them alike")
    if not same_library(source.tasks, target.tasks):
        raise ConfigError(
            f"the source's tasks are {source.tasks.names} and {target.tasks.names} here, or their numbers "
            "differ; build both from one library"
        )
    if source._seen.is_empty():
        raise ConfigError("the source has not been reset yet; reset it first")


def same_library(one: MicroDuckTask, other: MicroDuckTask) -> bool:
    """Return whether two libraries hold the same rows."""
    if one.names != other.names or one.reward_terms != other.reward_terms:
        return False
    ours, theirs = (library.to_tensordict().flatten_keys(".") for library in (one, other))
    tensors = [key for key, value in ours.items() if isinstance(value, Tensor)]
    return all(key in theirs.keys() and torch.equal(ours[key], theirs[key]) for key in tensors)  # noqa: SIM118


class Snapshots:
    """The part of an environment that hands out and takes in the state of ducks."""

    physics: Physics
    episodes: Episodes
    ducks: NominalDucks
    num_envs: int
    batch_size: torch.Size
    options: EnvOptions
    rng_state: Tensor
    _every: Tensor
    _rows: TaskRows
    _seen: TensorDictBase
    _pictures: Pictures
    _adopt: Callable[[Physics], None]
    set_spec_lock_: Callable[..., Any]

    def get_state(self) -> TensorDict:
        """Return a copy of the simulator's qpos (num_envs, 21), qvel (num_envs, 20) and time (num_envs,)."""
        state = {"qpos": self.physics.qpos.clone(), "qvel": self.physics.qvel.clone()}
        return TensorDict({**state, "time": self.physics.time()}, batch_size=self.batch_size)

    def __getitem__(self, index: Any) -> Any:
        """Return an independent environment that goes on from the present state of some ducks.

        Args:
            index: a number, a slice, or numbers.

        Raises:
            IndexError: no duck has that number.
            TypeError: the index is a mask or no number.
        """
        ids = whole_ids(index, self.num_envs).to(self.physics.device)
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin.options = replace(self.options, num_envs=len(ids))
        for name in ("_input_spec", "_output_spec"):
            twin.__dict__.pop(name)  # shared with this environment until then
        twin.__dict__.update(_cache={}, _is_spec_locked=False)
        twin.batch_size = torch.Size([len(ids)])
        twin._adopt(self.physics.like(len(ids)))
        twin.rng_state = self.rng_state
        twin.ducks.strength = self.ducks.strength
        twin._take(twin._every, self, ids)
        twin.set_spec_lock_()
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """Return an independent environment that goes on from the present state of all ducks."""
        return self[:]

    def __reduce__(self) -> Any:
        raise TypeError(
            "an environment cannot be pickled; hand over a function that makes it, as ParallelEnv takes"
        )

    def __setitem__(self, index: Any, source: Any) -> None:
        """Write the state of another environment into some ducks, such as one that `env[index]` returned.

        Resets and commands within an episode are drawn from one generator for the whole batch; its state is
        taken over as well when every duck is written.

        Raises:
            TypeError: `source` is no MicroDuckEnv, or the index a mask.
            IndexError: no duck has that number.
            ConfigError: the two environments are not alike, or `source` has another number of ducks.
        """
        ids = whole_ids(index, self.num_envs).to(self.physics.device)
        check_alike(self, source, len(ids))
        if len(ids.unique()) < len(ids):
            raise ConfigError(f"index {index!r} means a duck twice; name each once")
        if self._seen.is_empty() and len(ids) < self.num_envs:
            raise ConfigError("this environment has not been reset yet; reset it first, or write all ducks")
        self._take(ids, source, source._every)
        if len(ids) == self.num_envs:
            self.rng_state = source.rng_state

    def _take(self, ids: Tensor, source: Any, rows: Tensor) -> None:
        """Put ducks `rows` (k,) of `source` in the place of ducks `ids` (k,)."""
        self.physics.load(ids, source.physics.save(rows))
        self.ducks.load(ids, source.ducks.save(rows))
        self.episodes.put(ids, source.episodes.take(rows))
        self._rows.hand_out(ids, self.episodes.task_id[ids])
        self._pictures.take(ids, source._pictures, rows)
        seen = source._seen[rows]
        if self._seen.is_empty():
            self._seen = seen.clone()  # for its keys: then every duck is written
        if not seen.is_empty():
            self._seen[ids] = seen
