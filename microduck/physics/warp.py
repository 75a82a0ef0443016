"""Many ducks on mujoco-warp: kernels step them all at once, and on a GPU their state never leaves it."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import mujoco
import torch
from torch import Tensor

from hardware.errors import ConfigError
from microduck.physics.base import MAX_SPEED, STATE
from microduck.physics.model import load_model
from microduck.physics.model_parts import FOOT_SENSORS, FOOT_SITES, HEAD_SITE, SELF_SENSOR, STAND_KEY
from microduck.physics.options import PhysicsOptions
from microduck.physics.servo_bank import COLUMNS, ServoBank

CONTACTS = 64
"""Room for the contacts of one duck. The built-in one stands on 16 and made 18 at most while it tumbled, over
100,000 states. A duck that finds no room counts as diverged."""
_SHOWN = ("sensordata", "site_xpos", "site_xmat", "actuator_force")
"""What the derived quantities are read from."""


class WarpPhysics:
    """A batch of simulations of one model; see `microduck.physics.base.Physics`.

    All numbers are float32. On the CPU equal inputs give equal bits; a GPU sums in any order, so there runs
    agree to rounding only. The first run on a machine compiles the kernels, which takes a minute.

    Args:
        num_envs: number of simulations.
        options: how they are stepped.
        device: "cpu", "cuda" or "cuda:1" and so on.
        model: what `load_model` gives for motion only; None for the built-in duck.

    Raises:
        ConfigError: mujoco-warp is not installed, there is no such device, the scene holds something that
            mujoco-warp cannot simulate, or the servos are not "position".
    """

    def __init__(
        self,
        num_envs: int,
        options: PhysicsOptions,
        device: str = "cpu",
        model: mujoco.MjModel | None = None,
    ) -> None:
        if options.actuator != "position":
            raise ConfigError(
                f"actuator is {options.actuator!r}, but mujoco-warp here has servos of kind 'position' only; "
                "use physics='native'"
            )
        self._wp, self._mjw = _libraries()
        self.num_envs, self._options = num_envs, options
        self.model = load_model(options, only_motion=True) if model is None else model
        self.substeps = options.substeps_for(self.model.opt.timestep)
        home = _find_device(self._wp, device)
        self._losses = _losses(self._mjw)
        with self._wp.ScopedDevice(home):
            self._warp_model = self._put_model(home)
            self._data = self._mjw.make_data(
                self.model, nworld=num_envs, nconmax=CONTACTS, njmax=constraint_rows(self.model)
            )
            self._bind()
            self._step_graph = self._capture(self._substeps)
            self._look_graph = self._capture(self._look)
        self._wp.synchronize_device(home)
        self.servos: ServoBank = _SharedServos(self)
        every = torch.arange(num_envs, device=self.device)
        self.reset(every, self.stand_qpos.expand(num_envs, -1), torch.zeros_like(self.qvel))

    def _put_model(self, home: Any) -> Any:
        try:
            model = self._mjw.put_model(self.model)
        except (NotImplementedError, ValueError) as error:
            raise ConfigError(
                f"mujoco-warp cannot simulate this scene: {error}; change the scene or use physics='native'"
            ) from error
        model.opt.warn_overflow = self._losses
        # Else the solver runs all its iterations, converged or not.
        model.opt.graph_conditional = home.is_cpu or self._wp.is_conditional_graph_supported()
        return model

    def _bind(self) -> None:
        model = self.model
        self._state = {name: self._view(name) for name in STATE if getattr(self._data, name).size}
        self._overflow = self._view("overflow")
        self._leftovers = [self._wp.to_torch(field) for field in (self._data.efc.J, self._data.efc.D)]
        self._shown = [self._view(name) for name in _SHOWN]
        self._sensors, self._site_position, self._site_rotation, self._torques = self._shown
        self.qpos, self.qvel, self._ctrl = (self._state[name] for name in ("qpos", "qvel", "ctrl"))
        self.device = self.qpos.device
        self._start = self._stand_state()
        self.stand_qpos = self._start["qpos"]
        # Index tensors on the device: a list would be copied there at every look.
        self._contact_columns = self._index([model.sensor(name).adr[0] for name in FOOT_SENSORS])
        self._feet = self._index([model.site(name).id for name in FOOT_SITES])
        self._self_column = int(model.sensor(SELF_SENSOR).adr[0])
        self._head = model.site(HEAD_SITE).id

    def _view(self, name: str) -> Tensor:
        view: Tensor = self._wp.to_torch(getattr(self._data, name))
        return view

    def _index(self, numbers: list[int]) -> Tensor:
        return torch.tensor(numbers, dtype=torch.long, device=self.device)

    def _stand_state(self) -> dict[str, Tensor]:
        """Return what MuJoCo itself resets to at STAND, one row of `STATE` each."""
        data = mujoco.MjData(self.model)
        mujoco.mj_resetDataKeyframe(self.model, data, self.model.keyframe(STAND_KEY).id)
        data.time = 0.0
        return {name: torch.as_tensor(getattr(data, name)).to(self.qpos) for name in self._state}

    def _capture(self, work: Callable[[], None]) -> Any:
        """Record `work`, some 100 kernel launches, as one; the run before it compiles the kernels."""
        work()
        with self._wp.ScopedCapture() as capture:
            work()
        return capture.graph

    def _substeps(self) -> None:
        for _ in range(self.substeps):
            self._mjw.step(self._warp_model, self._data)

    def _look(self) -> None:
        """Compute what `_SHOWN` names: a forward pass without its solver, at a fifth of the cost."""
        mjw, model, data = self._mjw, self._warp_model, self._data
        mjw.kinematics(model, data)
        mjw.com_pos(model, data)
        mjw.collision(model, data)
        mjw.transmission(model, data)
        mjw.fwd_velocity(model, data)
        mjw.fwd_actuation(model, data)
        data.sensordata.zero_()
        # A contact sensor is read at the stage that its data needs.
        mjw.sensor_pos(model, data)
        mjw.sensor_vel(model, data)
        mjw.sensor_acc(model, data, skip_rne_postconstraint=True)

    def _launch(self, graph: Any) -> None:
        # On torch's own stream, so that kernels wait for what torch wrote, and torch for them.
        stream = self._wp.stream_from_torch(self.device) if self.device.type == "cuda" else None
        self._wp.capture_launch(graph, stream=stream)

    def step(self, targets: Tensor) -> None:
        """Advance one control period with joint targets (num_envs, 14) [rad]."""
        self._ctrl.copy_(targets)
        self._launch(self._step_graph)

    def reset(self, ids: Tensor, qpos: Tensor, qvel: Tensor) -> None:
        """Put simulations `ids` (k,) at time 0, STAND's controls, and the given qpos and qvel."""
        self._forget(ids)
        for name, field in self._state.items():
            field[ids] = self._start[name]
        self.qpos[ids] = qpos.to(self.qpos)
        self.qvel[ids] = qvel.to(self.qvel)

    def _forget(self, ids: Tensor) -> None:
        """Clear what mujoco-warp keeps of simulations `ids` beyond their state.

        Its solver multiplies rows of past constraints by zero; a NaN in one of them would outlive any reset.
        """
        self._overflow[ids] = 0
        for field in self._leftovers:
            field[ids] = 0.0

    def refresh(self, ids: Tensor) -> None:
        """Compute contacts, sites and torques of simulations `ids` (k,) at their present state."""
        kept = [field.clone() for field in self._shown]
        self._launch(self._look_graph)
        chosen = torch.zeros(self.num_envs, dtype=torch.bool, device=self.device)
        chosen[ids] = True
        for field, before in zip(self._shown, kept, strict=True):
            rows = chosen.view(-1, *[1] * (field.dim() - 1))
            field.copy_(torch.where(rows, field, before))

    def time(self) -> Tensor:
        """Return the time simulated since each reset, (num_envs,) [s]."""
        return self._state["time"].clone()

    def contacts(self) -> Tensor:
        """Return whether the left and right foot touch anything, (num_envs, 2) bool."""
        return self._sensors[:, self._contact_columns] > 0

    def foot_positions(self) -> Tensor:
        """Return the world positions of the left and right foot site, (num_envs, 2, 3) [m]."""
        return self._site_position[:, self._feet]

    def foot_rotations(self) -> Tensor:
        """Return the world rotation matrices of the left and right foot site, (num_envs, 2, 3, 3)."""
        return self._site_rotation[:, self._feet]

    def gaze(self) -> Tensor:
        """Return the direction the head looks in, world frame, (num_envs, 3): minus z of site `head_imu`."""
        return -self._site_rotation[:, self._head, :, 2]

    def joint_torques(self) -> Tensor:
        """Return the torques of the actuators, (num_envs, 14) [N m]."""
        return self._torques.clone()

    def self_contacts(self) -> Tensor:
        """Return the number of contacts between parts of each duck, (num_envs,)."""
        return self._sensors[:, self._self_column].clone()

    def diverged(self) -> Tensor:
        """Return which simulations hold a NaN, an infinity or an impossible speed, (num_envs,) bool.

        Also those that found no room for a contact; mujoco-warp prints which room was too small.
        """
        fast = ~(self.qvel.abs().amax(-1) <= MAX_SPEED)  # NaN compares false
        lost = (self._overflow & self._losses) != 0
        return fast | ~torch.isfinite(self.qpos.sum(-1)) | lost

    def expand(self, name: str) -> Tensor:
        """Refuse: one model serves all simulations.

        Raises:
            ConfigError: always.
        """
        raise ConfigError(f"{name} cannot differ between ducks on mujoco-warp; use physics='native'")

    def expanded(self, name: str) -> bool:
        """Return False: one model serves all simulations."""
        return False

    def derived(self, name: str) -> Tensor:
        """Return a quantity that mujoco-warp derives, (num_envs, ...), for reading; it follows each step."""
        return self._view(name)

    def set_constants(self, ids: Tensor) -> None:
        """Do nothing: without `expand`, what the model derives from masses and inertias stands."""

    def save(self, ids: Tensor) -> dict[str, Tensor]:
        """Return everything that decides the future of simulations `ids` (k,), solver warm start included."""
        return {name: field[ids] for name, field in self._state.items()} | {"overflow": self._overflow[ids]}

    def load(self, ids: Tensor, saved: dict[str, Tensor]) -> None:
        """Put what `save` returned into simulations `ids` (k,) and compute what derives from it."""
        self._forget(ids)
        for name, field in self._state.items():
            field[ids] = saved[name]
        self._overflow[ids] = saved["overflow"]
        self.refresh(ids)

    def like(self, num_envs: int) -> WarpPhysics:
        """Return a new batch of the same model, options and device with `num_envs` simulations."""
        return WarpPhysics(num_envs, self._options, str(self.device), self.model)


