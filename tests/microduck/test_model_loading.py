"""Whatever scene is loaded, it is the contract's duck and has what physics reads; any other is refused."""

from xml.etree import ElementTree

import mujoco
import numpy as np
import pytest
from torchrl.envs import MicroDuckEnv as TorchRLMicroDuckEnv

from hardware import joints
from hardware.errors import ConfigError
from microduck.physics.model import load_model
from microduck.physics.options import PhysicsOptions
from microduck.physics.slim import slim
from microduck.scene import BUILT_IN

ADDED = ("left_foot_contact", "right_foot_contact", "self_contacts")


@pytest.fixture
def edited(tmp_path):
    """Write the built-in duck, changed by a function of its root element, and return the file."""

    def write(change):
        tree = ElementTree.parse(BUILT_IN)
        change(tree.getroot())
        path = tmp_path / "edited.xml"
        tree.write(path)
        return path

    return write


def find(root, tag, name):
    return root.find(f".//{tag}[@name='{name}']")


def remove(root, *names):
    for parent in root.iter():
        for child in list(parent):
            if child.get("name") in names:
                parent.remove(child)


def posed(model, **angles):
    """Return the duck at STAND, high in the air, with some joints elsewhere [rad]."""
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, model.keyframe("STAND").id)
    data.qpos[2] = 1.0
    for name, angle in angles.items():
        data.joint(name).qpos[0] = angle
    mujoco.mj_forward(model, data)
    return data


def touching(model, data):
    """Return the pairs of names of geoms that touch."""
    return [{model.geom(geom).name for geom in contact.geom} for contact in data.contact]


def gaze(data):
    return -data.site("head_imu").xmat.reshape(3, 3)[:, 2]


# Options


def test_without_options_the_built_in_duck_keeps_its_own_settings():
    option = load_model(only_motion=True).opt
    assert (option.timestep, option.iterations) == (0.005, 10)
    assert option.integrator == mujoco.mjtIntegrator.mjINT_IMPLICITFAST


def test_options_take_the_place_of_the_scenes_settings(plain_scene):
    options = PhysicsOptions(timestep=0.004, integrator="RK4", iterations=7)
    for scene in (None, plain_scene):
        option = load_model(options, scene=scene, only_motion=True).opt
        assert (option.timestep, option.iterations) == (0.004, 7)
        assert option.integrator == mujoco.mjtIntegrator.mjINT_RK4


def test_substeps_set_the_timestep():
    assert load_model(PhysicsOptions(substeps=8), only_motion=True).opt.timestep == 0.0025


def test_scene_whose_steps_make_no_control_period_is_refused(edited):
    scene = edited(lambda root: root.find("option").set("timestep", "0.003"))
    with pytest.raises(ConfigError, match=r"timestep is 0\.003 s.*control period"):
        load_model(scene=scene)
    assert load_model(PhysicsOptions(substeps=5), scene=scene).opt.timestep == 0.004


@pytest.mark.parametrize(("body_contacts", "touched"), [(True, True), (False, False)])
def test_only_soles_meet_the_floor_unless_body_contacts_are_wanted(body_contacts, touched):
    model = load_model(PhysicsOptions(body_contacts=body_contacts), only_motion=True)
    data = posed(model)
    data.qpos[2] = 0.02  # so low that the trunk is in the floor
    mujoco.mj_forward(model, data)
    pairs = touching(model, data)
    assert {"floor", "left_foot_collision"} in pairs
    assert ({"floor", "trunk_shell"} in pairs) == touched


def test_looks_are_left_out_on_request():
    bare, full = load_model(only_motion=True), load_model()
    assert not (bare.geom_group == 2).any()
    assert (full.geom_group == 2).sum() > 40
    assert bare.body_subtreemass[1] == pytest.approx(0.737243, abs=1e-6)
    assert bare.ncam == bare.nlight == 0 and bare.nsensor == 3
    names = {bare.geom(i).name for i in range(bare.ngeom)}
    assert {"floor", "battery", "left_shank", "left_toe_edge", "right_foot_collision"} <= names
    assert not {"trunk_shell", "beak"} & names  # which meet nothing while only soles may touch the floor


