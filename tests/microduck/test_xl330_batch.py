"""Servos that differ from simulation to simulation: table, supply, delay, and what stays as it was."""

import re
from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch

from hardware.errors import ConfigError
from microduck.physics.native import NativePhysics
from microduck.physics.options import PhysicsOptions
from microduck.physics.servo_bank import COLUMNS
from microduck.scene import BUILT_IN

DOCS = (Path(__file__).parents[2] / "docs" / "servo.md").read_text(encoding="utf-8")
DUCKS = 4
EVERY, ONE, ONLY = torch.arange(DUCKS), torch.tensor([1]), torch.tensor([0])
OTHERS = torch.tensor([0, 2, 3])
ACTUATORS = ("position", "xl330")


@pytest.fixture(params=ACTUATORS)
def ducks(request):
    return made(request.param)


def made(actuator, **options):
    physics = NativePhysics(DUCKS, PhysicsOptions(actuator=actuator, threads=1, **options))
    stand(physics)
    return physics


def stand(physics, ids=EVERY, qpos=None):
    qpos = physics.stand_qpos.expand(len(ids), -1) if qpos is None else qpos
    physics.reset(ids, qpos, torch.zeros(len(ids), 20))


def targets(physics, count, seed=0):
    """Return random targets around STAND, the same for all ducks, (count, DUCKS, 14)."""
    dice = torch.Generator().manual_seed(seed)
    drawn = 0.4 * (2 * torch.rand(count, 1, 14, generator=dice, dtype=torch.float64) - 1)
    return (physics.stand_qpos[7:] + drawn).expand(-1, DUCKS, -1)


def walk(physics, steps):
    for target in steps:
        physics.step(target)


# Nothing where there is nothing to do


def test_an_untouched_table_leaves_the_plain_duck_bit_for_bit():
    physics = made("position")
    physics.servos.apply(EVERY)
    plain = mujoco.MjModel.from_xml_string(BUILT_IN.read_text(encoding="utf-8"))
    data = mujoco.MjData(plain)
    mujoco.mj_resetDataKeyframe(plain, data, 0)
    for target in targets(physics, 30):
        physics.step(target)
        data.ctrl[:] = target[0].numpy()
        mujoco.mj_step(plain, data, 4)
    assert np.array_equal(physics.qpos[3].numpy(), data.qpos)
    fields = ("actuator_gainprm", "actuator_biasprm", "dof_frictionloss", "actuator_delay")
    assert not any(physics.expanded(name) for name in fields)


def test_values_that_were_varied_and_set_back_leave_no_trace(ducks):
    servos = ducks.servos
    fresh = ducks.like(DUCKS)
    for value, gain, delay in ((1.7, 150.0, 0.02), (1.0, 200.0, 0.0)):
        servos.friction_scale[ONE], servos.p_gain[ONE], servos.delay[ONE] = value, gain, delay
        servos.apply(ONE)
    for physics in (ducks, fresh):
        stand(physics)
        walk(physics, targets(ducks, 10))
    assert torch.equal(ducks.qpos, fresh.qpos)


# One simulation apart


@pytest.mark.parametrize(
    ("actuator", "column", "value"),
    [
        *((name, *case) for name in ACTUATORS for case in (("p_gain", 150.0), ("friction_scale", 1.5))),
        *((name, "delay", 0.015) for name in ACTUATORS),
        ("xl330", "voltage", 6.5),
        ("xl330", "sag", 0.2),
    ],
)
def test_a_value_changes_its_simulation_and_no_other(actuator, column, value):
    physics = made(actuator)
    getattr(physics.servos, column)[ONE] = value
    physics.servos.apply(ONE)
    walk(physics, targets(physics, 5))
    assert not torch.equal(physics.qpos[1], physics.qpos[0])
    assert torch.equal(physics.qpos[2], physics.qpos[0])
    assert torch.equal(physics.qpos[3], physics.qpos[0])


def test_a_row_counts_from_its_apply_on(ducks):
    ducks.servos.friction_scale[:] = 2.0
    ducks.servos.apply(ONE)
    walk(ducks, targets(ducks, 5))
    assert not torch.equal(ducks.qpos[1], ducks.qpos[0])
    assert torch.equal(ducks.qpos[2], ducks.qpos[0])
    stand(ducks)
    ducks.servos.apply(OTHERS)
    walk(ducks, targets(ducks, 5))
    assert torch.equal(ducks.qpos[1], ducks.qpos[0])


