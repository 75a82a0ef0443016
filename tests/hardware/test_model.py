"""The compiled model against the joint table and against figures worked out from the upstream model."""

from importlib import resources

import mujoco
import numpy as np
import pytest

from hardware import joints, servo

SEED = 7


def compile_duck(visuals=True):
    text = resources.files("hardware").joinpath("duck.xml").read_text(encoding="utf-8")
    spec = mujoco.MjSpec.from_string(text)
    spec.compiler.discardvisual = not visuals
    return spec.compile()


@pytest.fixture(scope="module")
def model():
    return compile_duck()


@pytest.fixture
def standing(model):
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, model.keyframe("STAND").id)
    mujoco.mj_forward(model, data)
    return data


def limp_duck():
    """Return a duck whose servos hold nothing."""
    model = compile_duck(visuals=False)
    model.actuator_gainprm[:] = 0.0
    model.actuator_biasprm[:] = 0.0
    return model


def pitch_degrees(data):
    w, x, y, z = data.qpos[3:7]
    return np.degrees(np.arcsin(2 * (w * y - x * z)))


def foot_positions(model, angles):
    """Return the left and right foot site in the trunk frame."""
    data = mujoco.MjData(model)
    data.qpos[:7] = [0, 0, 0, 1, 0, 0, 0]
    data.qpos[7:] = angles
    mujoco.mj_kinematics(model, data)
    return data.site("left_foot").xpos.copy(), data.site("right_foot").xpos.copy()


def half_extent(kind, size, rotation):
    """Return half the width along each axis of a box, capsule or ellipsoid turned by a rotation (3, 3)."""
    if kind == mujoco.mjtGeom.mjGEOM_BOX:
        return np.abs(rotation) @ size
    if kind == mujoco.mjtGeom.mjGEOM_CAPSULE:
        return np.abs(rotation[:, 2]) * size[1] + size[0]
    assert kind == mujoco.mjtGeom.mjGEOM_ELLIPSOID
    return np.linalg.norm(rotation * size, axis=1)


def random_angles(count):
    rng = np.random.default_rng(SEED)
    return rng.uniform(joints.LOW, joints.HIGH, (count, joints.NUM_JOINTS))


def test_model_has_the_published_size(model):
    assert (model.nq, model.nv, model.nu, model.nbody) == (21, 20, 14, 16)


def test_joints_and_actuators_follow_the_joint_table(model):
    hinges = [model.joint(i).name for i in range(1, model.njnt)]
    actuators = [model.actuator(i).name for i in range(model.nu)]
    assert tuple(hinges) == tuple(actuators) == joints.JOINT_NAMES
    assert [model.actuator(name).trnid[0] for name in actuators] == list(range(1, model.njnt))


def test_ranges_are_those_of_the_joint_table(model):
    assert model.jnt_range[1:, 0] == pytest.approx(joints.LOW, abs=1e-6)
    assert model.jnt_range[1:, 1] == pytest.approx(joints.HIGH, abs=1e-6)


def test_stand_keyframe_is_the_table_pose_with_its_controls(model):
    key = model.keyframe("STAND")
    assert key.qpos[:7].tolist() == [0, 0, 0.12, 1, 0, 0, 0]
    assert key.qpos[7:] == pytest.approx(joints.STAND, abs=1e-12)
    assert key.ctrl == pytest.approx(joints.STAND, abs=1e-12)


def test_actuators_are_the_linearised_servo(model):
    assert model.actuator_gainprm[:, 0] == pytest.approx(servo.STIFFNESS_AT_GAIN_200)
    assert model.actuator_biasprm[:, 1] == pytest.approx(-servo.STIFFNESS_AT_GAIN_200)
    assert model.actuator_forcerange[:, 1] == pytest.approx(servo.STALL_TORQUE)
    assert model.dof_damping[6:] == pytest.approx(servo.DAMPING)
    assert model.dof_frictionloss[6:] == pytest.approx(servo.FRICTION)
    assert model.dof_armature[6:] == pytest.approx(servo.ARMATURE)
    assert not model.dof_damping[:6].any() and not model.dof_armature[:6].any()


def test_masses_add_up_as_in_the_upstream_model(model):
    assert model.body_subtreemass[1] == pytest.approx(0.737243, abs=1e-6)
    assert model.body("trunk_base").mass[0] == pytest.approx(0.199224, abs=1e-6)
    for body, mass in {"neck": 0.27993, "yaw2roll": 0.12905, "bearing_roll": 0.12905}.items():
        assert model.body(body).subtreemass[0] == pytest.approx(mass, abs=1e-5)


def test_centre_of_mass_at_stand(standing):
    x, y, z = standing.subtree_com[1]
    assert (x, z) == pytest.approx((0.0006, 0.1418), abs=1e-4)
    assert abs(y) < 5e-5
    above_ankle = z - standing.body("ankle_left").xpos[2]
    assert above_ankle == pytest.approx(0.1164, abs=1e-4)
    assert 0.737243 * 9.81 * above_ankle == pytest.approx(0.842, abs=1e-3)


