"""Transforms that decide which task each duck is on: by weights, fixed, or by how well the tasks go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor
from torchrl.envs import EnvBase, Transform, TransformedEnv

from hardware.errors import TaskError
from microduck.env import MicroDuckEnv
from microduck.tasks.shares import TaskIds, Weights, check_weights, places, shares


class MicroDuckTaskSampler(Transform):
    """Chooses a task for each environment at every reset, in place of the environment's own draw.

    The interface is that of TorchRL's MicroDuckTaskSampler, and tasks may also be named. `probabilities` may
    be edited in place while training, or with `set_weights`. A task given to `reset` is overruled.

    Args:
        weights: relative shares; give these or `task_ids`.
        task_ids: one fixed task per environment.
        task_id_key: key that is written into the reset's tensordict.
        seed: seed of the sampler's own generator. None draws with the generator of the MicroDuckEnv that it
            is appended to, so that `env.set_seed` decides; elsewhere with torch's global one.

    Attributes:
        probabilities: share of each task, (num_tasks,); None if fixed, or if named and not appended yet.
        task_ids: the fixed tasks, (num_envs,) int64; None if drawn, or if named and not appended yet.
        rng: the sampler's own generator, or None.

    Raises:
        TaskError: weights or tasks are not valid; when appended, also that they do not fit the library.
        TaskNameError: when appended: the library has no task of that name.
    """

    probabilities: Tensor | None
    task_ids: Tensor | None

    def __init__(
        self,
        weights: Weights | None = None,
        *,
        task_ids: TaskIds | None = None,
        task_id_key: Any = "task_id",
        seed: int | None = None,
    ) -> None:
        super().__init__(in_keys=[], out_keys=[], in_keys_inv=[], out_keys_inv=[])
        if (weights is None) == (task_ids is None):
            raise TaskError("give exactly one of weights and task_ids")
        self.task_id_key = task_id_key
        self.rng = None if seed is None else torch.Generator().manual_seed(seed)
        self.register_buffer("probabilities", None)
        self.register_buffer("task_ids", None)
        self._weights, self._ids = weights, task_ids
        if not self._by_name():
            self._settle(())

    @staticmethod
    def fixed(task_ids: TaskIds, *, task_id_key: Any = "task_id") -> MicroDuckTaskSampler:
        """Return a sampler that keeps environment `i` on `task_ids[i]`."""
        return MicroDuckTaskSampler(task_ids=task_ids, task_id_key=task_id_key)

    def set_weights(self, weights: Weights) -> None:
        """Draw by other weights from the next reset on.

        Raises:
            TaskError: they are not valid or do not fit the library, or the tasks are fixed.
        """
        if self._ids is not None:
            raise TaskError("the tasks are fixed; make a sampler with weights to change them")
        overwrite(known(self.probabilities), weights, self._names())

    def sample(self, batch_size: Sequence[int]) -> Tensor:
        """Return tasks for a batch, (*batch_size, 1) int64.

        Raises:
            TaskError: another number of tasks is fixed, the names are not known yet, or `probabilities` were
                edited to what cannot be drawn from.
        """
        size = torch.Size(batch_size)
        if self.task_ids is not None:
            _check_count(self.task_ids, size.numel())
            return self.task_ids.clone().reshape(*size, 1)
        probabilities = known(self.probabilities)
        check_weights(probabilities)
        return self._draw(probabilities, size.numel()).reshape(*size, 1)

    def _draw(self, probabilities: Tensor, count: int) -> Tensor:
        env = self._base_env()
        if self.rng is not None or not isinstance(env, MicroDuckEnv):
            return torch.multinomial(probabilities.cpu(), count, replacement=True, generator=self.rng)
        shared = torch.Generator(env.device)
        shared.set_state(env.rng_state)
        drawn = torch.multinomial(probabilities.to(env.device), count, replacement=True, generator=shared)
        env.rng_state = shared.get_state()
        return drawn

    # The environment ------------------------------------------------------------------------------------

    def set_container(self, container: Any) -> None:
        """Fit the sampler to the environment that it is appended to.

        Raises:
            TaskError: weights or tasks do not fit its library.
        """
        super().set_container(container)
        env = self._base_env()
        if env is not None:
            self._bind(env)

    def _bind(self, env: EnvBase) -> None:
        if self.probabilities is None and self.task_ids is None:
            if not isinstance(env, MicroDuckEnv):
                raise TaskError(
                    f"{type(env).__name__} does not show the names of its tasks; append the sampler to the "
                    "MicroDuckEnv inside it, or give numbers"
                )
            self._settle(env.tasks.names)
        count = _task_count(env, self.task_id_key)
        if self.probabilities is not None and len(self.probabilities) != count:
            raise TaskError(f"{len(self.probabilities)} weights do not fit a library of {count} tasks")
        if self.task_ids is not None:
            _check_count(self.task_ids, env.batch_size.numel())
            if int(self.task_ids.max()) >= count:
                raise TaskError(f"task {int(self.task_ids.max())} does not exist; choose 0 to {count - 1}")

    def _base_env(self) -> EnvBase | None:
        """Return what steps the simulator, or None while the sampler is in no environment."""
        env = self.parent
        while isinstance(env, TransformedEnv):
            env = env.base_env
        return env

    def _names(self) -> tuple[str, ...]:
        env = self._base_env()
        return env.tasks.names if isinstance(env, MicroDuckEnv) else ()

    def _by_name(self) -> bool:
        named_ids = self._ids is not None and any(isinstance(entry, str) for entry in self._ids)
        return named_ids or isinstance(self._weights, Mapping)

    def _settle(self, names: tuple[str, ...]) -> None:
        """Turn what the user gave into numbers, by the library's names where needed."""
        if self._weights is not None:
            self.probabilities = shares(self._weights, names)
        elif self._ids is not None:
            self.task_ids = places(self._ids, names)

    def _reset_env_preprocess(self, tensordict: TensorDictBase | None) -> TensorDictBase:
        if tensordict is not None and self.task_id_key in tensordict:
            # It comes from an episode's step: the command in it belongs to the task before.
            tensordict = tensordict.exclude("command", "yaw_rate_command")
        env = self.parent
        if tensordict is None:
            tensordict = TensorDict(batch_size=env.batch_size, device=env.device)
        return tensordict.set(self.task_id_key, self.sample(env.batch_size))

    def _call(self, next_tensordict: TensorDictBase) -> TensorDictBase:
        return next_tensordict

    def forward(self, tensordict: TensorDictBase) -> TensorDictBase:
        """Return the tensordict as it is: tasks are drawn at resets only."""
        return tensordict

    # State ----------------------------------------------------------------------------------------------

    def get_extra_state(self) -> Tensor:
        """Return the state of the sampler's own generator, empty without one; part of `state_dict`."""
        return torch.empty(0, dtype=torch.uint8) if self.rng is None else self.rng.get_state()

    def set_extra_state(self, state: Tensor) -> None:
        """Put back what `get_extra_state` returned."""
        self.rng = torch.Generator().set_state(state) if len(state) else None


def known(values: Tensor | None) -> Tensor:
    """Return values that an appended sampler has.

    Raises:
        TaskError: the sampler is not appended yet.
    """
    if values is None:
        raise TaskError("the sampler does not know the tasks yet; append it to an environment first")
    return values


def overwrite(old: Tensor, weights: Weights, names: Sequence[str]) -> None:
    """Put the shares of other weights in the place of `old`, (num_tasks,).

    Raises:
        TaskError: they are not valid or do not fit the library.
    """
    new = shares(weights, names)
    if len(new) != len(old):
        raise TaskError(f"{len(new)} weights do not fit {len(old)} tasks; give one for each")
    old.copy_(new)


def _check_count(task_ids: Tensor, num_envs: int) -> None:
    if len(task_ids) != num_envs:
        raise TaskError(f"{len(task_ids)} tasks are fixed for {num_envs} environments; give one for each")


def _task_count(env: EnvBase, key: Any) -> int:
    spec = env.full_state_spec.get(key, None)
    if spec is None:
        raise TaskError(
            f"{type(env).__name__} takes no {key!r} at a reset; append the sampler to a MicroDuckEnv"
        )
    return int(spec.space.n)
