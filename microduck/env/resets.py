"""What a reset draws: task, command, pose and clock; all of it checked before anything changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import pi
from typing import Any

import torch
from torch import Tensor

from hardware import contract, rotations
from hardware.errors import CommandError, TaskError
from hardware.joints import NUM_JOINTS
from microduck.env.options import EnvOptions
from microduck.env.task_rows import TaskRows
from microduck.rewards import COMMAND_THRESHOLD

_REQUESTS = {"command": slice(0, 2), "yaw_rate_command": slice(2, 3)}
"""Keys of a reset tensordict that fix parts of the command."""
_POSE_FIELDS = ("joint_reset_noise_scale", "warm_start_velocity", "warm_start_fraction")
_STATE = {"qpos": 7 + NUM_JOINTS, "qvel": 6 + NUM_JOINTS}


@dataclass
class Start:
    """How ducks begin an episode.

    Attributes:
        task_id: (k,) int64.
        command: vx, vy, yaw rate, (k, 3) [m/s, m/s, rad/s].
        qpos: (k, 21) float64 [m, quaternion w x y z, rad].
        qvel: (k, 20) float64 [m/s world, rad/s body, rad/s].
        phase: phase of the gait clock, (k,) float64 [rad].
    """

    task_id: Tensor
    command: Tensor
    qpos: Tensor
    qvel: Tensor
    phase: Tensor


class Resets:
    """Draws starts, and new commands within an episode.

    Args:
        rows: the task library.
        options: reset noise of the environment.
        stand_qpos: the STAND keyframe, (21,).
        names: names of the tasks, for messages.

    Attributes:
        generator: all draws come from it.
    """

    def __init__(
        self, rows: TaskRows, options: EnvOptions, stand_qpos: Tensor, names: tuple[str, ...]
    ) -> None:
        self._rows, self._options, self._names = rows, options, names
        self._stand = stand_qpos.double()
        self.device = options.torch_device
        self.generator = torch.Generator(self.device)

    def draw(self, ids: Tensor, given: Mapping[str, Any], set_state: bool) -> Start:
        """Return the starts of ducks `ids` (k,).

        Args:
            ids: ducks that are reset.
            given: reset tensordict, with values for the whole batch; may fix `task_id`, `command` and
                `yaw_rate_command`.
            set_state: also take `qpos` and `qvel` from it.

        Raises:
            TaskError: a request has a wrong shape or type, or names no task; or a state is not finite.
            CommandError: a command lies outside the box of its task.
        """
        task_id = self._task_id(ids, given)
        command = self._command(ids, given, task_id)
        qpos, qvel = self._pose(self._rows.of(task_id, *_POSE_FIELDS), command)
        missing = [key for key in _STATE if key not in given]
        if set_state and len(missing) == 1:
            raise TaskError(f"a state was given without {missing[0]}; give both {list(_STATE)}")
        # TorchRL's batched environments ask for a state whenever a task is given; then there is none to take.
        if set_state and not missing:
            qpos, qvel = (self._state(key, given[key], ids) for key in _STATE)
        phase = torch.full((len(ids),), contract.GAIT_PHASE_OFFSET, dtype=torch.float64, device=self.device)
        if self._options.reset_clock:
            phase = pi * self._signed(len(ids)).double()
        return Start(task_id, command, qpos, qvel, phase)

    def new_commands(self, task_id: Tensor) -> Tensor:
        """Return commands drawn in the boxes of tasks `task_id` (k,), (k, 3): uniformly, or exactly zero."""
        low, high = self._rows.low[task_id], self._rows.high[task_id]
        command = low + (high - low) * self._uniform(len(task_id), 3)
        if self._rows.draws_zeros:
            fraction = self._rows.of(task_id, "command_zero_fraction")["command_zero_fraction"]
            zero = self._uniform(len(task_id), 2) < fraction
            command.masked_fill_(zero[:, [0, 0, 1]], 0.0)  # vx and vy together
        return command

    def steps_to_draw(self, interval: Tensor) -> Tensor:
        """Return control steps until the next command, (k,), for intervals (k, 2) [s]; -1 for never."""
        if not self._rows.resamples:
            return torch.full((len(interval),), -1, device=self.device)
        low, high = interval.unbind(-1)
        seconds = low + (high - low) * self._uniform(len(interval))
        steps = (seconds / contract.CONTROL_PERIOD_S).round().clamp(min=1).to(torch.int64)
        return torch.where(high > 0, steps, -1)

    def _task_id(self, ids: Tensor, given: Mapping[str, Any]) -> Tensor:
        if "task_id" not in given:
            shares = self._rows.shares
            return torch.multinomial(shares, len(ids), replacement=True, generator=self.generator)
        task_id, envs, count = given["task_id"], self._options.num_envs, len(self._names)
        whole = not (task_id.is_floating_point() or task_id.is_complex() or task_id.dtype == torch.bool)
        if not whole or tuple(task_id.shape) not in ((envs,), (envs, 1)):
            raise TaskError(
                f"task_id must hold {envs} whole numbers, one per environment; "
                f"got {task_id.dtype} of shape {tuple(task_id.shape)}"
            )
        task_id = task_id.reshape(-1).to(self.device)[ids]
        wrong = (task_id < 0) | (task_id >= count)
        if bool(wrong.any()):
            value = int(task_id[wrong][0])
            raise TaskError(f"task_id {value} does not exist; choose 0 to {count - 1}: {list(self._names)}")
        return task_id.to(torch.int64)

    def _command(self, ids: Tensor, given: Mapping[str, Any], task_id: Tensor) -> Tensor:
        command, asked = self.new_commands(task_id), False
        for key, columns in _REQUESTS.items():
            if key in given:
                shape = (self._options.num_envs, columns.stop - columns.start)
                if tuple(given[key].shape) != shape:
                    raise TaskError(f"{key} must have shape {shape}, not {tuple(given[key].shape)}")
                command[:, columns], asked = given[key].to(self.device)[ids].float(), True
        if asked:
            self._check_commands(ids, command, task_id)
        return command

    def _check_commands(self, ids: Tensor, command: Tensor, task_id: Tensor) -> None:
        low, high = self._rows.low[task_id], self._rows.high[task_id]
        try:
            contract.check_command(command, low, high)
        except CommandError as error:
            inside = ((command >= low - 1e-6) & (command <= high + 1e-6)).all(-1)
            first = int((~inside).nonzero()[0])
            raise CommandError(
                f"{error} (environment {int(ids[first])} is on task {self._names[int(task_id[first])]!r}; "
                "give task_id as well to choose its task)"
            ) from error

    def _state(self, key: str, value: Tensor, ids: Tensor) -> Tensor:
        shape = (self._options.num_envs, _STATE[key])
        if tuple(value.shape) != shape:
            raise TaskError(f"{key} must have shape {shape}, not {tuple(value.shape)}")
        value = value.to(self.device)[ids].double()
        wrong = ~torch.isfinite(value).all(-1)
        if key == "qpos":
            wrong |= value[:, 3:7].norm(dim=-1) < 0.5  # no rotation at all
        if bool(wrong.any()):
            rows = ids[wrong].tolist()
            raise TaskError(f"{key} of environments {rows} is not finite or holds no unit quaternion")
        if key == "qpos":
            norm = value[:, 3:7].norm(dim=-1, keepdim=True)
            value[:, 3:7] /= torch.where((norm - 1).abs() > 1e-9, norm, 1.0)  # a state comes back bit for bit
        return value

    def _pose(self, rows: Mapping[str, Tensor], command: Tensor) -> tuple[Tensor, Tensor]:
        count, noise = len(command), self._options.reset_noise_scale
        qpos = self._stand.repeat(count, 1)
        qpos[:, :2] += noise * self._signed(count, 2)
        qpos[:, 7:] += rows["joint_reset_noise_scale"].double().unsqueeze(-1) * self._signed(
            count, NUM_JOINTS
        )
        qvel = noise * self._signed(count, 6 + NUM_JOINTS).double()
        if self._options.reset_height:
            qpos[:, 2] += self._options.reset_height * self._uniform(count)
        if self._options.reset_yaw:
            qpos[:, 3:7] = self._turned(qpos[:, 3:7])
        warm, chosen = self._warm_start(rows, command, qpos[:, 3:7])
        qvel[:, :3] = torch.where(chosen.unsqueeze(-1), warm, qvel[:, :3])
        return qpos, qvel

    def _turned(self, quaternion: Tensor) -> Tensor:
        half = 0.5 * self._options.reset_yaw * self._signed(len(quaternion)).double()
        zero = torch.zeros_like(half)
        return rotations.multiply(torch.stack([half.cos(), zero, zero, half.sin()], dim=-1), quaternion)

    def _warm_start(
        self, rows: Mapping[str, Tensor], command: Tensor, quaternion: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return base velocities along the commands, (k, 3) [m/s, world], and who starts with them, (k,)."""
        low, high = rows["warm_start_velocity"].unbind(-1)
        start = low + (high - low) * self._uniform(len(command))
        planar = command[:, :2]
        speed = planar.norm(dim=-1)
        chosen = (self._uniform(len(command)) < rows["warm_start_fraction"]) & (speed > COMMAND_THRESHOLD)
        along = torch.nn.functional.pad(planar / speed.clamp(min=1e-8).unsqueeze(-1), (0, 1))
        return rotations.rotate(quaternion, (start.unsqueeze(-1) * along).double()), chosen

    def _uniform(self, *shape: int) -> Tensor:
        return torch.rand(shape, generator=self.generator, device=self.device)

    def _signed(self, *shape: int) -> Tensor:
        return 2 * self._uniform(*shape) - 1