def test_servos_last_through_resets(ducks):
    ducks.servos.p_gain[ONE] = 100.0
    ducks.servos.apply(ONE)
    ends = []
    for _ in range(2):
        stand(ducks)
        walk(ducks, targets(ducks, 5))
        ends.append(ducks.qpos[1].clone())
    assert torch.equal(*ends)
    assert not torch.equal(ducks.qpos[1], ducks.qpos[0])


def test_position_servos_get_stiffness_and_friction_in_proportion():
    physics = made("position", substeps=1)
    physics.servos.p_gain[ONE], physics.servos.friction_scale[ONE] = 100.0, 3.0
    physics.servos.apply(ONE)
    physics.step(physics.qpos[:, 7:] + 0.1)
    assert physics.joint_torques()[1].numpy() == pytest.approx(0.0275)
    assert physics.joint_torques()[0].numpy() == pytest.approx(0.055)
    assert physics.expand("dof_frictionloss")[1, 6:].numpy() == pytest.approx(0.0144)
    assert physics.expand("dof_frictionloss")[1, :6].numpy() == pytest.approx(0.0)


# Supply


def test_supply_sags_by_the_torque_of_all_servos():
    """1 rad of error at P 200 and 7.4 V is 0.5544 N m for each of 14 servos: 7.7618 N m take 0.776 V."""
    physics = made("xl330", substeps=1)
    physics.servos.sag[ONE] = 0.1
    physics.servos.apply(ONE)
    physics.step(physics.qpos[:, 7:] + 1.0)
    assert physics.joint_torques()[0].sum() == pytest.approx(7.7618, abs=1e-4)
    assert physics.servos.supply().numpy() == pytest.approx([7.4, 6.6238, 7.4, 7.4], abs=1e-4)
    stalled = physics.qpos[:, 7:] + 3.0
    physics.qvel[:] = 0.0
    physics.step(stalled)
    # 6.6238 V stall each at 0.8624 N m, 12.073 N m together.
    assert physics.joint_torques()[1].numpy() == pytest.approx(6.6238 * 0.130189, abs=2e-4)
    assert physics.servos.supply()[1] == pytest.approx(6.1927, abs=1e-4)


def test_supply_does_not_sag_below_its_floor():
    physics = made("xl330", substeps=1)
    physics.servos.sag[:], physics.servos.voltage[:] = 0.2, 6.5
    physics.servos.apply(EVERY)
    physics.step(physics.qpos[:, 7:] + 3.0)
    assert physics.servos.supply().tolist() == [6.0] * DUCKS


def test_a_reset_rests_the_battery_of_its_simulation():
    physics = made("xl330")
    physics.servos.sag[:] = 0.1
    physics.servos.apply(EVERY)
    walk(physics, targets(physics, 5))
    before = physics.servos.supply()
    assert (before < 7.39).all()
    stand(physics, ONE)
    assert physics.servos.supply()[1] == 7.4
    assert torch.equal(physics.servos.supply()[OTHERS], before[OTHERS])


def test_friction_follows_the_load():
    physics = made("xl330")
    friction = physics.expand("dof_frictionloss")
    assert friction[:, 6:].numpy() == pytest.approx(0.009448, abs=1e-6)
    walk(physics, (physics.qpos[:, 7:] + 0.5).expand(3, -1, -1))
    loaded = physics.joint_torques().abs().max(dim=1)
    level = friction[0, 6 + int(loaded.indices[0])]
    assert 0.26 < (level - 0.00477) / loaded.values[0] < 0.40
    stand(physics, ONE)
    assert friction[1, 6:].numpy() == pytest.approx(0.009448, abs=1e-6)


# Delay