@pytest.mark.parametrize("body_contacts", [False, True])
def test_leaving_out_what_motion_does_not_need_changes_no_bit_of_it(body_contacts):
    options = PhysicsOptions(body_contacts=body_contacts)
    targets = joints.STAND + np.random.default_rng(1).uniform(-0.6, 0.6, (100, 14))
    ends = []
    for only_motion in (True, False):
        model = load_model(options, only_motion=only_motion)
        data = mujoco.MjData(model)
        mujoco.mj_resetDataKeyframe(model, data, model.keyframe("STAND").id)
        for target in targets:
            data.ctrl[:] = target
            mujoco.mj_step(model, data, 4)
        ends.append(np.concatenate([data.qpos, data.qvel, data.sensor("self_contacts").data]))
    assert np.array_equal(*ends)


def test_a_geom_that_gives_a_body_its_mass_stays():
    text = BUILT_IN.read_text()
    start = text.index("<inertial", text.index('<body name="yaw_roll_motion"'))
    text = text[:start] + '<geom name="bob" type="sphere" size="0.02"/>' + text[text.index("/>", start) + 2 :]
    spec = mujoco.MjSpec.from_string(text)
    slim(spec)
    assert "bob" in {geom.name for geom in spec.geoms}


def test_torchrls_duck_and_ours_move_alike_on_one_scene(plain_scene):
    theirs = TorchRLMicroDuckEnv(plain_scene, backend="mujoco", num_envs=1)
    ours = load_model(scene=plain_scene, only_motion=True)
    models = (mujoco.MjModel.from_xml_path(str(theirs.scene_path)), ours)
    theirs.close()
    assert ours.opt.timestep == 0.002 and models[0].ngeom > ours.ngeom
    targets = joints.STAND + np.random.default_rng(3).uniform(-0.5, 0.5, (60, 14))
    ends = []
    for model in models:
        data = mujoco.MjData(model)
        mujoco.mj_resetDataKeyframe(model, data, model.keyframe("STAND").id)
        for target in targets:
            data.ctrl[:] = target
            mujoco.mj_step(model, data, 10)
        ends.append(data.qpos.copy())
    assert abs(ends[0][2] - 0.12) > 0.01  # it has moved by then
    assert np.array_equal(*ends)


# What is added


def test_scene_without_sensors_and_head_site_gets_those_of_the_built_in_duck(edited):
    model = load_model(scene=edited(lambda root: remove(root, "head_imu", *ADDED)))
    built_in = load_model()
    for name in ADDED:
        ours, theirs = (m.sensor(name) for m in (model, built_in))
        assert (ours.type, ours.dim) == (theirs.type, theirs.dim)
    assert gaze(posed(model)) == pytest.approx(gaze(posed(built_in)), abs=1e-6)


def test_complete_scene_is_taken_as_it_is(plain_scene):
    model = load_model(scene=plain_scene)
    assert (model.nsensor, model.nsite) == (load_model().nsensor, load_model().nsite)


def test_added_foot_sensors_tell_which_foot_touches(edited):
    model = load_model(scene=edited(lambda root: remove(root, *ADDED)))
    data = posed(model)
    assert (data.sensor("left_foot_contact").data[0], data.sensor("right_foot_contact").data[0]) == (0, 0)
    data.qpos[2] = 0.116
    data.joint("right_knee").qpos[0] = -1.0  # the right foot goes forward and up
    mujoco.mj_forward(model, data)
    assert {"floor", "left_foot_collision"} in touching(model, data)
    assert not [pair for pair in touching(model, data) if "right_foot_collision" in pair]
    assert data.sensor("left_foot_contact").data[0] > 0
    assert data.sensor("right_foot_contact").data[0] == 0


@pytest.mark.parametrize("own_sensors", [True, False])
@pytest.mark.parametrize(
    ("pose", "pair"),
    [
        ({"left_hip_roll": -0.9}, {"left_shank", "right_shank"}),
        ({"left_hip_roll": -0.6}, {"left_toe_edge", "right_toe_edge"}),
        (
            {"left_hip_yaw": -0.44, "left_hip_roll": 0.33, "left_hip_pitch": 1.34, "left_knee": -0.82},
            {"battery", "left_shank"},
        ),
        ({}, None),
    ],
)
def test_contacts_of_the_duck_with_itself_are_counted(edited, own_sensors, pose, pair):
    scene = BUILT_IN if own_sensors else edited(lambda root: remove(root, *ADDED))
    model = load_model(scene=scene, only_motion=True)
    data = posed(model, **pose)
    assert data.sensor("self_contacts").data[0] == data.ncon
    assert (data.ncon > 0) == (pair is not None)
    assert pair is None or pair in touching(model, data)


