"""What must hold for every task that ships, on every observation layout."""

import pytest
import torch
from torchrl.envs.utils import check_env_specs

from hardware import contract
from microduck import MicroDuckEnv
from microduck.learning.recipes import LIBRARIES

PRESETS = {
    "tracking": lambda: [MicroDuckEnv.tracking_task()],
    "standing": lambda: [MicroDuckEnv.standing_task()],
    "speed_range": lambda: [MicroDuckEnv.speed_range_task()],
    "sidestep": lambda: [MicroDuckEnv.sidestep_task()],
    "turning": lambda: [MicroDuckEnv.turning_task()],
    "jump": lambda: [MicroDuckEnv.jump_task()],
    "hop forward": lambda: [MicroDuckEnv.jump_task(0.2)],
    **{f"library {name}": build for name, build in LIBRARIES.items()},
}
TURN = contract.offsets("sensor")["command"] + 2
# Columns that are one number for all ducks all the time, by the command box of the task.
FIXED = {
    "state": {9: "vx", 10: "vy"},
    "sensor": {6: "vx", 7: "vy", TURN: "yaw rate"},
}

every = pytest.mark.parametrize("preset", PRESETS)
layouts = pytest.mark.parametrize("layout", contract.LAYOUTS)


def make(preset, layout, seed=0, num_envs=16, **settings):
    return MicroDuckEnv(
        tasks=PRESETS[preset](), layout=layout, num_envs=num_envs, action_scale=1.0, seed=seed, **settings
    )


def act(env, steps=40):
    """Return a rollout with fixed random actions across resets."""
    generator = torch.Generator().manual_seed(7)

    def policy(td):
        return td.set("action", 2 * torch.rand(env.action_spec.shape, generator=generator) - 1)

    return env.rollout(steps, policy, break_when_any_done=False)


@layouts
@every
def test_specs_hold(preset, layout):
    check_env_specs(make(preset, layout, num_envs=2, diagnostics=True))


@layouts
@every
def test_random_actions_give_finite_numbers_and_equal_seeds_equal_ones(preset, layout):
    first, second = (act(make(preset, layout)) for _ in range(2))
    other = act(make(preset, layout, seed=1))
    for key in ("observation", "reward"):
        values = first["next", key]
        assert torch.isfinite(values).all()
        assert torch.equal(values, second["next", key])
        assert not torch.equal(values, other["next", key])
    assert (first["next", "reward"].amin() < -1) and first["next", "terminated"].any()


@layouts
@every
def test_no_two_rows_and_no_caller_share_memory(preset, layout):
    env = make(preset, layout)
    state = env.reset()
    before = state.clone()
    for key in list(state.keys()):
        state[key][0] = 1 - state[key][0].int()  # a caller who scribbles into what it got
        assert torch.equal(state[key][1:], before[key][1:]), key
    clean = make(preset, layout)
    clean.reset()
    action = torch.full(env.action_spec.shape, 0.3)
    mine, theirs = (one.step(before.clone().set("action", action.clone()))["next"] for one in (env, clean))
    assert all(torch.equal(mine[key], theirs[key]) for key in set(theirs.keys()))


@layouts
@every
def test_no_observation_is_constant_but_the_declared_ones(preset, layout):
    env = make(preset, layout)
    seen = act(env)["next", "observation"].reshape(-1, contract.width(layout))
    constant = set((seen == seen[0]).all(0).nonzero().squeeze(-1).tolist())
    low, high = env._rows.low.amin(0), env._rows.high.amax(0)  # over all tasks
    fixed = {column for i, column in enumerate(FIXED[layout]) if low[i] == high[i]}
    assert constant == fixed
