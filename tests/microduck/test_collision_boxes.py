"""Boxes in place of the meshes that touch things: tight, at the mesh's pose, and the same as TorchRL's."""

import copy
from xml.etree import ElementTree

import mujoco
import numpy as np
import pytest
from torchrl.envs.custom.mujoco.microduck import _low_cost_collision_scene

from microduck.physics.model import load_model
from microduck.physics.options import PhysicsOptions
from microduck.scene import BUILT_IN

BITS = {"collision": "1", "self_collision_only": "2"}
# Corners of a crooked wedge [m], away from its own origin, and its faces, seen from outside.
CORNERS = np.array(
    [[0.3, 0.1, 0], [0.36, 0.11, 0.005], [0.31, 0.14, 0], [0.3, 0.1, 0.02], [0.35, 0.1, 0.015]]
)
FACES = [(1, 3, 2), (1, 4, 3), (1, 2, 5), (1, 5, 4), (2, 3, 5), (3, 4, 5)]
POSITION, ANGLE = np.array([-0.3, -0.1, -0.02]), 0.4  # of the sole's mesh in the ankle; turned about z


@pytest.fixture
def mesh_scene(tmp_path):
    """A scene that includes a duck whose left sole and right shank are meshes, as the upstream one's are."""
    lines = [f"v {x} {y} {z}\n" for x, y, z in CORNERS] + [f"f {a} {b} {c}\n" for a, b, c in FACES]
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "wedge.obj").write_text("".join(lines))
    robot = ElementTree.parse(BUILT_IN).getroot()
    robot.find("compiler").set("meshdir", "assets")
    for name, bits in BITS.items():
        default = ElementTree.SubElement(robot.find("default"), "default", {"class": name})
        ElementTree.SubElement(default, "geom", type="mesh", contype=bits, conaffinity=bits, group="3")
    ElementTree.SubElement(robot.find("asset"), "mesh", name="wedge", file="wedge.obj")
    ElementTree.SubElement(robot.find(".//body[@name='ankle_left']"), "geom", type="mesh", mesh="wedge")
    for name, kind in (("left_foot_collision", "collision"), ("right_shank", "self_collision_only")):
        geom = robot.find(f".//geom[@name='{name}']")
        geom.attrib = {"name": name, "class": kind, "mesh": "wedge"}
        geom.attrib |= {"pos": " ".join(map(str, POSITION)), "euler": f"0 0 {ANGLE}"}
    scene = ElementTree.Element("mujoco")
    ElementTree.SubElement(scene, "include", file="robot.xml")
    for tag in ("worldbody", "keyframe"):  # as upstream: floor and keyframes are the scene's
        part = robot.find(tag)
        child = part[0] if tag == "worldbody" else part.find("key")
        ElementTree.SubElement(scene, tag).append(copy.deepcopy(child))
        part.remove(child)
    ElementTree.ElementTree(robot).write(tmp_path / "robot.xml")
    ElementTree.ElementTree(scene).write(tmp_path / "scene.xml")
    return tmp_path / "scene.xml"


def test_box_touches_the_mesh_on_all_six_sides_and_leaves_no_corner_out(mesh_scene):
    model = load_model(scene=mesh_scene)
    box = model.geom("left_foot_collision")
    assert box.type[0] == mujoco.mjtGeom.mjGEOM_BOX
    cosine, sine = np.cos(ANGLE), np.sin(ANGLE)
    corners = POSITION + CORNERS @ np.array([[cosine, sine, 0], [-sine, cosine, 0], [0, 0, 1]])
    axes = np.empty(9)
    mujoco.mju_quat2Mat(axes, box.quat)
    inside = (corners - box.pos) @ axes.reshape(3, 3)
    assert inside.max(axis=0) == pytest.approx(box.size, abs=1e-7)
    assert inside.min(axis=0) == pytest.approx(-box.size, abs=1e-7)


def test_boxes_are_those_of_torchrl(mesh_scene):
    with _low_cost_collision_scene(mesh_scene) as scene:
        theirs = mujoco.MjModel.from_xml_path(str(scene))
    ours = load_model(scene=mesh_scene)
    for field in (
        "geom_type",
        "geom_size",
        "geom_pos",
        "geom_quat",
        "geom_contype",
        "body_mass",
        "body_inertia",
    ):
        assert np.array_equal(getattr(ours, field), getattr(theirs, field)), field
    assert (ours.geom_type == mujoco.mjtGeom.mjGEOM_MESH).sum() == 1  # the one that is looks only


def test_meshes_stay_on_request(mesh_scene):
    model = load_model(PhysicsOptions(low_cost_collisions=False), scene=mesh_scene)
    assert model.geom("left_foot_collision").type[0] == mujoco.mjtGeom.mjGEOM_MESH
    assert model.geom("right_shank").type[0] == mujoco.mjtGeom.mjGEOM_MESH


def test_duck_with_boxes_has_its_foot_sensed(mesh_scene):
    model = load_model(scene=mesh_scene, only_motion=True)
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, model.keyframe("STAND").id)
    data.qpos[2] = 0.09
    mujoco.mj_forward(model, data)
    assert data.sensor("left_foot_contact").data[0] > 0
    assert data.sensor("self_contacts").data[0] == 0