@pytest.mark.parametrize("own_sensors", [True, False])
def test_contacts_with_the_floor_are_none_with_itself(edited, own_sensors):
    scene = BUILT_IN if own_sensors else edited(lambda root: remove(root, *ADDED))
    model = load_model(PhysicsOptions(body_contacts=True), scene=scene, only_motion=True)
    data = posed(model)
    data.qpos[2] = 0.05
    mujoco.mj_forward(model, data)
    assert data.ncon > 5
    assert data.sensor("self_contacts").data[0] == 0


@pytest.mark.parametrize(
    ("turn", "direction"),
    [
        ({}, [1, 0, 0]),
        ({"head_yaw": np.pi / 6}, [np.sqrt(0.75), 0.5, 0]),  # to the left
        ({"head_pitch": 0.3490659 + np.pi / 6}, [np.sqrt(0.75), 0, -0.5]),  # nose down
    ],
)
def test_added_head_site_looks_where_the_head_looks(edited, turn, direction):
    model = load_model(scene=edited(lambda root: remove(root, "head_imu")))
    assert gaze(posed(model, **turn)) == pytest.approx(direction, abs=1e-6)


def test_keyframe_without_controls_gets_them_from_its_pose(edited):
    model = load_model(scene=edited(lambda root: find(root, "key", "STAND").attrib.pop("ctrl")))
    assert model.keyframe("STAND").ctrl == pytest.approx(joints.STAND, abs=1e-12)


# What is refused


def swap_actuators(root):
    actuators = root.find("actuator")
    first = actuators[0]
    actuators.remove(first)
    actuators.insert(1, first)


def rename_joint(root):
    find(root, "joint", "neck_pitch").set("name", "neck")
    find(root, "position", "neck_pitch").set("joint", "neck")


def drive_the_base(root):
    find(root, "position", "right_ankle").set("joint", "root")


def bend_knee(root):
    key = find(root, "key", "STAND")
    key.set("qpos", key.get("qpos").replace("-0.00494", "-0.1"))


def other_controls(root):
    key = find(root, "key", "STAND")
    key.set("ctrl", key.get("ctrl").replace("0.3490659 0.3490659", "0.3490659 -0.3490659"))


def add_joint(root):
    ElementTree.SubElement(find(root, "body", "jaw_soft"), "joint", name="mouth", axis="0 1 0", range="0 1")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (add_joint, r"\(nq, nv, nu\) = \(22, 21, 14\).*\(21, 20, 14\)"),
        (rename_joint, r"joints \[.*'neck'.*must be \[.*'neck_pitch'"),
        (swap_actuators, r"actuators for \['left_hip_roll', 'left_hip_yaw'.*in order"),
        (drive_the_base, r"actuators for \[.*'root'\]"),
        (lambda root: remove(root, "STAND"), "no keyframe STAND"),
        (bend_knee, r"STAND whose joints .*: left_knee -0\.1 for -0\.00494"),
        (other_controls, r"STAND whose controls .*: head_pitch -0\.349066 for 0\.349066"),
        (lambda root: remove(root, "right_foot_collision"), "no geom right_foot_collision"),
        (lambda root: find(root, "site", "left_foot").set("name", "foot"), "no site left_foot"),
    ],
)
def test_scene_that_is_not_the_contracts_duck_is_refused_with_what_differs(edited, change, message):
    scene = edited(change)
    with pytest.raises(ConfigError, match=message) as error:
        load_model(scene=scene, only_motion=True)
    assert str(error.value).startswith(str(scene))