def test_ankle_axes_at_stand(standing):
    for side in ("left", "right"):
        x, _, z = standing.body(f"ankle_{side}").xpos
        assert (x, z) == pytest.approx((0.0, 0.0254), abs=5e-5)


def test_whole_body_inertia_at_stand(model, standing):
    total, centre = np.zeros((3, 3)), standing.subtree_com[1]
    for body in range(1, model.nbody):
        rotation = standing.ximat[body].reshape(3, 3)
        arm = standing.xipos[body] - centre
        steiner = model.body_mass[body] * (arm @ arm * np.eye(3) - np.outer(arm, arm))
        total += rotation @ np.diag(model.body_inertia[body]) @ rotation.T + steiner
    measured = [total[0, 0], total[1, 1], total[2, 2], total[0, 2]]
    assert measured == pytest.approx([5.06e-3, 4.96e-3, 1.25e-3, -0.63e-3], abs=1e-5)


def test_soles_are_level_at_stand_and_touch_at_the_derived_height(model, standing):
    for side in ("left", "right"):
        sole = standing.geom(f"{side}_foot_collision")
        rotation = sole.xmat.reshape(3, 3)
        assert np.degrees(np.arccos(rotation[2, 2])) < 0.15
        lowest = sole.xpos[2] - np.abs(rotation[2]) @ model.geom(sole.id).size
        assert 0.12 - lowest == pytest.approx(0.1171, abs=1e-4)


def test_foot_sites_at_zero_and_at_stand(model, standing):
    left, right = foot_positions(model, np.zeros(14))
    assert left == pytest.approx([-0.031777, 0.050415, -0.105315], abs=2e-6)
    assert right == pytest.approx([-0.031777, -0.050415, -0.105315], abs=2e-6)
    assert standing.site("left_foot").xpos == pytest.approx([0, 0.0418, 0.00287], abs=5e-5)
    assert standing.site("right_foot").xpos == pytest.approx([0, -0.0418, 0.00287], abs=5e-5)


@pytest.mark.parametrize("side", ["left", "right"])
def test_sole_reaches_from_heel_to_toe_with_its_flat_patch(model, side):
    half_length, half_width, _ = model.geom(f"{side}_foot_collision").size
    assert (2 * half_length, 2 * half_width) == pytest.approx((0.038, 0.027), abs=3e-4)
    toe, heel = model.geom(f"{side}_toe_edge"), model.geom(f"{side}_heel_edge")
    assert toe.pos[0] + toe.size[0] == pytest.approx(0.034, abs=1e-6)
    assert heel.pos[0] - heel.size[0] == pytest.approx(-0.020, abs=1e-6)


@pytest.mark.parametrize("side", ["left", "right"])
def test_rolled_edges_do_not_stick_out_below_the_flat_patch(model, standing, side):
    box = standing.geom(f"{side}_foot_collision")
    normal = box.xmat.reshape(3, 3)[:, 2]
    bottom = box.xpos @ normal - model.geom(box.id).size[2]
    for edge in ("toe_edge", "heel_edge"):
        rolled = standing.geom(f"{side}_{edge}")
        gap = rolled.xpos @ normal - model.geom(rolled.id).size[0] - bottom
        assert 0 <= gap < 4e-4


def test_mirrored_angles_give_mirrored_feet(model):
    for angles in random_angles(20):
        left, right = foot_positions(model, angles)
        mirrored = joints.MIRROR_SIGN * angles[list(joints.MIRROR_INDEX)]
        other_left, other_right = foot_positions(model, mirrored)
        assert other_left == pytest.approx(right * [1, -1, 1], abs=1e-9)
        assert other_right == pytest.approx(left * [1, -1, 1], abs=1e-9)


def test_mirroring_keeps_the_joint_ranges():
    low = (joints.MIRROR_SIGN * joints.LOW)[list(joints.MIRROR_INDEX)]
    high = (joints.MIRROR_SIGN * joints.HIGH)[list(joints.MIRROR_INDEX)]
    assert np.minimum(low, high) == pytest.approx(joints.LOW)
    assert np.maximum(low, high) == pytest.approx(joints.HIGH)


def test_stand_held_open_loop_tips_forward_as_derived(model, standing):
    pitch = {}
    for step in range(1, 201):
        mujoco.mj_step(model, standing)
        pitch[round(step * model.opt.timestep, 3)] = pitch_degrees(standing)
    assert pitch[0.2] == pytest.approx(3.3, abs=0.3)
    assert pitch[0.4] == pytest.approx(9.7, abs=0.4)
    assert pitch[0.6] == pytest.approx(21, abs=1.0)
    assert standing.body("trunk_base").xpos[2] < 0.08


