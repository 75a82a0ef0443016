"""What a scene must have to be the duck of the contract, and what is added where it lacks something."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from hardware.errors import ConfigError
from hardware.joints import HIGH, JOINT_NAMES, LOW, STAND

STAND_KEY = "STAND"
FOOT_GEOMS = ("left_foot_collision", "right_foot_collision")
FOOT_SITES = ("left_foot", "right_foot")
FOOT_SENSORS = ("left_foot_contact", "right_foot_contact")
SELF_SENSOR = "self_contacts"
HEAD_SITE = "head_imu"

SIZE = (21, 20, 14)
"""nq, nv and nu of a free base with fourteen driven hinges."""
UPRIGHT_IN_STAND = 0.9
"""Least cosine of the tilt of a scene's STAND."""
POSE_TOLERANCE = 1e-4
"""Largest difference of a STAND angle from the contract's [rad]; policies act and observe relative to it."""
RANGE_TOLERANCE = 1e-3
"""Difference of a joint's range from the contract's that is worth a warning [rad]."""

_COUNT_ONLY = [1 << int(mujoco.mjtConDataField.mjCONDATA_FOUND), 0, 1]
"""A contact sensor that reports the number of contacts and nothing of any one of them."""
_LOOKING_AHEAD = np.array([np.sqrt(0.5), 0.0, -np.sqrt(0.5), 0.0])
"""Orientation of `head_imu` in an upright duck's trunk (w, x, y, z): its -z axis points along x."""
_LOG = logging.getLogger(__name__)


def check(model: mujoco.MjModel, scene: Path) -> None:
    """Check that a model is the duck whose joints and STAND pose the contract describes.

    Joint ranges other than the contract's are logged and no more: targets stay within the contract's.

    Raises:
        ConfigError: it is not; the message says what differs.
    """
    size = (model.nq, model.nv, model.nu)
    if size != SIZE:
        raise ConfigError(f"{scene} has (nq, nv, nu) = {size}; the walking model of the duck has {SIZE}")
    _check_joints(model, scene)
    _check_stand(model, scene)
    for kind, names in ((mujoco.mjtObj.mjOBJ_GEOM, FOOT_GEOMS), (mujoco.mjtObj.mjOBJ_SITE, FOOT_SITES)):
        for name in names:
            if mujoco.mj_name2id(model, kind, name) < 0:
                raise ConfigError(
                    f"{scene} has no {mujoco.mju_type2Str(kind)} {name}; contacts and steps need it"
                )
    _warn_of_ranges(model, scene)


def complete(spec: mujoco.MjSpec, model: mujoco.MjModel) -> bool:
    """Add the sensors and the site that a scene lacks.

    Args:
        spec: the scene.
        model: the same, compiled and checked.

    Returns:
        Whether anything was added, so that `spec` must be compiled again.
    """
    wanted = _contact_sensors(model)
    for name in wanted:
        sensor = spec.sensor(name)
        if sensor is not None and sensor.type != mujoco.mjtSensor.mjSENS_CONTACT:
            raise ConfigError(f"the scene's sensor {name} is no contact sensor; rename it")
    missing = {name: ends for name, ends in wanted.items() if spec.sensor(name) is None}
    for name, ends in missing.items():
        spec.add_sensor(name=name, type=mujoco.mjtSensor.mjSENS_CONTACT, intprm=_COUNT_ONLY, **ends)
    headless = spec.site(HEAD_SITE) is None
    if headless:
        spec.joint("head_roll").parent.add_site(name=HEAD_SITE, quat=_looking_ahead(model))
    return bool(missing) or headless


def in_stand(model: mujoco.MjModel) -> mujoco.MjData:
    """Return data of a model in STAND, with where everything is."""
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, model.keyframe(STAND_KEY).id)
    mujoco.mj_kinematics(model, data)
    return data


def set_stand_controls(model: mujoco.MjModel) -> None:
    """Fill in the controls of the STAND keyframe from its pose, where it holds a pose alone, at time 0."""
    key = model.keyframe(STAND_KEY).id
    model.key_time[key] = 0.0
    if not model.key_ctrl[key].any():
        model.key_ctrl[key] = model.key_qpos[key, 7:]