def test_pose_with_a_nan_is_not_the_contracts(edited):
    def spoil(root):
        key = find(root, "key", "STAND")
        key.set("ctrl", "nan " + key.get("ctrl").partition(" ")[2])

    with pytest.raises(ConfigError):
        load_model(scene=edited(spoil))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b"\x00\xff\x07" * 99, "MuJoCo cannot load"),
        (b"<mujoco><worldbody>", "MuJoCo cannot load"),
        (b"<mujoco><worldbody><geom size='a'/></worldbody></mujoco>", "size"),
        (b"<mujoco><include file='gone.xml'/></mujoco>", "gone.xml"),
        (b"<mujoco><include file='bad.xml'/></mujoco>", "bad.xml"),
        (b"<mujoco><asset><mesh file='gone.obj'/></asset></mujoco>", "gone.obj"),
    ],
)
def test_broken_scene_is_refused_with_mujocos_reason_and_its_path(tmp_path, content, reason):
    scene = tmp_path / "bad.xml"
    scene.write_bytes(content)
    with pytest.raises(ConfigError, match=reason) as error:
        load_model(scene=scene)
    assert str(error.value).startswith(f"MuJoCo cannot load {scene}: ")


@pytest.mark.parametrize("name", ["gone.xml", "."])
def test_scene_that_is_no_file_is_refused(tmp_path, name):
    with pytest.raises(ConfigError, match="MuJoCo cannot load"):
        load_model(scene=tmp_path / name)


def test_other_joint_ranges_are_accepted_with_a_warning_that_names_them(edited, caplog):
    def narrow(root):
        find(root, "joint", "left_knee").set("range", "-1.2 1.570796")
        find(root, "joint", "head_yaw").attrib.pop("range")

    load_model(scene=edited(narrow), only_motion=True)
    assert "left_knee [-1.2, 1.5708], head_yaw [-inf, inf]" in caplog.text
    assert "right_knee" not in caplog.text


def test_usual_scenes_give_no_warning(plain_scene, caplog):
    load_model(scene=plain_scene)
    load_model()
    assert caplog.text == ""


# Servos


@pytest.mark.parametrize("own", [True, False])
def test_motors_take_the_place_of_position_servos(plain_scene, own):
    model = load_model(PhysicsOptions(actuator="xl330"), scene=None if own else plain_scene)
    assert (model.nq, model.nv, model.nu, model.na) == (21, 20, 14, 0)
    assert (model.actuator_gaintype == mujoco.mjtGain.mjGAIN_DCMOTOR).all()
    assert [model.actuator(i).name for i in range(14)] == list(joints.JOINT_NAMES)
    assert model.dof_damping[6:] == pytest.approx(0.0053597, abs=1e-7)
    assert model.dof_armature[6:] == pytest.approx(0.0018077, abs=1e-7)
    assert model.dof_frictionloss[6:] == pytest.approx(0.0094475, abs=1e-7)
    data = posed(model, left_knee=-0.10494)  # 0.1 rad off, at rest
    data.ctrl[:] = joints.STAND
    mujoco.mj_forward(model, data)
    assert data.actuator("left_knee").force[0] == pytest.approx(0.05544, abs=1e-5)
    assert data.actuator("right_knee").force[0] == pytest.approx(0.0, abs=1e-12)


def test_position_servos_are_the_scene_s_own_unless_motors_are_wanted(plain_scene):
    for scene in (None, plain_scene):
        model = load_model(scene=scene)
        assert model.actuator_gainprm[:, 0] == pytest.approx(0.55)
        assert model.actuator_forcerange[:, 1] == pytest.approx(0.96)
        assert model.dof_damping[6:] == pytest.approx(0.053)


@pytest.mark.parametrize(("timestep", "samples"), [(0.005, 8), (0.002, 20), (0.004, 10)])
def test_actuators_remember_40_milliseconds(timestep, samples):
    model = load_model(PhysicsOptions(timestep=timestep))
    assert model.actuator_history[:, 0].tolist() == [samples] * 14
    assert not model.actuator_delay.any()


def test_a_scene_with_a_delay_of_its_own_keeps_it(edited):
    def late(root):
        for servo in root.find("actuator"):
            servo.set("delay", "0.03")
            servo.set("nsample", "30")

    model = load_model(scene=edited(late))
    assert model.actuator_delay.tolist() == [0.03] * 14
    assert model.actuator_history[:, 0].tolist() == [30] * 14


def test_stand_is_at_time_zero_whatever_the_scene_says(edited):
    model = load_model(scene=edited(lambda root: find(root, "key", "STAND").set("time", "3.5")))
    assert model.key_time[model.keyframe("STAND").id] == 0.0
