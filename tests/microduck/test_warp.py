"""mujoco-warp against MuJoCo itself, on the CPU. The first run on a machine compiles kernels for a minute."""

import math
import sys

import pytest
import torch

from hardware.errors import ConfigError
from microduck import MicroDuckEnv
from microduck.physics import warp as warp_module
from microduck.physics.model import load_model
from microduck.physics.native import NativePhysics
from microduck.physics.options import PhysicsOptions
from microduck.physics.warp import WarpPhysics, constraint_rows
from microduck.scene import BUILT_IN

DUCKS = 4
EVERY = torch.arange(DUCKS)
SEEDS = (54, 24, 9, 12)
"""Walks in which no corner of a sole is within 3e-6 m of the floor's surface as a substep starts. At one that
is, float32 may see a contact a substep earlier, which moves joints by 1e-4."""
CLOSE = 1e-5
"""Largest difference from MuJoCo within 0.2 s, in m, rad, N m and parts of unit vectors: 1e-6 was measured.
float32 resolves 6e-8 of a unit, and its solver stops at 1e-6."""
LOOKS = ("contacts", "foot_positions", "foot_rotations", "gaze", "joint_torques", "self_contacts")


@pytest.fixture(scope="module")
def batch():
    pytest.importorskip("mujoco_warp", reason="mujoco-warp is not installed: pip install '.[warp]'")
    return WarpPhysics(DUCKS, PhysicsOptions())


@pytest.fixture
def ducks(batch):
    stand(batch)
    return batch


@pytest.fixture
def reference():
    physics = NativePhysics(DUCKS, PhysicsOptions(threads=1))
    stand(physics)
    return physics


def stand(physics, ids=EVERY):
    physics.reset(ids, physics.stand_qpos.expand(len(ids), -1), torch.zeros(len(ids), 20))


def targets(physics, step):
    """Each duck's own random targets within 0.35 rad of STAND, the same numbers in every precision."""
    dice = [torch.Generator().manual_seed(1000 * seed + step) for seed in SEEDS]
    uniform = torch.stack([torch.rand(14, generator=die) for die in dice])
    return physics.stand_qpos[7:].float() + 0.35 * (2 * uniform - 1)


def walk(physics, steps, first=0):
    for step in range(first, first + steps):
        physics.step(targets(physics, step))


def looks(physics):
    return {name: getattr(physics, name)().double() for name in LOOKS}


def assert_same_looks(one, other, rows=EVERY):
    here, there = looks(one), looks(other)
    for name in LOOKS:
        torch.testing.assert_close(here[name][rows], there[name][rows], rtol=0, atol=CLOSE)


def test_ducks_move_as_in_mujoco_itself(ducks, reference):
    for step in range(10):
        walk(ducks, 1, step)
        walk(reference, 1, step)
        torch.testing.assert_close(ducks.qpos.double(), reference.qpos, rtol=0, atol=CLOSE)
        assert_same_looks(ducks, reference)
    torch.testing.assert_close(ducks.time(), torch.full((DUCKS,), 0.2), rtol=1e-5, atol=0)


def test_state_is_float32_and_live(ducks):
    assert ducks.qpos.dtype == ducks.stand_qpos.dtype == torch.float32
    ducks.qpos[1, 2] = 0.5
    walk(ducks, 1)
    assert ducks.qpos[1, 2] > 0.45  # a free fall of 20 ms


def test_refresh_shows_the_present_state(ducks, reference):
    for physics in (ducks, reference):
        physics.qpos[0, 2] = 0.3
        physics.qpos[1, 8], physics.qpos[1, 17] = -0.38, 0.38  # hip rolls: the soles meet
        physics.qpos[2, 12] = 1.0  # looking down
        physics.qpos[3, 2] = 0.116  # on the floor, which STAND is 3 mm above
        physics.refresh(EVERY)
    assert ducks.contacts().tolist() == [[False, False], [True, True], [False, False], [True, True]]
    assert (ducks.self_contacts() > 0).tolist() == [False, True, False, False]
    rows = torch.tensor([0, 2, 3])  # of two boxes face to face each finds contact points of its own
    assert_same_looks(ducks, reference, rows)


def test_looking_does_not_change_the_future(ducks):
    walk(ducks, 3)
    saved = ducks.save(EVERY)
    walk(ducks, 5, 3)
    unlooked = ducks.qpos.clone()
    ducks.load(EVERY, saved)
    for step in range(3, 8):
        ducks.refresh(EVERY)
        walk(ducks, 1, step)
    assert torch.equal(ducks.qpos, unlooked)


def test_reset_and_refresh_leave_other_ducks_alone(ducks):
    walk(ducks, 5)
    others = torch.tensor([0, 2, 3])
    state, seen = ducks.save(others), looks(ducks)
    stand(ducks, torch.tensor([1]))
    ducks.refresh(torch.tensor([1]))
    assert ducks.time().tolist()[1] == 0.0
    assert all(torch.equal(now, state[name]) for name, now in ducks.save(others).items())
    assert all(torch.equal(now[others], seen[name][others]) for name, now in looks(ducks).items())
    assert not torch.equal(looks(ducks)["foot_positions"][1], seen["foot_positions"][1])