def test_limp_duck_comes_to_rest_on_the_floor():
    model = limp_duck()
    data = mujoco.MjData(model)
    rng = np.random.default_rng(SEED)
    faces = [[1, 0, 0, 0], [0, 1, 0, 0], [1, 1, 0, 0], [1, -1, 0, 0], [1, 0, 1, 0], [1, 0, -1, 0]]
    for quaternion in [*np.array(faces, dtype=float), *rng.normal(size=(4, 4))]:
        mujoco.mj_resetDataKeyframe(model, data, model.keyframe("STAND").id)
        data.qpos[2] = 0.3
        data.qpos[3:7] = quaternion / np.linalg.norm(quaternion)
        mujoco.mj_step(model, data, round(3 / model.opt.timestep))
        assert data.xipos[1:, 2].min() > 0.005, quaternion
        assert data.body("trunk_base").xpos[2] > 0.02, quaternion
        assert np.linalg.norm(data.qvel[:3]) < 0.05, quaternion


def test_a_fall_ends_on_trunk_or_head_as_well_as_on_the_feet(model):
    data = mujoco.MjData(model)
    data.qpos[3:7] = [np.sqrt(0.5), 0, np.sqrt(0.5), 0]
    data.qpos[2] = 0.0
    mujoco.mj_forward(model, data)
    floor = model.geom("floor").id
    touching = {model.geom(pair[pair != floor][0]).name for pair in data.contact.geom if floor in pair}
    assert {"trunk_shell", "head_shell", "beak"} <= touching


def test_imu_site_measures_in_the_trunk_frame(model, standing):
    assert standing.site("imu").xmat == pytest.approx(np.eye(3).ravel())
    assert standing.sensor("orientation").data == pytest.approx([1, 0, 0, 0])
    standing.qvel[3:6] = [0.3, -0.2, 0.1]
    mujoco.mj_forward(model, standing)
    assert standing.sensor("angular-velocity").data == pytest.approx([0.3, -0.2, 0.1])


def test_looks_change_no_mass(model):
    bare = compile_duck(visuals=False)
    assert bare.ngeom < model.ngeom and not (bare.geom_group == 2).any()
    for field in ("body_mass", "body_inertia", "body_ipos", "body_iquat", "dof_damping", "key_qpos"):
        assert np.array_equal(getattr(model, field), getattr(bare, field)), field


def test_looks_change_no_motion(model):
    ends = []
    for duck in (model, compile_duck(visuals=False)):
        data = mujoco.MjData(duck)
        mujoco.mj_resetDataKeyframe(duck, data, duck.keyframe("STAND").id)
        mujoco.mj_step(duck, data, 300)
        ends.append(data.qpos.copy())
    assert ends[0][2] < 0.1  # it has fallen on something by then
    assert np.array_equal(*ends)


def test_pictures_hide_what_touches_and_show_what_does_not(model):
    shown = mujoco.MjvOption().geomgroup
    touches = (model.geom_contype | model.geom_conaffinity) != 0
    touches[model.geom("floor").id] = False
    assert not shown[model.geom_group[touches]].any()
    assert shown[model.geom_group[~touches]].all()
    assert 40 < (model.geom_group == 2).sum() < 60
    assert not mujoco.MjvOption().sitegroup[model.site_group].any()


@pytest.mark.parametrize("side", ["left", "right"])
def test_drawn_feet_stay_within_the_footprint(model, standing, side):
    """Footprint in the frame of the sole: x -20..34 mm, 41.1 mm wide, no lower than the sole."""
    sole = standing.geom(f"{side}_foot_collision").xmat.reshape(3, 3)
    origin = standing.site(f"{side}_foot").xpos
    body = model.body(f"ankle_{side}").id
    corners = []
    for geom in np.flatnonzero((model.geom_bodyid == body) & (model.geom_group == 2)):
        rotation = sole.T @ standing.geom_xmat[geom].reshape(3, 3)
        centre = sole.T @ (standing.geom_xpos[geom] - origin)
        extent = half_extent(model.geom_type[geom], model.geom_size[geom], rotation)
        corners += [centre - extent, centre + extent]
    low, high = np.min(corners, axis=0), np.max(corners, axis=0)
    assert low[0] >= -0.0201 and high[0] == pytest.approx(0.034, abs=1e-4)
    assert low[1] >= -0.0206 and high[1] <= 0.0206
    assert low[2] == pytest.approx(0, abs=1e-4)


def test_side_camera_follows_the_duck(model, standing):
    before = standing.camera("side").xpos.copy()
    standing.qpos[0] += 1.0
    mujoco.mj_forward(model, standing)
    assert standing.camera("side").xpos - before == pytest.approx([1, 0, 0], abs=1e-9)


def test_side_camera_looks_at_the_duck_from_its_front_left(standing):
    camera = standing.camera("side")
    offset = camera.xpos - standing.subtree_com[1]
    assert offset[0] > 0.3 and offset[1] > 0.3 and offset[2] > 0
    view = -camera.xmat.reshape(3, 3)[:, 2]
    assert view @ -offset / np.linalg.norm(offset) > np.cos(np.radians(3))


def test_head_camera_sits_at_its_site_and_looks_forward(standing):
    camera = standing.camera("head_camera")
    assert camera.xpos == pytest.approx(standing.site("head_camera").xpos, abs=1e-9)
    assert camera.xmat.reshape(3, 3)[:, 2] == pytest.approx([-1, 0, 0], abs=1e-6)