def _check_joints(model: mujoco.MjModel, scene: Path) -> None:
    hinges = (model.jnt_type[1:] == mujoco.mjtJoint.mjJNT_HINGE).all()
    names = [model.joint(i).name for i in range(1, model.njnt)]
    if not hinges or tuple(names) != JOINT_NAMES:
        raise ConfigError(f"{scene} has the joints {names} after its base; they must be {list(JOINT_NAMES)}")
    on_joints = (model.actuator_trntype == mujoco.mjtTrn.mjTRN_JOINT).all()
    driven = [model.joint(joint).name for joint in model.actuator_trnid[:, 0]] if on_joints else []
    if driven != names:
        raise ConfigError(
            f"{scene} has actuators for {driven}; there must be one for each of {names}, in order"
        )


def _check_stand(model: mujoco.MjModel, scene: Path) -> None:
    key = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_KEY, STAND_KEY)
    if key < 0:
        raise ConfigError(f"{scene} has no keyframe {STAND_KEY}; episodes start from it")
    base = model.key_qpos[key, :7]
    upright = 1 - 2 * (base[4] ** 2 + base[5] ** 2)
    if not (0 < base[2] < 1 and abs(np.linalg.norm(base[3:]) - 1) < 1e-3 and upright > UPRIGHT_IN_STAND):
        raise ConfigError(
            f"{scene} has a keyframe {STAND_KEY} with the base at {base.tolist()}; it must stand upright, "
            "with a unit quaternion and less than 1 m high"
        )
    angles, controls = model.key_qpos[key, 7:], model.key_ctrl[key]
    for what, values in (("joints", angles), ("controls", controls if controls.any() else STAND)):
        wrong = np.flatnonzero(~(np.abs(values - STAND) <= POSE_TOLERANCE))
        if wrong.size:
            differences = ", ".join(f"{JOINT_NAMES[i]} {values[i]:g} for {STAND[i]:g}" for i in wrong)
            raise ConfigError(
                f"{scene} has a keyframe {STAND_KEY} whose {what} are not the contract's [rad]: "
                f"{differences}. No policy for it could run on the duck"
            )


def _warn_of_ranges(model: mujoco.MjModel, scene: Path) -> None:
    limited = model.jnt_limited[1:, None].astype(bool)
    ranges = np.where(limited, model.jnt_range[1:], [-np.inf, np.inf])
    other = (np.abs(ranges - np.stack([LOW, HIGH], axis=1)) > RANGE_TOLERANCE).any(axis=1)
    if other.any():
        names = ", ".join(f"{JOINT_NAMES[i]} {ranges[i].round(4).tolist()}" for i in np.flatnonzero(other))
        _LOG.warning("%s has joint ranges that are not the contract's [rad]: %s", scene, names)


def _contact_sensors(model: mujoco.MjModel) -> dict[str, dict[str, Any]]:
    """Return what each contact sensor is between: a foot and anything, or the duck's parts."""
    feet = {
        sensor: {"objtype": mujoco.mjtObj.mjOBJ_GEOM, "objname": geom}
        for sensor, geom in zip(FOOT_SENSORS, FOOT_GEOMS, strict=True)
    }
    subtree, trunk = mujoco.mjtObj.mjOBJ_XBODY, model.body(model.jnt_bodyid[0]).name
    return feet | {SELF_SENSOR: {"objtype": subtree, "objname": trunk, "reftype": subtree, "refname": trunk}}


def _looking_ahead(model: mujoco.MjModel) -> np.ndarray:
    """Return the orientation in the head (w, x, y, z) of what looks along the trunk's x axis at STAND."""
    data = in_stand(model)
    wanted, unturned, local = np.empty(4), np.empty(4), np.empty(4)
    mujoco.mju_mulQuat(wanted, data.xquat[model.jnt_bodyid[0]], _LOOKING_AHEAD)
    mujoco.mju_negQuat(unturned, data.xquat[model.joint("head_roll").bodyid[0]])
    mujoco.mju_mulQuat(local, unturned, wanted)
    return local