@pytest.mark.parametrize(("delay", "periods"), [(0.02, 1), (0.04, 2)])
def test_delay_shifts_the_response_by_exactly_as_many_steps(ducks, delay, periods):
    """20 ms are 4 steps of 5 ms. Commands before the reset are the joints' own angles."""
    prompt = ducks.like(DUCKS)
    qpos = ducks.stand_qpos.repeat(DUCKS, 1)
    qpos[:, 2] = 0.5
    qpos[:, 7:] += 0.1
    for physics in (ducks, prompt):
        stand(physics, qpos=qpos)
    ducks.servos.delay[:] = delay
    ducks.servos.apply(EVERY)
    given = targets(ducks, 25)
    awaited = [*[qpos[:, 7:]] * periods, *given]
    for late, early in zip(given, awaited, strict=False):
        ducks.step(late)
        prompt.step(early)
        assert torch.equal(ducks.qpos, prompt.qpos)


def test_delay_stays_as_long_as_it_was():
    """Sums of many timesteps are off in their last digits, which must not make a step more of a delay."""
    late, prompt = (NativePhysics(1, PhysicsOptions(threads=1)) for _ in range(2))
    late.servos.delay[:] = 0.02
    late.servos.apply(ONLY)
    for physics in (late, prompt):
        stand(physics, ONLY)
    dice = torch.Generator().manual_seed(0)
    last = late.stand_qpos[None, 7:]
    for _ in range(820):  # after 16 s a sum is off
        target = late.stand_qpos[7:] + 0.05 * torch.rand(1, 14, generator=dice, dtype=torch.float64)
        late.step(target)
        prompt.step(last)
        last = target
    assert torch.equal(late.qpos, prompt.qpos)


@pytest.mark.parametrize("milliseconds", [5, 15, 25])
def test_no_torque_changes_before_the_delay_is_over(milliseconds):
    physics = made("position", substeps=4)
    physics.servos.delay[:] = milliseconds / 1000
    physics.servos.apply(EVERY)
    moved = []
    for _ in range(9):
        physics.batch.bind("ctrl")[:] = physics.stand_qpos[7:].numpy() + 0.5
        physics.batch.step(nstep=1)
        moved.append(bool((physics.joint_torques()[0].abs() > 0.1).any()))
    assert moved.index(True) == milliseconds // 5


def test_a_partial_reset_forgets_the_commands_of_its_simulation_alone(ducks):
    ducks.servos.delay[:] = 0.04
    ducks.servos.apply(EVERY)
    walk(ducks, targets(ducks, 5))
    kept = ducks.save(OTHERS)
    stand(ducks, ONE)
    again = ducks.save(OTHERS)
    assert np.array_equal(kept["history"], again["history"])
    ducks.refresh(ONE)
    # STAND's own angles are in force, however far the last targets were.
    assert ducks.joint_torques()[1].abs().max() < 1e-12


# Snapshots


def varied(physics):
    servos = physics.servos
    if physics.model.actuator_gaintype[0] == mujoco.mjtGain.mjGAIN_DCMOTOR:
        servos.sag[:], servos.voltage[:] = torch.tensor([0.0, 0.1, 0.2, 0.0]), 7.0
    servos.delay[:] = torch.tensor([0.0, 0.015, 0.02, 0.03])
    servos.friction_scale[1:3] = 1.1
    servos.p_gain[2] = 180.0
    servos.apply(EVERY)
    physics.expand("geom_friction")[1, :, 0] *= 0.7
    physics.expand("body_mass")[2] *= 1.05
    physics.set_constants(EVERY)


def test_varied_ducks_replay_bit_for_bit_in_another_batch(ducks):
    varied(ducks)
    steps = targets(ducks, 10)
    walk(ducks, steps[:5])
    saved = ducks.save(EVERY)
    walk(ducks, steps[5:])
    other = ducks.like(DUCKS)
    other.load(EVERY, saved)
    walk(other, steps[5:])
    assert torch.equal(other.qpos, ducks.qpos)
    assert torch.equal(other.servos.delay, ducks.servos.delay)
    assert torch.equal(other.servos.supply(), ducks.servos.supply())
    ducks.load(EVERY, saved)
    walk(ducks, steps[5:])
    assert torch.equal(other.qpos, ducks.qpos)


def test_a_plain_duck_loaded_over_a_varied_one_is_plain_again(ducks):
    plain = ducks.like(DUCKS)
    saved = plain.save(ONE)
    varied(ducks)
    ducks.load(torch.tensor([2]), saved)
    for physics in (ducks, plain):
        walk(physics, targets(ducks, 5))
    assert torch.equal(ducks.qpos[2], plain.qpos[2])
    assert not torch.equal(ducks.qpos[1], plain.qpos[1])


