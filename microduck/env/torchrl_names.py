"""What TorchRL's MicroDuckEnv calls things, so that code written for it needs one changed import."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import torch

from hardware import contract, joints
from hardware.errors import ConfigError
from microduck.env import diagnostics
from microduck.env.measure import MIN_HEIGHT_RATIO
from microduck.env.options import RESET_NOISE, EnvOptions
from microduck.physics.model_parts import FOOT_GEOMS, FOOT_SITES
from microduck.rewards import COMMAND_THRESHOLD, MIN_UPRIGHT, REWARD_TERMS
from microduck.scene import download, resolve
from microduck.tasks import presets, task

_log = logging.getLogger(__name__)
Taker = Callable[[dict[str, Any], Any, EnvOptions], None]
"""Puts the value of a name of TorchRL's among our settings."""
_POSITIONS = contract.offsets("state")


_HOOKS = (
    "_build_obs_dict",
    "_compute_done",
    "_compute_reward",
    "_make_obs",
    "_patch_xml",
    "_prepare_ctrl",
    "_sample_initial_state",
    "reward_features",
)
"""Methods that subclasses of TorchRL's environment override, and that nothing calls here."""


class TorchRLConstants:
    """Class constants of TorchRL's MicroDuckEnv, for layout `state`. They are for reading."""

    FRAME_SKIP: ClassVar[int] = 4
    RESET_NOISE_SCALE: ClassVar[float] = RESET_NOISE
    ROOT_ENV_VAR: ClassVar[str] = resolve.ROOT_VARIABLE
    SCENE_FILE: ClassVar[str] = download.SCENE_FILE
    NUM_JOINTS: ClassVar[int] = joints.NUM_JOINTS
    JOINT_NAMES: ClassVar[tuple[str, ...]] = joints.JOINT_NAMES
    FOOT_GEOMS: ClassVar[tuple[str, str]] = FOOT_GEOMS
    FOOT_SITES: ClassVar[tuple[str, str]] = FOOT_SITES
    OBSERVATION_DIM: ClassVar[int] = contract.width("state")
    BODY_VELOCITY_START: ClassVar[int] = _POSITIONS["linear_velocity"]
    COMMAND_START: ClassVar[int] = _POSITIONS["planar_command"]
    GAIT_PHASE_START: ClassVar[int] = _POSITIONS["gait_clock"]
    COMMAND_THRESHOLD: ClassVar[float] = COMMAND_THRESHOLD
    GAIT_PHASE_OFFSET: ClassVar[float] = contract.GAIT_PHASE_OFFSET
    GAIT_RAMP_DURATION_S: ClassVar[float] = contract.GAIT_RAMP_S
    GAIT_FREQUENCY_HZ: ClassVar[float] = task.GAIT_FREQUENCY_HZ
    GAIT_TERMS: ClassVar[tuple[str, ...]] = presets.GAIT_TERMS
    POSE_STD_STANDING: ClassVar[float] = presets.POSE_STD_STANDING
    POSE_STD_MOVING: ClassVar[float] = presets.POSE_STD_MOVING
    TURN_WEIGHT: ClassVar[float] = presets.TURN_WEIGHT
    JUMP_WEIGHT: ClassVar[float] = presets.HOP_WEIGHTS["jump"]
    LAUNCH_WEIGHT: ClassVar[float] = presets.HOP_WEIGHTS["launch"]
    HOP_RHYTHM_WEIGHT: ClassVar[float] = presets.HOP_WEIGHTS["hop_rhythm"]
    HOP_FREQUENCY_HZ: ClassVar[float] = presets.HOP_FREQUENCY_HZ
    DRIFT_WEIGHT: ClassVar[float] = presets.DRIFT_WEIGHT
    FALL_PENALTY: ClassVar[float] = -REWARD_TERMS["termination"].weight
    MIN_HEIGHT_RATIO: ClassVar[float] = MIN_HEIGHT_RATIO
    MIN_UPRIGHT: ClassVar[float] = MIN_UPRIGHT
    POSE_DIAGNOSTICS: ClassVar[tuple[str, ...]] = diagnostics.NUMBERS
    FAILURE_DIAGNOSTICS: ClassVar[tuple[str, ...]] = diagnostics.FAILURES

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        for name, value in cls.__dict__.items():
            if name in _HOOKS:
                raise ConfigError(
                    f"{cls.__name__} overrides {name}, which nothing calls here; register a reward term, or "
                    "wrap the environment in a transform"
                )
            if name.isupper() and value != vars(TorchRLConstants).get(name, value):
                raise ConfigError(
                    f"{cls.__name__} sets {name} to {value!r}, which nothing would follow; give task rows "
                    "and settings their own values instead"
                )


