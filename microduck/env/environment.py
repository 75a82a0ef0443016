"""MicroDuckEnv: a batch of ducks as one TorchRL environment. The order of operations, no formulas."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import mujoco
import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor
from torchrl.data import Composite, Unbounded
from torchrl.envs import EnvBase

from hardware import contract, rotations
from hardware.errors import ConfigError, DuckError
from microduck import metrics, scene
from microduck.env import diagnostics, privileged, specs
from microduck.env.actions import checked
from microduck.env.episode import Episodes
from microduck.env.local_classes import LocalClasses
from microduck.env.measure import ALL, Rows, Senses
from microduck.env.options import EnvOptions
from microduck.env.pixels import Pictures
from microduck.env.randomized import Randomized, make_ducks
from microduck.env.resets import Resets, Start
from microduck.env.snapshots import Snapshots
from microduck.env.task_methods import TaskMethods
from microduck.env.task_rows import TaskRows
from microduck.env.torch_threads import on_one_thread
from microduck.env.torchrl_names import TorchRLConstants, translate
from microduck.physics.base import Physics
from microduck.physics.model import load_model
from microduck.physics.native import NativePhysics, native_model
from microduck.rewards import Features
from microduck.tasks import MicroDuckTask

_log = logging.getLogger(__name__)


class MicroDuckEnv(TaskMethods, Snapshots, Randomized, TorchRLConstants, EnvBase, metaclass=LocalClasses):
    """A batch of ducks, each on one task of a library for an episode.

    The interface is that of TorchRL's MicroDuckEnv, whose keyword arguments are accepted under their names.
    The batch shape is always (num_envs,).

    Args:
        microduck_root: another scene than the built-in duck; see `microduck.scene.resolve_scene`.
        tasks: rows or a library; None for the default tracking row.
        options: settings as one table.
        settings: single settings by name, in place of those of `options`; `EnvOptions` has all of them, and
            `microduck.env.torchrl_names` those of TorchRL.

    Attributes:
        tasks: the library, (num_tasks,).
        options: the settings in force.
        physics: the simulations.
        ducks: what differs between them; `randomized` tells it by name.
        features: what the rewards of the last step were made of; see `microduck.rewards.features`.
        divergences: simulations that diverged so far; each is terminated with its step and logged.

    Raises:
        TaskError: the library is not valid.
        ConfigError: a setting does not exist or is out of range, or the scene is no duck.
        ContractError: the layout does not exist.
        SceneError: the scene cannot be found.
    """

    step = on_one_thread(EnvBase.step)
    reset = on_one_thread(EnvBase.reset)
    step_and_maybe_reset = on_one_thread(EnvBase.step_and_maybe_reset)
    _has_frame_skip = True  # physics takes the substeps; TorchRL must not repeat actions
    _supports_set_state = True
    resolve_scene = staticmethod(scene.resolve_scene)
    trajectory_metrics = staticmethod(metrics.trajectory_metrics)

    def __init__(
        self,
        microduck_root: str | Path | None = None,
        *,
        tasks: Sequence[MicroDuckTask] | MicroDuckTask | None = None,
        options: EnvOptions | None = None,
        **settings: Any,
    ) -> None:
        base = options or EnvOptions()
        self.options = options = base.with_settings(translate(settings, base))
        super().__init__(device=options.torch_device, batch_size=torch.Size([options.num_envs]))
        # A copy: terms that are registered or removed later do not change this environment.
        self._terms = self.REWARD_TERMS.copy()
        self.tasks = self.stack_tasks(tasks)
        path = scene.resolve_scene(microduck_root, root=options.root, download=options.download)
        self.scene = None if path == scene.BUILT_IN else path
        self._action_map = contract.ActionMap(
            torch.zeros(1, device=options.torch_device), options.action_scale
        )
        self.divergences = 0
        self._adopt(_make_physics(options, self.scene))
        self.set_seed(int(torch.randint(2**31, ())) if options.seed is None else options.seed)

    def _adopt(self, physics: Physics) -> None:
        """Simulate with `physics` from now on."""
        self.physics, self.num_envs = physics, physics.num_envs
        self._every = torch.arange(physics.num_envs, device=physics.device)
        self._senses = Senses(physics, self._action_map)
        self._rows = TaskRows(self.tasks, self._terms, physics.num_envs, physics.device)
        self._resets = Resets(self._rows, self.options, physics.stand_qpos, self.tasks.names)
        self.ducks = make_ducks(self.options, physics, self._resets.generator)
        self._properties = privileged.Properties(physics.device)
        self.episodes = Episodes.new(physics.num_envs, physics.device)
        self._pictures = Pictures(self.options, self.scene)
        self._seen = TensorDict({}, batch_size=[physics.num_envs], device=physics.device)
        self.features = Features({}, {})
        self._make_specs()

    def _make_specs(self) -> None:
        count, device = self.num_envs, self.options.torch_device
        carried = specs.carried(self._rows.low, self._rows.high, count)
        given = specs.observation(self.options, list(self._terms), count)
        again = {name: spec.clone() for name, spec in carried.items()}
        self.observation_spec = Composite(**given, **again, shape=(count,), device=device)
        self.state_spec = Composite(**carried, shape=(count,), device=device)
        self.action_spec = specs.action(count, device)
        self.reward_spec = Unbounded(shape=(count, 1), device=device)
        self.full_done_spec = specs.flags(count, device)

    def __repr__(self) -> str:
        """Return what is simulated, at a glance."""
        tasks = ", ".join(self.tasks.names)
        return f"{type(self).__name__}(num_envs={self.num_envs}, layout={self.layout!r}, tasks=[{tasks}])"

    @property
    def layout(self) -> str:
        """Observation layout of `hardware.contract`."""
        return self.options.layout

    @property
    def action_scale(self) -> float:
        """Joint travel for an action of 1 [rad]."""
        return self.options.action_scale

    @property
    def max_episode_steps(self) -> int:
        """Control steps after which an episode is truncated."""
        return self.options.max_episode_steps

    @property
    def diagnostics(self) -> bool:
        """Whether the `diagnostic_*` keys are given."""
        return self.options.diagnostics

    @property
    def scene_path(self) -> Path:
        """File of the scene."""
        return self.scene or scene.BUILT_IN

    @property
    def frame_skip(self) -> int:
        """Physics steps in one control period."""
        return self.physics.substeps

    @property
    def dt(self) -> float:
        """Control period [s]."""
        return contract.CONTROL_PERIOD_S

    @property
    def mj_model(self) -> mujoco.MjModel:
        """The compiled model."""
        return self.physics.model

    @property
    def rng_state(self) -> Tensor:
        """State of the generator that resets draw from; may be set."""
        return self._resets.generator.get_state()

    @rng_state.setter
    def rng_state(self, state: Tensor) -> None:
        self._resets.generator.set_state(state)

    def _set_seed(self, seed: int | None) -> None:
        self._resets.generator.manual_seed(0 if seed is None else int(seed))

    # Reset ----------------------------------------------------------------------------------------------

    def _input_td_has_state(self, tensordict: TensorDictBase | None) -> bool:
        # A task or command in a reset is a request and no simulator state, whatever `state_spec` says.
        return tensordict is not None and {"qpos", "qvel"} <= set(tensordict.keys())

    def _reset(self, tensordict: TensorDictBase | None = None, **kwargs: Any) -> TensorDictBase:
        ids = self._asked(tensordict)
        if len(ids):
            given = {} if tensordict is None else tensordict
            self._begin(ids, self._drawn(ids, given, bool(kwargs.get("set_state"))))
            fresh = self._first_look(ids)
            if len(ids) == self.num_envs:
                self._seen = fresh
            else:
                self._seen[ids] = fresh
        out = self._seen.clone()
        for name in specs.FLAGS:
            out.set(name, torch.zeros(self.num_envs, 1, dtype=torch.bool, device=self.physics.device))
        return out

    def _drawn(self, ids: Tensor, given: Any, set_state: bool) -> Start:
        before = self.rng_state
        try:
            return self._resets.draw(ids, given, set_state)
        except DuckError:
            self.rng_state = before  # a refused request changes nothing
            raise

    def _asked(self, tensordict: TensorDictBase | None) -> Tensor:
        """Return which ducks a reset is for."""
        mask = None if tensordict is None else tensordict.get("_reset", None)
        if mask is None:
            return self._every
        ids = mask.reshape(self.num_envs, -1).any(-1).nonzero().squeeze(-1)
        if len(ids) < self.num_envs and self._seen.is_empty():
            raise ConfigError("the first reset must be of all ducks; call reset() without `_reset` first")
        return ids

    def _begin(self, ids: Tensor, start: Start) -> None:
        episodes, rows = self.episodes, self._rows
        changed = ids[start.task_id != episodes.task_id[ids]]
        episodes.clear(ids)
        episodes.task_id[ids] = start.task_id
        rows.hand_out(changed, episodes.task_id[changed])
        self.physics.reset(ids, start.qpos, start.qvel)
        self.ducks.draw(ids)
        episodes.phase[ids] = start.phase
        episodes.wanted_heading[ids] = rotations.heading(start.qpos[:, 3:7]).float()
        self._command(ids, start.command)

    def _command(self, ids: Tensor, command: Tensor) -> None:
        """Give ducks `ids` (k,) new commands (k, 3), and the clock frequency that goes with them."""
        episodes, held = self.episodes, self._rows.held
        base, slope = held["gait_frequency_hz"][ids].double(), held["gait_frequency_per_mps"][ids].double()
        episodes.command[ids] = command
        episodes.frequency[ids] = contract.gait_frequency(base, slope, command.double())
        episodes.steps_to_draw[ids] = self._resets.steps_to_draw(held["command_resample_interval"][ids])

    def _first_look(self, ids: Tensor) -> TensorDict:
        options = self.options
        if not (options.diagnostics or options.privileged):
            motion = self._senses.motion(ids)
            out = self._observations(motion, self.ducks.begin(ids, motion), ids)
        else:
            self.physics.refresh(ids)
            features = self._senses.features(self.episodes, self.episodes.action[ids], ids)
            out = self._observations(features, self.ducks.begin(ids, features), ids)
            if options.diagnostics:
                out.update(self._diagnose(features, self._rows.weighted(features, ids), ids))
        if self.options.from_pixels:
            out.set("pixels", self._pictures.after_reset(self.physics.qpos, ids))
        return out

    # Step -----------------------------------------------------------------------------------------------

    def _step(self, tensordict: TensorDictBase) -> TensorDictBase:
        if self._seen.is_empty():
            raise ConfigError("no duck has been reset yet; call reset() before step()")
        episodes, action = self.episodes, checked(tensordict["action"], self.num_envs)
        self.physics.step(self.ducks.take_command(self._action_map.joint_targets(action)))
        broken = self._put_back_diverged()
        episodes.steps += 1
        episodes.advance_clock()
        episodes.wanted_heading += episodes.command[:, 2] * contract.CONTROL_PERIOD_S
        self.features = features = self._senses.features(episodes, action)
        features["fallen"] = features["fallen"] | broken
        weighted = self._rows.weighted(features)
        features.seal()
        episodes.remember(features)
        sensed = self.ducks.measure(features)
        episodes.advance_heading(sensed)
        self._draw_due_commands()
        out = self._observations(features, sensed)
        if self.options.diagnostics:
            out.update(self._diagnose(features, weighted))
            out.set("diagnostic_nonfinite_failure", broken.unsqueeze(-1))
            for name in diagnostics.WHEREABOUTS:  # a duck that was put back has not travelled
                out[name][broken] = self._seen[name][broken]
        if self.options.from_pixels:
            out.set("pixels", self._pictures.after_step(self.physics.qpos))
        self._seen = out.clone()
        terminated = features["fallen"].unsqueeze(-1)
        truncated = (episodes.steps >= self.options.max_episode_steps).unsqueeze(-1)
        out.set("reward", weighted.sum(-1, keepdim=True))
        out.set("terminated", terminated.clone())
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
            self.physics.reset(ids, qpos, torch.zeros_like(self.physics.qvel[ids]))
            self.physics.refresh(ids)
            self.episodes.foot_positions[ids] = self.physics.foot_positions()[ids, :, :2].float()
        return broken

    def _draw_due_commands(self) -> None:
        episodes = self.episodes
        if not self._rows.resamples:
            return
        episodes.steps_to_draw -= 1
        due = (episodes.steps_to_draw == 0).nonzero().squeeze(-1)
        if len(due):
            self._command(due, self._resets.new_commands(episodes.task_id[due]))

    def _observations(
        self, features: Mapping[str, Tensor], sensed: Mapping[str, Tensor], rows: Rows = ALL
    ) -> TensorDict:
        episodes = self.episodes
        command = episodes.command[rows].clone()
        clock = contract.GaitClock(episodes.phase[rows], episodes.elapsed[rows])
        out = {
            "command": command[:, :2],
            "yaw_rate_command": command[:, 2:],
            "task_id": episodes.task_id[rows].unsqueeze(-1).clone(),
            "fallen": features["fallen"].unsqueeze(-1).clone(),
        }
        signals = {
            **features,
            "linear_velocity": features["body_velocity"],
            "planar_command": command[:, :2],
            "command": command,
            "heading_error": episodes.heading_error[rows].unsqueeze(-1),
            "gait_clock": contract.clock_signal(clock).float(),
            "previous_action": episodes.action[rows],
        }
        if not self.options.pixels_only:
            out["observation"] = contract.observe(self.layout, {**signals, **sensed})
        if self.options.privileged:
            properties = self._properties(self.ducks, self._every[rows])
            out["privileged"] = privileged.privileged(signals, features, properties)
        return TensorDict(out, batch_size=command.shape[:1], device=self.physics.device)

    def _diagnose(self, features: Features, weighted: Tensor, rows: Rows = ALL) -> dict[str, Tensor]:
        found = diagnostics.motion(features, self._action_map, self.physics.time()[rows])
        found |= diagnostics.earnings(weighted, self._rows.columns, self._terms)
        found |= diagnostics.properties(self.ducks, self._every[rows])
        sound = torch.zeros_like(found["diagnostic_height_failure"])
        return {**found, "diagnostic_nonfinite_failure": sound}

    # Pictures and feet ---------------------------------------------------------------------------------

    def foot_contacts(self) -> Tensor:
        """Return which feet touch anything, left and right, (num_envs, 2) bool."""
        self.physics.refresh(self._every)
        return self.physics.contacts()

    def foot_heights(self) -> Tensor:
        """Return the heights of the left and right foot site, (num_envs, 2) [m]."""
        self.physics.refresh(self._every)
        return self.physics.foot_positions()[..., 2].float()

    def render(
        self, *, width: int | None = None, height: int | None = None, camera_id: int | str | None = None
    ) -> Tensor:
        """Return pictures of all ducks, (num_envs, height, width, 3) uint8.

        Args:
            width: width; None for `render_width` [pixel].
            height: height; None for `render_height` [pixel].
            camera_id: camera by number or name; None for the option of that name.

        Raises:
            ConfigError: the scene has no such camera, or the picture is too small or too large.
            RenderError: no picture can be made on this machine.
        """
        size = {"render_width": width, "render_height": height, "camera_id": camera_id}
        return self._pictures.draw(self.physics.qpos, **size)

    def close(self, *, raise_if_closed: bool = True) -> None:
        """Give back what pictures took."""
        self._pictures.close()
        super().close(raise_if_closed=raise_if_closed)


def _make_physics(options: EnvOptions, path: Path | None) -> Physics:
    if options.physics == "warp":
        from microduck.physics.warp import WarpPhysics  # noqa: PLC0415  (an extra, slow to import)

        model = load_model(options.physics_options, scene=path, only_motion=True)
        return WarpPhysics(options.num_envs, options.physics_options, str(options.torch_device), model)
    model = native_model(options.physics_options, path)
    return NativePhysics(options.num_envs, options.physics_options, model)
