"""The environment against TorchRL's own, on one model, state by state."""

import warnings

import numpy as np
import pytest
import torch
from tensordict import TensorDict
from torchrl.envs import MicroDuckEnv as Peer

from microduck import MicroDuckEnv, MicroDuckGait

STEPS, COPY_EVERY, CLOSE = 200, 10, 1e-5
PRESETS = {
    "tracking": ("tracking_task", (0.03,)),
    "backward": ("tracking_task", (-0.1,)),
    "standing": ("standing_task", ()),
    "speed_range": ("speed_range_task", (0.1, 0.3)),
    "sidestep": ("sidestep_task", (0.15,)),
    "jump": ("jump_task", ()),
    "hop forward": ("jump_task", (0.2,)),
    "turning": ("turning_task", (1.0,)),
}
# TorchRL 0.14.1 measures these in the body frame; later versions, and this toolkit, in the world frame.
MOVED = set() if "turn" in Peer.REWARD_TERMS else {"drift", "hop_rhythm", "launch"}


def build(scene, preset):
    method, arguments = PRESETS[preset]
    try:
        theirs = getattr(Peer, method)(*arguments)
    except (AttributeError, TypeError):
        pytest.skip(f"the installed TorchRL has no {preset} preset")
    peer = Peer(scene, backend="mujoco", tasks=[theirs], diagnostics=True, seed=1)
    ours = MicroDuckEnv(
        scene, backend="mujoco", tasks=[getattr(MicroDuckEnv, method)(*arguments)], diagnostics=True, seed=1
    )
    return peer, ours


def copy_state(peer, ours):
    data = peer._backend._d
    names = ("qpos", "qvel", "act", "ctrl", "qacc_warmstart")
    saved = {name: np.array(getattr(data, name))[None] for name in names}
    ours.physics.load(torch.arange(1), {**saved, "time": np.array([[data.time]])})


def start_alike(peer, ours):
    state = peer.reset()
    given = {"qpos": peer.get_state()["qpos"], "qvel": peer.get_state()["qvel"], "command": state["command"]}
    again = ours.reset(TensorDict(given, batch_size=[1]), set_state=True)
    copy_state(peer, ours)
    return state, again


def differences(theirs, ours):
    """Return the largest difference of each thing both environments tell."""
    shared = [
        key
        for key in set(theirs.keys())
        if key.startswith("diagnostic_") and key.removeprefix("diagnostic_reward_") not in MOVED
    ]
    return {
        key: float((theirs[key].float() - ours[key].float()).abs().max())
        for key in ("observation", "command", *shared)
    }


def shared_reward(step, reward):
    """Return the reward without the terms that only one side has or measures in another frame."""
    other = [
        step[key]
        for key in set(step.keys())
        if key.startswith("diagnostic_reward_")
        and (
            key.removeprefix("diagnostic_reward_") in MOVED
            or key.removeprefix("diagnostic_reward_") not in Peer.REWARD_TERMS
        )
    ]
    return float(reward - sum(other, torch.zeros(1, 1)))


@pytest.mark.parametrize("policy", ["random", "gait"])
@pytest.mark.parametrize("preset", PRESETS)
def test_observations_rewards_and_endings_are_torchrls(plain_scene, preset, policy):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer, ours = build(plain_scene, preset)
    generator, gait = torch.Generator().manual_seed(0), MicroDuckGait()
    state, _ = start_alike(peer, ours)
    worst: dict[str, float] = {}
    endings = 0
    for step in range(1, STEPS + 1):
        action = gait(state.select("observation").clone())["action"]
        if policy == "random":
            action = 1.2 * (2 * torch.rand(1, 14, generator=generator) - 1)  # some beyond the clip
        theirs, own = (
            env.step(TensorDict({"action": action}, batch_size=[1]))["next"] for env in (peer, ours)
        )
        found = differences(theirs, own)
        found["reward"] = abs(shared_reward(theirs, theirs["reward"]) - shared_reward(own, own["reward"]))
        worst = {key: max(value, worst.get(key, 0.0)) for key, value in found.items()}
        for flag in ("done", "terminated", "truncated"):
            assert bool(theirs[flag]) == bool(own[flag]), (step, flag)
        state = theirs
        if bool(theirs["done"]):
            endings += 1
            state, _ = start_alike(peer, ours)
        elif step % COPY_EVERY == 0:
            copy_state(peer, ours)
    assert {key: value for key, value in worst.items() if not value <= CLOSE} == {}
    assert len(worst) >= 18 - len(MOVED) + 17
    if policy == "random":
        assert endings > 0  # falls were compared as well