# Model fields


def test_fields_are_live_and_constants_follow_their_masses(ducks):
    masses = ducks.expand("body_mass")
    assert masses.shape == (DUCKS, ducks.model.nbody)
    masses[1, 1] += 0.1
    ducks.set_constants(ONE)
    assert ducks.expand("body_subtreemass")[:, 1].numpy() == pytest.approx(
        [0.737243, 0.837243, 0.737243, 0.737243]
    )


def test_an_unknown_field_is_refused_by_name(ducks):
    with pytest.raises(ConfigError, match="body_weight is not an expandable"):
        ducks.expand("body_weight")


# Refusals


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("voltage", 5.5, r"voltage of simulation 2 is 5\.5; it must be 6 to 8\.4 V"),
        ("voltage", float("nan"), "voltage of simulation 2 is nan"),
        ("sag", -0.1, r"sag of simulation 2 is -0\.1; it must be 0 to"),
        ("p_gain", 20000.0, "p_gain of simulation 2 is 20000; it must be 0 to 16383"),
        ("friction_scale", -1.0, "friction_scale of simulation 2 is -1"),
        ("delay", 0.05, r"delay of simulation 2 is 0\.05; it must be 0 to 0\.04 s"),
    ],
)
def test_an_impossible_value_is_refused_and_nothing_is_applied(column, value, message):
    physics, fresh = made("xl330"), made("xl330")
    physics.servos.friction_scale[0] = 2.0
    getattr(physics.servos, column)[2] = value
    with pytest.raises(ConfigError, match=message):
        physics.servos.apply(EVERY)
    for one in (physics, fresh):
        walk(one, targets(one, 3))
    assert torch.equal(physics.qpos, fresh.qpos)


@pytest.mark.parametrize(("column", "value"), [("voltage", 7.0), ("sag", 0.1)])
def test_position_servos_have_no_supply_and_say_what_has(column, value):
    physics = made("position")
    getattr(physics.servos, column)[2] = value
    with pytest.raises(ConfigError, match=rf"{column} of simulation 2 is .*actuator='xl330'"):
        physics.servos.apply(EVERY)


def test_an_unknown_actuator_is_refused_with_those_there_are():
    with pytest.raises(ConfigError, match=r"actuator is 'bam'; choose one of \['position', 'xl330'\]"):
        PhysicsOptions(actuator="bam")


# Robustness


def test_a_diverged_duck_heals_at_its_reset(ducks):
    ducks.qpos[2, 9] = float("nan")
    walk(ducks, targets(ducks, 2))
    assert ducks.diverged().tolist() == [False, False, True, False]
    stand(ducks)
    walk(ducks, targets(ducks, 5))
    assert torch.equal(ducks.qpos[2], ducks.qpos[0])


@pytest.mark.parametrize("threads", [2, 3])
def test_motion_does_not_depend_on_the_threads(threads):
    ends = []
    for count in (1, threads):
        physics = NativePhysics(DUCKS, PhysicsOptions(actuator="xl330", threads=count))
        stand(physics)
        varied(physics)
        walk(physics, targets(physics, 8))
        ends.append(physics.qpos.clone())
    assert torch.equal(*ends)


# Documentation


def test_the_documented_example_runs():
    (example,) = re.findall(r"```python\n(.*?)```", DOCS, re.DOTALL)
    names = {}
    exec(example, names)
    assert names["physics"].servos.supply()[[2, 3, 5]].tolist() == [7.4, 6.5, 6.5]


@pytest.mark.parametrize("name", COLUMNS)
def test_the_documented_table_is_the_one_there_is(name):
    column = COLUMNS[name]
    (row,) = re.findall(rf"^\| `{name}` \|.*$", DOCS, re.MULTILINE)
    assert f"| {column.low:g} to {column.high:g} |" in row
    nominal = getattr(NativePhysics(1, PhysicsOptions(threads=1)).servos, name).reshape(-1)[0]
    assert row.endswith(f"| {float(nominal):g} |")
