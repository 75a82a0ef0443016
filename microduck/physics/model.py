"""From a scene file and options to a compiled model that physics, pictures and the virtual duck share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import mujoco

from hardware.contract import CONTROL_PERIOD_S
from hardware.errors import ConfigError
from microduck.physics.model_parts import check, complete, set_stand_controls
from microduck.physics.options import PhysicsOptions
from microduck.physics.servo_model import fit_motors, make_room_for_delays
from microduck.physics.slim import slim
from microduck.scene import BUILT_IN

_SOLE_BIT = 1
"""Contact bit of the soles in duck.xml."""

_BOXED_CLASSES = ("collision", "self_collision_only")
"""Classes of the upstream model's geoms that touch things; its soles have some ten thousand edges."""


def load_model(
    options: PhysicsOptions = PhysicsOptions(), *, scene: Path | None = None, only_motion: bool = False
) -> mujoco.MjModel:
    """Compile a scene, with the timestep and solver that the options ask for.

    A scene that lacks them gets contact sensors of the feet and of the duck with itself, and the site
    `head_imu`, looking straight ahead.

    Args:
        options: what to change of the scene's own settings.
        scene: the MJCF; the built-in duck unless given.
        only_motion: leave out what pictures and an IMU need, and motion does not; see `slim`.

    Raises:
        ConfigError: the scene cannot be read, is not the duck that the contract describes, or has a timestep
            of which no whole number makes a control period.
    """
    path = BUILT_IN if scene is None else scene.resolve()
    with _naming(path):
        spec = mujoco.MjSpec.from_file(str(path))
    _apply(spec, options)
    if path == BUILT_IN and not options.body_contacts:
        spec.geom("floor").conaffinity = _SOLE_BIT
    if options.low_cost_collisions:
        _box_meshes(spec)
    if only_motion:
        slim(spec)
    with _naming(path):
        model = spec.compile()
    check(model, path)
    if options.actuator == "xl330":
        fit_motors(spec)
    if complete(spec, model) or options.actuator == "xl330":
        with _naming(path):
            model = spec.compile()
    set_stand_controls(model)
    return model


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    try:
        yield
    except (ValueError, mujoco.FatalError) as problem:
        raise ConfigError(f"MuJoCo cannot load {path}: {problem}") from problem


def _apply(spec: mujoco.MjSpec, options: PhysicsOptions) -> None:
    spec.option.timestep = CONTROL_PERIOD_S / options.substeps_for(spec.option.timestep)
    if options.integrator is not None:
        spec.option.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{options.integrator.upper()}")
    if options.iterations is not None:
        spec.option.iterations = options.iterations
    make_room_for_delays(spec)


def _box_meshes(spec: mujoco.MjSpec) -> None:
    """Put boxes around the meshes that touch things, as TorchRL does."""
    for geom in spec.geoms:
        if geom.type == mujoco.mjtGeom.mjGEOM_MESH and geom.classname.name in _BOXED_CLASSES:
            geom.type = mujoco.mjtGeom.mjGEOM_BOX
            spec.compiler.fitaabb = True  # the box that encloses the mesh, not the one of equal inertia