def test_saved_ducks_replay_bit_for_bit_in_another_batch(ducks):
    walk(ducks, 5)
    saved = ducks.save(EVERY)
    walk(ducks, 5, 5)
    other = ducks.like(DUCKS)
    other.load(EVERY, saved)
    walk(other, 5, 5)
    assert torch.equal(other.qpos, ducks.qpos)
    assert torch.equal(other.time(), ducks.time())
    assert_same_looks(other, ducks)


def test_what_was_saved_does_not_follow_the_ducks(ducks):
    saved = ducks.save(EVERY)
    height = saved["qpos"][:, 2].clone()
    walk(ducks, 5)
    assert torch.equal(saved["qpos"][:, 2], height)


@pytest.mark.parametrize(
    ("field", "value"), [("qpos", math.nan), ("qpos", math.inf), ("qvel", math.nan), ("qvel", 1e20)]
)
def test_a_diverged_duck_is_seen_and_a_reset_heals_it(ducks, field, value):
    healthy = ducks.like(DUCKS)
    walk(ducks, 3)
    walk(healthy, 3)
    getattr(ducks, field)[2, 7] = value
    walk(ducks, 3, 3)
    walk(healthy, 3, 3)
    assert ducks.diverged().tolist() == [False, False, True, False]
    for physics in (ducks, healthy):
        stand(physics, torch.tensor([2]))
        walk(physics, 5, 6)
    assert not ducks.diverged().any()
    assert torch.equal(ducks.qpos, healthy.qpos)


def test_a_duck_without_room_for_its_contacts_counts_as_diverged(ducks, monkeypatch):
    monkeypatch.setattr(warp_module, "CONTACTS", 8)  # standing takes 16
    cramped = ducks.like(1)
    only, controls = torch.tensor([0]), cramped.stand_qpos[None, 7:]
    cramped.step(controls)
    assert not cramped.diverged().any()  # 3 mm above the floor
    for _ in range(5):
        cramped.step(controls)
    assert cramped.diverged().all()
    stand(cramped, only)
    assert not cramped.diverged().any()


def test_room_is_for_all_constraints_of_the_duck_at_once(ducks):
    # 64 contacts of 4 pyramid edges, dry friction and a limit of each of 14 joints
    assert constraint_rows(ducks.model) == 64 * 4 + 14 + 14


def test_a_scene_that_mujoco_warp_cannot_simulate_is_refused_by_name(ducks, tmp_path):
    scene = tmp_path / "duck.xml"
    text = BUILT_IN.read_text(encoding="utf-8")
    scene.write_text(text.replace("<default>", '<option><flag override="enable"/></option><default>', 1))
    with pytest.raises(ConfigError, match="cannot simulate this scene: mjENBL_OVERRIDE"):
        WarpPhysics(1, PhysicsOptions(), model=load_model(scene=scene, only_motion=True))


def test_motors_are_refused_with_what_has_them():
    with pytest.raises(ConfigError, match=r"actuator is 'xl330'.*use physics='native'"):
        WarpPhysics(1, PhysicsOptions(actuator="xl330"))


@pytest.mark.parametrize(
    ("column", "value"), [("p_gain", 150.0), ("friction_scale", 1.1), ("delay", 0.02), ("voltage", 7.0)]
)
def test_servos_that_differ_are_refused_by_name(ducks, column, value):
    ducks.servos.apply(EVERY)
    kept = getattr(ducks.servos, column).clone()
    getattr(ducks.servos, column)[2] = value
    with pytest.raises(ConfigError, match=f"{column} of simulation 2 .*use physics='native'"):
        ducks.servos.apply(EVERY)
    getattr(ducks.servos, column)[:] = kept
    ducks.servos.apply(EVERY)


def test_model_fields_that_differ_are_refused_by_name(ducks):
    with pytest.raises(ConfigError, match="body_mass cannot differ between ducks on mujoco-warp"):
        ducks.expand("body_mass")


@pytest.mark.parametrize("device", ["gpu", "cuda:99", "mps"])
def test_an_unknown_device_is_refused_with_those_there_are(ducks, device):
    with pytest.raises(ConfigError, match=rf"device is '{device}'; choose one of \['cpu'"):
        WarpPhysics(1, PhysicsOptions(), device=device)


def test_without_mujoco_warp_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco_warp", None)
    with pytest.raises(ConfigError, match=r"pip install 'microduck-toolkit\[warp\]'"):
        WarpPhysics(1, PhysicsOptions())


def test_the_environment_runs_on_warp_as_on_native(batch):
    row = [MicroDuckEnv.speed_range_task()]
    runs = []
    for physics in ("native", "warp"):
        env = MicroDuckEnv(tasks=row, num_envs=DUCKS, physics=physics, diagnostics=True, seed=0)
        state, dice = env.reset(), torch.Generator().manual_seed(0)
        for _ in range(3):
            action = 2 * torch.rand(DUCKS, 14, generator=dice) - 1
            state = env.step(state.set("action", action))["next"]
        runs.append(torch.cat([state["observation"], state["reward"], state["diagnostic_time"]], -1))
        assert env[1:3].rollout(2)["observation"].shape == (2, 2, 56)
    assert torch.allclose(*runs, atol=2e-4)  # joint velocities of 10 rad/s, in float32
