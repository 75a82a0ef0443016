"""Run by torchrun in two processes: they learn together what one learns alone from all the data.

Then they train, with faults in one of them, into the first folder named, and by command into the second.
"""

import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import torch
from tensordict import TensorDict
from torch.nn.utils import parameters_to_vector

from export.cli import main
from hardware import contract
from microduck.env import privileged
from microduck.learning import ranks
from microduck.learning import train as training
from microduck.learning.config import TrainConfig
from microduck.learning.ppo import PPO
from microduck.learning.ranks import ALONE, Ranks, joined
from microduck.learning.run_folder import RunFolder, make_networks
from microduck.learning.train import Trainer
from microduck.rewards import REWARD_TERMS

TASKS = 2
DUCKS = 24


def learner(joint: Ranks) -> PPO:
    """Return a learner that is the same everywhere, and takes each batch as a whole."""
    torch.manual_seed(0)
    config = TrainConfig(minibatches=1, epochs=3)
    return PPO(*make_networks(config, TASKS), config, None, joint)


def batch(ppo: PPO) -> TensorDict:
    """Return transitions of `DUCKS` ducks, the same in every process; the first half has other tasks."""
    torch.manual_seed(1)
    size = (DUCKS, 5)
    task_id = (torch.rand(*size, 1) + torch.linspace(-0.4, 0.4, DUCKS).view(-1, 1, 1) > 0.5).long()
    seen = {
        "observation": torch.randn(*size, contract.width("sensor")) + torch.arange(DUCKS).view(-1, 1, 1) / 10,
        "privileged": torch.randn(*size, privileged.WIDTH),
        "task_id": task_id,
    }
    rows = ppo.actor(TensorDict(seen, size)).detach()
    done = torch.rand(*size, 1) < 0.1
    after = {"privileged": torch.randn(*size, privileged.WIDTH), "task_id": task_id}
    ends = {"reward": torch.randn(*size, 1) + 3 * task_id, "done": done, "terminated": done}
    rows["next"] = TensorDict({**after, **ends}, size)
    return rows


def numbers(ppo: PPO) -> torch.Tensor:
    """Return all weights and observation statistics."""
    networks = (ppo.policy, ppo.critic)
    return torch.cat([value.flatten().float() for one in networks for value in one.state_dict().values()])


def learn_the_same_as_one(joint: Ranks) -> None:
    """Compare two updates of half a batch in each process with those of the whole batch in one."""
    together, alone, half = learner(joint), learner(ALONE), learner(ALONE)
    whole = batch(alone)
    mine = whole[joint.rank * DUCKS // 2 :][: DUCKS // 2]
    for _ in range(2):
        stats = together.update(mine.clone())
        wanted = alone.update(whole.clone())
        half.update(mine.clone())
    assert abs(stats.kl - wanted.kl) < 1e-4 * wanted.kl, (stats, wanted)
    assert stats.learning_rate == wanted.learning_rate
    off = float((numbers(together) - numbers(alone)).abs().max())
    assert off < 2e-5, off
    assert float((numbers(half) - numbers(alone)).abs().max()) > 1e-3
    assert same_everywhere(joint, numbers(together))


def same_everywhere(joint: Ranks, value: torch.Tensor) -> bool:
    """Return whether every process has the same."""
    return joint.count == 2 and torch.equal(joint.mean(value), value)


def train(joint: Ranks, folder: Path) -> None:
    """Train for some batches, of which process 1 spoils the first and the second."""
    spoilt = [float("nan")] + [3e38] * 8 if joint.rank == 1 else []

    @REWARD_TERMS.register("of_a_user", weight=1.0, per_second=False)
    def of_a_user(features, params):
        return torch.full_like(features["upright"], spoilt.pop(0) if spoilt else 0.0)

    training.task_scores = lambda *_: torch.tensor([0.25 + 0.5 * joint.rank])
    config = TrainConfig(num_envs=32, steps=8, minibatches=2, transitions=1536)
    trainer = Trainer.start(RunFolder(folder), replace(config, evaluate_every_minutes=1e-9), joint)
    trainer.train(lambda row: None)
    assert (trainer.transitions, trainer.faults.dropped, trainer.faults.undone) == (1536, 1, 1)
    assert trainer.best is not None and trainer.best.tolist() == [0.5]
    assert same_everywhere(joint, parameters_to_vector(trainer.policy.parameters()))
    assert same_everywhere(joint, torch.tensor(trainer.seconds))
    assert not same_everywhere(joint, trainer.env.physics.qpos)  # each has ducks of its own
    assert trainer.config.threads == joint.cpus


if __name__ == "__main__":
    with joined() as joint:
        learn_the_same_as_one(joint)
        train(joint, Path(sys.argv[1]))
        REWARD_TERMS.unregister("of_a_user")
        # Processes join once only: the command finds them joined.
        ranks.joined = lambda: nullcontext(joint)
        code = main(["train", sys.argv[2], *sys.argv[3:]])
    sys.exit(code)
