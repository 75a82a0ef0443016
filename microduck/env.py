"""MicroDuckEnv: a batch of ducks as one TorchRL environment. The order of operations, no formulas."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from math import pi
from typing import Any

import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor
from torchrl.data import Bounded, Categorical, Composite, Unbounded
from torchrl.envs import EnvBase

from hardware import contract, rotations
from hardware.errors import ConfigError, TaskError
from hardware.joints import NUM_JOINTS
from microduck import tasks as task_library
from microduck.physics.native import NativePhysics, PhysicsOptions
from microduck.rewards import MIN_UPRIGHT, REWARD_TERMS, Features, derive
from microduck.tasks import MicroDuckTask

_log = logging.getLogger(__name__)

RESET_NOISE = 0.02
"""Uniform noise of the base position [m] and of every velocity [m/s, rad/s] at reset."""
MAX_ACTION = 1e6
"""Largest action that is taken; it is clipped to 1 for the joints, but costs its square."""
Rows = Tensor | slice
"""Some environments of the batch."""
ALL = slice(None)
MIN_HEIGHT_RATIO = 0.55
"""Base height below which a duck has fallen, as a part of its height in STAND."""


def _check_action(action: Tensor) -> None:
    wrong = ~(action.abs().amax(-1) <= MAX_ACTION)  # NaN compares false
    if bool(wrong.any()):
        rows = wrong.nonzero().squeeze(-1).tolist()
        raise ConfigError(
            f"action of environments {rows} is not finite or beyond +-{MAX_ACTION:g}; check the policy"
        )


class MicroDuckEnv(EnvBase):
    """A batch of ducks, each on one task of a library for an episode.

    The interface is that of TorchRL's MicroDuckEnv; the batch shape is always (num_envs,).

    Args:
        tasks: rows or a library; None for the default tracking row.
        num_envs: number of ducks.
        layout: observation layout of `hardware.contract`.
        action_scale: joint travel for an action of 1 [rad].
        max_episode_steps: control steps after which an episode is truncated.
        physics: substeps and threads.
        seed: seed of resets; None draws one.

    Attributes:
        features: what the rewards of the last step were made of; see `microduck.rewards`.
        divergences: simulations that diverged so far; each is terminated with its step and logged.

    Raises:
        TaskError: the library is not valid.
        ConfigError: a number is out of range.
        ContractError: the layout does not exist.
    """

    tracking_task = staticmethod(task_library.tracking_task)
    standing_task = staticmethod(task_library.standing_task)
    speed_range_task = staticmethod(task_library.speed_range_task)
    make_task = staticmethod(task_library.make_task)
    stack_tasks = staticmethod(task_library.stack_tasks)

    def __init__(  # noqa: PLR0913  (the names are those of TorchRL)
        self,
        tasks: Sequence[MicroDuckTask] | MicroDuckTask | None = None,
        *,
        num_envs: int = 1,
        layout: str = "state",
        action_scale: float = 0.35,
        max_episode_steps: int = 500,
        physics: PhysicsOptions = PhysicsOptions(),
        seed: int | None = None,
    ) -> None:
        for name, value in (("num_envs", num_envs), ("max_episode_steps", max_episode_steps)):
            if value < 1:
                raise ConfigError(f"{name} is {value}; it must be 1 or more")
        if not 0 < action_scale <= pi:
            raise ConfigError(f"action_scale is {action_scale} rad; it must be in (0, pi]")
        super().__init__(device=torch.device("cpu"), batch_size=torch.Size([num_envs]))
        self.num_envs, self.layout, self.max_episode_steps = num_envs, layout, max_episode_steps
        self.tasks = task_library.stack_tasks(tasks)
        self._boxes = task_library.command_box(self.tasks)
        # Terms that no row weighs are not computed.
        used = (self.tasks.reward_weights != 0).any(0).tolist()
        self._terms = [name for name, weighed in zip(REWARD_TERMS, used, strict=True) if weighed]
        self._action_map = contract.ActionMap(torch.zeros(1), action_scale)
        self.physics = NativePhysics(num_envs, physics)
        self._stand_height = float(self.physics.stand_qpos[2])
        self._make_specs()
        self._make_state()
        self.set_seed(torch.seed() % 2**31 if seed is None else seed)

    @property
    def action_scale(self) -> float:
        """Joint travel for an action of 1 [rad]."""
        return self._action_map.scale

    def _make_specs(self) -> None:
        n, count = self.num_envs, self.tasks.batch_size[0]
        low, high = (corner.clone() for corner in self._boxes)
        box = Bounded(low.amin(0).expand(n, 3)[:, :2], high.amax(0).expand(n, 3)[:, :2], shape=(n, 2))
        turn = Bounded(low.amin(0).expand(n, 3)[:, 2:], high.amax(0).expand(n, 3)[:, 2:], shape=(n, 1))
        carried = {
            "task_id": Categorical(count, shape=(n, 1), dtype=torch.int64),
            "command": box,
            "yaw_rate_command": turn,
        }
        self.observation_spec = Composite(
            observation=Unbounded(shape=(n, contract.width(self.layout))),
            fallen=Categorical(2, shape=(n, 1), dtype=torch.bool),
            **{key: spec.clone() for key, spec in carried.items()},
            shape=(n,),
        )
        # In the state spec as well, so that wrappers hand a task or command given at reset through.
        self.state_spec = Composite(**carried, shape=(n,))
        self.action_spec = Bounded(-contract.ACTION_CLIP, contract.ACTION_CLIP, shape=(n, NUM_JOINTS))
        self.reward_spec = Unbounded(shape=(n, 1))
        flags = ("done", "terminated", "truncated")
        self.full_done_spec = Composite(
            **{key: Categorical(2, shape=(n, 1), dtype=torch.bool) for key in flags}, shape=(n,)
        )

    def _make_state(self) -> None:
        n = self.num_envs
        self._task_id = torch.zeros(n, dtype=torch.int64)
        self._command = torch.zeros(n, 3)
        self._action = torch.zeros(n, NUM_JOINTS)
        self._steps = torch.zeros(n, dtype=torch.int64)
        self._clock = contract.start_clock(torch.zeros(n, dtype=torch.float64))
        self._wanted_heading = torch.zeros(n)
        self._air_time = torch.zeros(n, 2)
        self._frequency = torch.zeros(n, dtype=torch.float64)
        self._make_rows()
        self.features: Features = {}
        self._seen = TensorDict({}, batch_size=[n])
        self.divergences = 0

    def _make_rows(self) -> None:
        """Keep the library as plain tensors: gathering tensorclass rows with their names is slow."""
        terms = [REWARD_TERMS[name] for name in self._terms]
        seconds = [contract.CONTROL_PERIOD_S if term.per_second else 1.0 for term in terms]
        columns = [list(REWARD_TERMS).index(name) for name in self._terms]
        weights = self.tasks.reward_weights[:, columns] * torch.tensor(seconds)
        names = (
            "warm_start_velocity",
            "warm_start_fraction",
            "joint_reset_noise_scale",
            "gait_frequency_hz",
            "gait_frequency_per_mps",
        )
        numbers = {name: getattr(self.tasks, name) for name in names}
        self._library = {"weights": weights, **numbers, **self.tasks.params}
        self._rows = {name: column[self._task_id] for name, column in self._library.items()}

    @property
    def rng_state(self) -> Tensor:
        """State of the generator that resets draw from; may be set."""
        return self._rng.get_state()

    @rng_state.setter
    def rng_state(self, state: Tensor) -> None:
        self._rng.set_state(state)

    def _set_seed(self, seed: int | None) -> None:
        self._rng = torch.Generator().manual_seed(0 if seed is None else int(seed))

    # Reset ----------------------------------------------------------------------------------------------

    def _reset(self, tensordict: TensorDictBase | None = None, **kwargs: Any) -> TensorDictBase:
        mask = None if tensordict is None else tensordict.get("_reset", None)
        if mask is None:
            ids = torch.arange(self.num_envs)
        else:
            ids = mask.reshape(self.num_envs, -1).any(-1).nonzero().squeeze(-1)
        self._reset_rows(ids, tensordict)
        fresh = self._observations(self._sense(ids), ids)
        if len(ids) < self.num_envs:
            out = self._seen.clone()
            out[ids] = fresh
        else:
            out = fresh
        self._seen = out.copy()
        for key in ("done", "terminated", "truncated"):
            out.set(key, torch.zeros(self.num_envs, 1, dtype=torch.bool))
        return out

    def _reset_rows(self, ids: Tensor, tensordict: TensorDictBase | None) -> None:
        given = {} if tensordict is None else tensordict
        task_id = self._draw_task(ids, given)
        changed = task_id != self._task_id[ids]
        self._task_id[ids] = task_id
        if bool(changed.any()):
            self._take_rows(ids[changed])
        self._command[ids] = self._draw_command(ids, given)
        qpos, qvel = self._draw_pose(ids)
        self.physics.reset(ids.numpy(), qpos, qvel)
        for tensor in (self._action, self._steps, self._air_time, self._clock.elapsed):
            tensor[ids] = 0
        self._clock.phase[ids] = contract.GAIT_PHASE_OFFSET
        self._wanted_heading[ids] = rotations.heading(qpos[:, 3:7]).float()
        base, slope = self._rows["gait_frequency_hz"].double(), self._rows["gait_frequency_per_mps"].double()
        self._frequency = contract.gait_frequency(base, slope, self._command.double())

    def _take_rows(self, ids: Tensor) -> None:
        for name, column in self._library.items():
            self._rows[name][ids] = column[self._task_id[ids]]

    def _draw_task(self, ids: Tensor, given: Any) -> Tensor:
        if "task_id" not in given:
            return torch.multinomial(self.tasks.weight, len(ids), replacement=True, generator=self._rng)
        task_id, count = given["task_id"], self.tasks.batch_size[0]
        if task_id.is_floating_point() or task_id.numel() != self.num_envs:
            raise TaskError(
                f"task_id must hold {self.num_envs} whole numbers, one per environment; "
                f"got {task_id.dtype} of shape {tuple(task_id.shape)}"
            )
        task_id = task_id.reshape(-1)[ids]
        wrong = (task_id < 0) | (task_id >= count)
        if bool(wrong.any()):
            value = int(task_id[wrong][0])
            raise TaskError(
                f"task_id {value} does not exist; choose 0 to {count - 1}: {list(self.tasks.name)}"
            )
        return task_id.to(torch.int64)

    def _draw_command(self, ids: Tensor, given: Any) -> Tensor:
        low, high = (corner[self._task_id[ids]] for corner in self._boxes)
        command = low + (high - low) * self._uniform(len(ids), 3)
        asked = False
        for key, columns in (("command", slice(0, 2)), ("yaw_rate_command", slice(2, 3))):
            if key in given:
                shape = (self.num_envs, columns.stop - columns.start)
                if tuple(given[key].shape) != shape:
                    raise TaskError(f"{key} must have shape {shape}, not {tuple(given[key].shape)}")
                command[:, columns], asked = given[key][ids].float(), True
        if asked:
            contract.check_command(command, low, high)
        return command

    def _draw_pose(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        count, rows = len(ids), {name: column[ids] for name, column in self._rows.items()}
        qpos = self.physics.stand_qpos.repeat(count, 1)
        qpos[:, :2] += RESET_NOISE * self._signed(count, 2)
        qpos[:, 7:] += rows["joint_reset_noise_scale"].double().unsqueeze(-1) * self._signed(
            count, NUM_JOINTS
        )
        qvel = RESET_NOISE * self._signed(count, 6 + NUM_JOINTS).double()
        low, high = rows["warm_start_velocity"].unbind(-1)
        start = low + (high - low) * self._uniform(count)
        planar = self._command[ids, :2]
        speed = planar.norm(dim=-1)
        chosen = (self._uniform(count) < rows["warm_start_fraction"]) & (
            speed > task_library.COMMAND_THRESHOLD
        )
        along = torch.nn.functional.pad(planar / speed.clamp(min=1e-8).unsqueeze(-1), (0, 1))
        warm = rotations.rotate(qpos[:, 3:7], (start.unsqueeze(-1) * along).double())
        qvel[:, :3] = torch.where(chosen.unsqueeze(-1), warm, qvel[:, :3])
        return qpos, qvel

    def _uniform(self, *shape: int) -> Tensor:
        return torch.rand(shape, generator=self._rng)

    def _signed(self, *shape: int) -> Tensor:
        return 2 * self._uniform(*shape) - 1

    # Step -----------------------------------------------------------------------------------------------

    def _step(self, tensordict: TensorDictBase) -> TensorDictBase:
        action = tensordict["action"].to(torch.float32)
        _check_action(action)
        self.physics.step(self._action_map.joint_targets(action))
        broken = self._put_back_diverged()
        self._steps += 1
        self._clock = contract.advance_clock(self._clock, self._frequency)
        self._wanted_heading += self._command[:, 2] * contract.CONTROL_PERIOD_S
        features = self._measure()
        features["fallen"] |= broken
        features["action"], features["previous_action"] = action, self._action
        self._action = action.clone()
        self.features = features
        out = self._observations(features)
        self._seen = out.copy()
        terminated = features["fallen"].unsqueeze(-1)
        truncated = (self._steps >= self.max_episode_steps).unsqueeze(-1)
        out.set("reward", self._reward(features))
        out.set("terminated", terminated)
        out.set("truncated", truncated)
        out.set("done", terminated | truncated)
        return out

    def _put_back_diverged(self) -> Tensor:
        """Stand diverged ducks up again, so that no NaN reaches a learner; return which, to be terminated."""
        broken = self.physics.diverged()
        ids = broken.nonzero().squeeze(-1)
        if len(ids):
            self.divergences += len(ids)
            _log.warning("%d simulation(s) diverged and are terminated: %s", len(ids), ids.tolist())
            qpos = self.physics.stand_qpos.repeat(len(ids), 1)
            self.physics.reset(ids.numpy(), qpos, torch.zeros(len(ids), 6 + NUM_JOINTS, dtype=torch.float64))
            self.physics.refresh(ids.numpy())
        return broken

    def _sense(self, rows: Rows = ALL) -> dict[str, Tensor]:
        """Return what the observations of some rows are made of, at the present state."""
        qpos, qvel = self.physics.qpos[rows].float(), self.physics.qvel[rows].float()
        quaternion = qpos[:, 3:7]
        gravity = rotations.projected_gravity(quaternion)
        upright = (-gravity[:, 2]).clamp(-1, 1)
        return {
            "quaternion": quaternion,
            "projected_gravity": gravity,
            "body_velocity": rotations.rotate_inverse(quaternion, qvel[:, :3]),
            "world_velocity": qvel[:, :3],
            "angular_velocity": qvel[:, 3:6],
            "upright": upright,
            "base_height": qpos[:, 2],
            "joint_error": self._action_map.joint_error(qpos[:, 7:]),
            "joint_velocity": qvel[:, 6:],
            "fallen": self._fallen(qpos[:, 2], upright),
        }

    def _measure(self) -> dict[str, Tensor]:
        """Advance the air times and return what rewards and observations are made of, for all rows."""
        sensed, physics = self._sense(), self.physics
        contacts, yaw = physics.contacts(), rotations.heading(sensed["quaternion"])
        gaze = physics.gaze().float()
        ahead = rotations.rotate_inverse(sensed["quaternion"], gaze)
        measured = {
            **sensed,
            "standing_height": torch.full_like(yaw, self._stand_height),
            "heading": torch.remainder(yaw - self._wanted_heading + pi, 2 * pi) - pi,
            "head_pitch": torch.asin(gaze[:, 2].clamp(-1, 1)),
            "head_yaw": torch.atan2(ahead[:, 1], ahead[:, 0]),
            "contacts": contacts,
            "foot_heights": physics.foot_heights().float(),
            "touchdown_air_time": self._air_time * contacts,
            "gait_phase": self._clock.phase.float(),
            "command": self._command[:, :2],
            "yaw_rate_command": self._command[:, 2],
        }
        self._air_time = (self._air_time + contract.CONTROL_PERIOD_S) * ~contacts
        return derive(measured)

    def _fallen(self, height: Tensor, upright: Tensor) -> Tensor:
        low = height < MIN_HEIGHT_RATIO * self._stand_height
        return low | (upright < MIN_UPRIGHT)

    def _reward(self, features: Features) -> Tensor:
        columns = [self._value(name, features) for name in self._terms]
        return (torch.stack(columns, dim=-1) * self._rows["weights"]).sum(-1, keepdim=True)

    def _value(self, name: str, features: Features) -> Tensor:
        try:
            value = REWARD_TERMS[name].function(features, self._rows)
        except KeyError as error:
            known = sorted(features)
            raise TaskError(f"reward term {name!r} asks for {error}; features are {known}") from error
        if value.shape != (self.num_envs,):
            raise TaskError(
                f"reward term {name!r} returned shape {tuple(value.shape)}; one value per environment, "
                f"({self.num_envs},), is needed"
            )
        return value

    def _observations(self, features: Features, rows: Rows = ALL) -> TensorDict:
        command = self._command[rows].clone()
        clock = contract.GaitClock(self._clock.phase[rows], self._clock.elapsed[rows])
        signals = {
            **features,
            "linear_velocity": features["body_velocity"],
            "planar_command": command[:, :2],
            "command": command,
            "gait_clock": contract.clock_signal(clock).float(),
            "previous_action": self._action[rows],
        }
        return TensorDict(
            {
                "observation": contract.observe(self.layout, signals),
                "command": command[:, :2],
                "yaw_rate_command": command[:, 2:],
                "task_id": self._task_id[rows].unsqueeze(-1).clone(),
                "fallen": features["fallen"].unsqueeze(-1),
            },
            batch_size=command.shape[:1],
        )
