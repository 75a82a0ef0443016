"""Everything a MicroDuckEnv can be told, as one frozen table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from math import isfinite, pi
from numbers import Real
from pathlib import Path
from typing import Any

import torch

from hardware import contract
from hardware.errors import ConfigError
from microduck.checks import check_flag, check_whole
from microduck.physics.options import PhysicsOptions
from microduck.randomization.ranges import Randomization
from microduck.randomization.servo_fields import SUPPLY_PARAMETERS

BACKENDS = ("native", "warp")
"""What may simulate the ducks: MuJoCo's batch on the CPU, or MuJoCo Warp, meant for CUDA."""
RESET_NOISE = 0.02
"""TorchRL's uniform noise of the base position [m] and of every velocity [m/s, rad/s] at reset."""
MAX_PICTURE = 4096
"""Largest side of a picture [pixel]."""


@dataclass(frozen=True)
class EnvOptions:
    """Settings of an environment; every one may be given to MicroDuckEnv by its name.

    Attributes:
        num_envs: number of ducks.
        layout: observation layout of `hardware.contract`: `state` (TorchRL's) or `sensor` (what a robot has).
        action_scale: joint travel for an action of 1 [rad].
        max_episode_steps: control steps after which an episode is truncated.
        diagnostics: add the `diagnostic_*` keys.
        privileged: add the key `privileged`, what a critic may see; see `microduck.env.privileged`.
        seed: seed of the resets; None draws one.
        device: torch device of the tensors; `cpu` for native physics.
        reset_noise_scale: uniform noise of the base position [m] and of all velocities [m/s, rad/s] at reset.
        reset_yaw: most the base is turned at reset, either way [rad].
        reset_height: most the base is lifted at reset [m].
        reset_clock: start the gait clock at any phase instead of at the same one.
        randomization: ranges that each duck is drawn from at each of its resets; None for nominal ducks.
        physics: one of `BACKENDS`.
        physics_options: how physics is stepped.
        root: folder of downloaded scenes; None for the usual cache.
        download: fetch the upstream scene; see `microduck.scene.resolve_scene`.
        from_pixels: add pictures as the key `pixels`, (num_envs, height, width, 3) uint8.
        pixels_only: leave `observation` out.
        render_width: width of the pictures [pixel].
        render_height: height [pixel].
        render_every: control steps from one new picture to the next.
        camera_id: camera of the scene by number or name.

    Raises:
        ConfigError: a value is out of range.
        ContractError: the layout does not exist.
    """

    num_envs: int = 1
    layout: str = "state"
    action_scale: float = 0.35
    max_episode_steps: int = 500
    diagnostics: bool = False
    privileged: bool = False
    seed: int | None = None
    device: str | torch.device | None = None
    reset_noise_scale: float = RESET_NOISE
    reset_yaw: float = 0.0
    reset_height: float = 0.0
    reset_clock: bool = False
    randomization: Randomization | None = None
    physics: str = "native"
    physics_options: PhysicsOptions = field(default_factory=PhysicsOptions)
    root: str | Path | None = None
    download: bool | str = False
    from_pixels: bool = False
    pixels_only: bool = False
    render_width: int = 64
    render_height: int = 64
    render_every: int = 1
    camera_id: int | str = 0

    def __post_init__(self) -> None:
        self._check_types()
        contract.blocks(self.layout)
        if self.physics not in BACKENDS:
            raise ConfigError(f"physics is {self.physics!r}; choose one of {list(BACKENDS)}")
        if self.physics == "native" and self.torch_device.type != "cpu":
            raise ConfigError(f"device is {self.device}, but native physics runs on cpu; set physics='warp'")
        for name in ("num_envs", "max_episode_steps", "render_every", "render_width", "render_height"):
            check_whole(name, getattr(self, name), least=1)
        if self.seed is not None:
            check_whole("seed", self.seed, least=0)
        if not _number(self.action_scale) or not 0 < self.action_scale <= pi:
            raise ConfigError(f"action_scale is {self.action_scale!r} rad; it must be finite, in (0, pi]")
        for name, most in (("reset_noise_scale", 1.0), ("reset_yaw", pi), ("reset_height", 1.0)):
            value = getattr(self, name)
            if not _number(value) or not 0 <= value <= most:
                raise ConfigError(f"{name} is {value!r}; it must be in [0, {most:g}]")
        self._check_randomization()
        self._check_pictures()

    def _check_randomization(self) -> None:
        ranges = self.randomization
        if ranges is None:
            return
        if not isinstance(ranges, Randomization):
            raise ConfigError(
                f"randomization is {ranges!r}; give Randomization(...), or None for nominal ducks"
            )
        varied = [name for name in SUPPLY_PARAMETERS if ranges.changes(name)]
        if varied and self.physics_options.actuator == "position":
            raise ConfigError(
                f"randomization varies {varied}, which a position servo has not; set "
                f"PhysicsOptions(actuator='xl330'), or leave them out with .without({str(varied)[1:-1]})"
            )

    def _check_types(self) -> None:
        for name in ("diagnostics", "privileged", "reset_clock", "from_pixels", "pixels_only"):
            check_flag(name, getattr(self, name))
        if not isinstance(self.layout, str):
            raise ConfigError(f"layout is {self.layout!r}; choose one of {sorted(contract.LAYOUTS)}")
        if not isinstance(self.physics_options, PhysicsOptions):
            raise ConfigError(f"physics_options is {self.physics_options!r}; give PhysicsOptions(...)")
        if not isinstance(self.root, str | Path | None):
            raise ConfigError(f"root is {self.root!r}; it must be the path of a folder, or None")
        try:
            torch.device(self.device or "cpu")
        except (RuntimeError, TypeError) as error:
            raise ConfigError(
                f"device is {self.device!r}; choose cpu, or cuda with physics='warp'"
            ) from error

    def _check_pictures(self) -> None:
        if not isinstance(self.camera_id, str):
            check_whole("camera_id", self.camera_id, least=0)
        if max(self.render_width, self.render_height) > MAX_PICTURE:
            size = f"{self.render_width} x {self.render_height}"
            raise ConfigError(f"a picture of {size} is too large; {MAX_PICTURE} is the most either way")
        if self.pixels_only and not self.from_pixels:
            raise ConfigError("pixels_only is set without from_pixels; set both, or neither")

    @property
    def torch_device(self) -> torch.device:
        """The torch device of the tensors."""
        device = torch.device(self.device or "cpu")
        return torch.device("cpu") if device.type == "cpu" else device  # an index makes another device of it

    def with_settings(self, settings: Mapping[str, Any]) -> EnvOptions:
        """Return these options with some of them replaced.

        Raises:
            ConfigError: a name is no option, or see the class.
        """
        names = [entry.name for entry in fields(self)]
        unknown = sorted(settings.keys() - set(names))
        if unknown:
            raise ConfigError(f"MicroDuckEnv has no setting {unknown[0]!r}; choose from {names}")
        return replace(self, **settings)


def _number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and isfinite(value)