class _SharedServos(ServoBank):
    """The servos of a model that all simulations share."""

    _fixed = dict.fromkeys(COLUMNS, "mujoco-warp here has one model for all ducks; use physics='native'")


def constraint_rows(model: mujoco.MjModel) -> int:
    """Return the rows that `CONTACTS` contacts and all other constraints of a model can fill together."""
    dims = int(model.geom_condim.max())
    pyramid = model.opt.cone == mujoco.mjtCone.mjCONE_PYRAMIDAL and dims > 1
    rows_each = 2 * (dims - 1) if pyramid else dims
    friction = int((model.dof_frictionloss > 0).sum() + (model.tendon_frictionloss > 0).sum())
    limits = int(model.jnt_limited.sum() + model.tendon_limited.sum())
    return CONTACTS * rows_each + friction + limits + 6 * model.neq


def _libraries() -> tuple[Any, Any]:
    """Import warp and mujoco-warp, which only this backend needs."""
    try:
        warp, mujoco_warp = import_module("warp"), import_module("mujoco_warp")
    except ImportError as error:
        raise ConfigError(
            f"physics='warp' needs mujoco-warp ({error}); run: pip install 'microduck-toolkit[warp]'"
        ) from error
    # Warp reports each of its 50 modules on standard output as it loads.
    warp.config.log_level = max(warp.config.log_level, warp.LOG_WARNING)
    return warp, mujoco_warp


def _losses(mujoco_warp: Any) -> int:
    """Return the overflow bits of a lost contact: all but iteration limits, where MuJoCo stops too."""
    kinds = mujoco_warp.OverflowType
    return int(kinds.ALL & ~(kinds.ITERATIONS | kinds.LS_ITERATIONS))


def _find_device(warp: Any, name: str) -> Any:
    """Return Warp's device of that name."""
    known = ["cpu"]
    if warp.is_cuda_available() and torch.cuda.is_available():
        known += ["cuda", *(device.alias for device in warp.get_cuda_devices())]
    if name not in known:
        raise ConfigError(
            f"device is {name!r}; choose one of {known}. A GPU needs its driver and a CUDA build of torch"
        )
    return warp.get_device(name)