def translate(settings: Mapping[str, Any], base: EnvOptions) -> dict[str, Any]:
    """Return settings of `EnvOptions` with those among them that TorchRL names otherwise.

    Args:
        settings: by our names and TorchRL's.
        base: the options that they are to change.

    Raises:
        ConfigError: what TorchRL's name asks for does not exist here; says what to do instead.
    """
    given, theirs = dict(settings), [name for name in _NAMES if name in settings]
    for name in theirs:
        _NAMES[name](given, given.pop(name), base)
    return given


def _backend(given: dict[str, Any], value: Any, base: EnvOptions) -> None:
    names = {"mujoco": "native", "native": "native", "warp": "warp"}
    if value not in names:
        raise ConfigError(
            f"backend is {value!r}; choose 'mujoco' (physics='native', the fastest on a CPU) or 'warp'"
        )
    given["physics"] = names[value]


def _num_workers(given: dict[str, Any], value: Any, base: EnvOptions) -> None:
    if value in (None, 1):
        return
    count = given.get("num_envs", base.num_envs)
    if count != 1:
        raise ConfigError(f"num_workers is {value} and num_envs {count}; give num_envs alone")
    given["num_envs"] = value
    _log.info("num_workers=%s is not needed: one process steps all ducks; taken as num_envs", value)


def _parallel(given: dict[str, Any], value: Any, base: EnvOptions) -> None:
    if value is not None:
        _log.info("parallel=%s is not needed: one process steps all ducks on every core", value)


def _physics_option(name: str) -> Taker:
    def take(given: dict[str, Any], value: Any, base: EnvOptions) -> None:
        if value is not None:
            options = given.get("physics_options", base.physics_options)
            given["physics_options"] = replace(options, **{name: value})

    return take


def _reset_noise(given: dict[str, Any], value: Any, base: EnvOptions) -> None:
    if value is not None:
        given["reset_noise_scale"] = value


def _dtype(given: dict[str, Any], value: Any, base: EnvOptions) -> None:
    if value is not torch.float32:
        raise ConfigError(
            f"dtype is {value}; observations are torch.float32, as a policy on the robot gets them"
        )


def _compile(given: dict[str, Any], value: Any, base: EnvOptions) -> None:
    if value:
        raise ConfigError(
            "compile_step is for TorchRL's mujoco-torch; leave it out, physics here is compiled C"
        )


def _scene_override(given: dict[str, Any], value: Any, base: EnvOptions) -> None:
    raise ConfigError(f"xml_path and patch_xml do not exist here; give the scene {value!r} as microduck_root")


_NAMES: dict[str, Taker] = {
    "backend": _backend,
    "num_workers": _num_workers,
    "parallel": _parallel,
    "frame_skip": _physics_option("substeps"),
    "low_cost_collisions": _physics_option("low_cost_collisions"),
    "reset_noise_scale": _reset_noise,
    "dtype": _dtype,
    "compile_step": _compile,
    "compile_kwargs": _compile,
    "xml_path": _scene_override,
    "patch_xml": _scene_override,
}
