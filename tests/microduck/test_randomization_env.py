"""Randomisation as an environment shows it: off, seeds, snapshots, keys, pictures."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image
from tensordict import TensorDict
from torchrl.envs.utils import check_env_specs

from hardware import contract
from hardware.errors import ConfigError
from microduck import MicroDuckEnv, PhysicsOptions
from microduck.env import privileged
from microduck.randomization import Randomization, Twin, plot_randomized
from microduck.randomization.parameters import COLUMNS, PARAMETERS

FULL = Randomization.full()
NO_SUPPLY = FULL.without("voltage", "sag")
XL330 = PhysicsOptions(actuator="xl330")


def make(num_envs=4, **settings):
    return MicroDuckEnv(num_envs=num_envs, **{"seed": 0, **settings})


def actions(count, steps, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return 2 * torch.rand((steps, count, 14), generator=generator) - 1


def advance(env, chosen, keys=("observation", "reward")):
    rows = []
    for action in chosen:
        after = env.step(TensorDict({"action": action}, batch_size=env.batch_size))["next"]
        rows.append(torch.cat([after[key] for key in keys], -1))
    return torch.stack(rows)


def test_off_writes_nothing_into_the_model_draws_nothing_and_disturbs_nothing():
    env = make(privileged=True)
    env.reset()
    kept = env.rng_state
    chosen = actions(4, 10)
    rows = advance(env, chosen, ("observation", "privileged"))
    assert torch.equal(rows[..., :56], rows[..., 56:112])
    assert torch.equal(env.rng_state, kept)
    for name in (
        "geom_friction",
        "body_mass",
        "body_ipos",
        "dof_armature",
        "actuator_delay",
        "actuator_gainprm",
    ):
        assert env.physics.batch.expanded(name) is None
    assert env.randomized.is_empty()


def test_nominal_ranges_move_a_duck_bit_for_bit_as_none_do():
    plain, nominal = make(), make(randomization=Randomization.off())
    plain.reset()
    nominal.reset()
    assert torch.equal(plain.physics.qpos, nominal.physics.qpos)
    chosen = actions(4, 20)
    told = [advance(env, chosen) for env in (plain, nominal)]
    assert torch.equal(plain.physics.qpos, nominal.physics.qpos)
    assert torch.allclose(*told, atol=1e-6)  # the direction of gravity has length 1 to the last bit


def test_equal_seeds_give_equal_ducks_noise_and_pushes():
    ranges = replace(NO_SUPPLY, push_interval=(0.1, 0.2))
    runs, ducks = [], []
    for seed in (3, 3, 4):
        env = make(seed=seed, randomization=ranges)
        env.reset()
        runs.append(advance(env, actions(4, 12)))
        ducks.append(env.randomized)
    assert torch.equal(runs[0], runs[1]) and not torch.allclose(runs[0], runs[2], atol=1e-3)
    assert (ducks[0] == ducks[1]).all() and not torch.equal(ducks[0]["sag"] + 1, ducks[2]["delay"])
    assert not torch.equal(ducks[0]["delay"], ducks[2]["delay"])
    assert len(ducks[0]["delay"].unique()) == 4


def test_set_seed_gives_the_same_ducks_again():
    env = make(randomization=NO_SUPPLY)
    env.set_seed(7)
    env.reset()
    first = env.randomized
    env.reset()
    assert not torch.equal(env.randomized["delay"], first["delay"])
    env.set_seed(7)
    env.reset()
    assert torch.equal(env.randomized["encoder_offset"], first["encoder_offset"])


def test_what_the_ducks_are_can_be_read_by_name():
    env = make(randomization=FULL, physics_options=XL330)
    env.reset()
    told = env.randomized
    assert set(told.keys()) == {parameter.name for parameter in PARAMETERS}
    assert told.batch_size == (4,)
    assert told["encoder_offset"].shape == (4, 14) and told["trunk_com"].shape == (4, 3)
    assert told["voltage"].shape == (4,) and bool(((told["voltage"] >= 6.5) & (told["voltage"] <= 8.2)).all())
    told["voltage"].zero_()
    assert env.randomized["voltage"].all()  # a copy


def test_all_ducks_are_one_twin_when_the_ranges_hold_no_other():
    twin = Twin.draw(FULL, 5)
    env = make(3, randomization=Randomization.of(twin), physics_options=XL330)
    env.reset()
    for name, value in env.randomized.items():
        assert value.tolist() == [pytest.approx(getattr(twin, name), rel=1e-12)] * 3, name


# Snapshots


def test_a_share_of_the_ducks_stays_nominal_and_is_never_pushed():
    ranges = replace(NO_SUPPLY, push_interval=(0.02, 0.02), nominal_share=0.25)
    env = make(400, randomization=ranges, diagnostics=True)
    env.reset()
    friction = env.randomized["sole_friction"]
    nominal = (friction == 1.0).squeeze()
    assert 70 <= int(nominal.sum()) <= 130  # a quarter of 400, give or take three deviations of 8.7
    assert not env.randomized["delay"][nominal].any() and bool(env.randomized["delay"][~nominal].all())
    action = TensorDict({"action": torch.zeros(400, 14)}, batch_size=[400])
    pushed = env.step(action)["next", "diagnostic_push"].any(-1)
    assert torch.equal(pushed, ~nominal)


def test_a_snapshot_goes_on_bit_for_bit_with_its_ducks_and_their_pushes():
    ranges = replace(FULL, push_interval=(0.1, 0.4))
    env = make(randomization=ranges, physics_options=XL330, privileged=True)
    env.randomization_strength = 0.6
    env.reset()
    advance(env, actions(4, 7))
    assert env[1].randomization_strength == 0.6
    kept, twin, chosen = env[:], env[:], actions(4, 20, seed=2)
    first = advance(env, chosen, ("observation", "privileged"))
    assert torch.equal(advance(twin, chosen, ("observation", "privileged")), first)
    env.reset()
    env[:] = kept
    assert torch.equal(advance(env, chosen, ("observation", "privileged")), first)


def test_some_ducks_are_taken_over_with_what_they_are():
    source, env = make(2, seed=1, randomization=NO_SUPPLY), make(randomization=NO_SUPPLY)
    source.reset()
    env.reset()
    before = env.randomized
    env[[3, 1]] = source
    after = env.randomized
    assert torch.equal(after["trunk_com"][[3, 1]], source.randomized["trunk_com"])
    assert torch.equal(after["trunk_com"][[0, 2]], before["trunk_com"][[0, 2]])
    theirs = source.physics.expand("body_ipos")
    assert torch.equal(env.physics.expand("body_ipos")[[3, 1]], theirs)
    with pytest.raises(ConfigError, match="randomization is None in the source"):
        env[0] = make(1)


# Keys


def test_specs_hold_with_everything_on():
    check_env_specs(make(randomization=FULL, physics_options=XL330, privileged=True, diagnostics=True))


def test_diagnostics_tell_the_properties_and_pushes():
    env = make(randomization=NO_SUPPLY, diagnostics=True)
    told = env.reset()
    for name, value in env.randomized.items():
        assert torch.equal(told[f"diagnostic_randomized_{name}"], value.float().reshape(4, -1)), name
    assert told["diagnostic_push"].tolist() == [[0.0, 0.0]] * 4
    assert not any("randomized" in key for key in make(diagnostics=True).reset().keys())  # noqa: SIM118


def test_the_privileged_key_is_truth_then_properties_of_a_fixed_width():
    env = make(randomization=NO_SUPPLY, layout="sensor", privileged=True, diagnostics=True)
    env.reset()
    told = env.step(TensorDict({"action": actions(4, 1)[0]}, batch_size=[4]))["next"]
    seen, features = told["privileged"], env.features
    assert seen.shape == (4, privileged.WIDTH) and seen.dtype == torch.float32
    at = contract.offsets("state")
    assert torch.equal(seen[:, 0:3], features["projected_gravity"])
    place = at["linear_velocity"]
    assert torch.equal(seen[:, place : place + 3], features["body_velocity"])
    expected = [told["yaw_rate_command"][:, 0], features["heading"], features["base_height"]]
    assert torch.equal(seen[:, 56:59], torch.stack(expected, -1))
    assert torch.equal(seen[:, 59:61], features["contacts"].float())
    assert torch.equal(seen[:, 61:63], features["foot_heights"])
    properties = seen[:, 63:]
    assert properties.shape == (4, COLUMNS) and properties.abs().max() <= 1.0 + 1e-6
    # Friction of 0.7 to 1.3 is -1 to 1.
    assert torch.allclose(properties[:, 0], ((env.randomized["sole_friction"] - 1) / 0.3).float(), atol=1e-6)


def test_the_privileged_key_is_as_wide_without_randomisation_and_holds_zeros():
    env = make(privileged=True)
    seen = env.reset()["privileged"]
    assert seen.shape == (4, privileged.WIDTH)
    assert not seen[:, 63:].any()
    assert seen[:, 58].tolist() == pytest.approx(env.physics.qpos[:, 2].tolist(), abs=1e-6)
    assert make(pixels_only=True, from_pixels=True).observation_spec.get("privileged", None) is None


def test_a_partial_reset_keeps_what_the_others_were_told():
    env = make(randomization=NO_SUPPLY, privileged=True)
    env.reset()
    env.step(TensorDict({"action": actions(4, 1)[0]}, batch_size=[4]))
    before = env._seen.clone()
    mask = torch.tensor([[False], [True], [False], [False]])
    told = env._reset(TensorDict({"_reset": mask}, batch_size=[4]))
    for key in ("observation", "privileged"):
        assert torch.equal(told[key][[0, 2, 3]], before[key][[0, 2, 3]])
        assert not torch.equal(told[key][1], before[key][1])


# Pictures


def test_histograms_are_drawn_of_an_environment_and_of_a_rollout(tmp_path):
    ranges = replace(Randomization.off(), sole_friction=(0.7, 1.3), trunk_com=(-0.01, 0.01))
    env = make(64, randomization=ranges, diagnostics=True)
    env.reset()
    for name, source in {"env": env, "table": env.randomized, "rollout": env.rollout(2)}.items():
        path = tmp_path / f"{name}.png"
        plot_randomized(source, path, ranges)
        picture = np.asarray(Image.open(path).convert("RGB"))
        assert picture.shape[1] == 1600
        yellow = (np.abs(picture.astype(int) - [242, 183, 5]).sum(-1) < 30).mean()
        assert yellow > 0.05  # bars


def test_nothing_to_draw_says_so(tmp_path):
    with pytest.raises(ConfigError, match="nothing was randomised"):
        plot_randomized(make(), tmp_path / "none.png")
