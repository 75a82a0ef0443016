"""Leaving out of a scene what its motion does not depend on: a physics step gets a fifteenth shorter."""

from __future__ import annotations

import mujoco

from microduck.physics.model_parts import FOOT_SENSORS, SELF_SENSOR


def slim(spec: mujoco.MjSpec) -> None:
    """Take from a scene its cameras and lights, sensors that nobody reads, and geoms that meet nothing.

    Every trajectory stays the same, bit for bit. Geoms stay on bodies whose mass MuJoCo takes from them.
    """
    kept = {*FOOT_SENSORS, SELF_SENSOR}
    for element in [*spec.cameras, *spec.lights, *(one for one in spec.sensors if one.name not in kept)]:
        spec.delete(element)
    geoms = list(spec.geoms)
    paired = {name for pair in spec.pairs for name in (pair.geomname1, pair.geomname2)}
    for geom in geoms:
        weightless = geom.parent == spec.worldbody or geom.parent.explicitinertial
        if weightless and geom.name not in paired and not any(_meet(geom, other) for other in geoms):
            spec.delete(geom)


def _meet(one: mujoco.MjsGeom, other: mujoco.MjsGeom) -> bool:
    return bool(one.contype & other.conaffinity or other.contype & one.conaffinity)
