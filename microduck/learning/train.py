"""The training loop: collect, update, log, save; stops on time, on transitions or on Ctrl-C."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from microduck.env import MicroDuckEnv
from microduck.learning.collect import Collector, CollectStats
from microduck.learning.config import TrainConfig
from microduck.learning.log import LogRow, TrainingLog, plot_log, read_log
from microduck.learning.ppo import PPO, UpdateStats
from microduck.learning.recipes import find_library
from microduck.learning.run_folder import RunFolder, load_weights, make_networks
from microduck.learning.symmetry import Mirror
from microduck.tasks import MicroDuckTask

CHECKPOINT_EVERY_S = 60.0
"""A crash costs at most about this much training [s]."""


class Trainer:
    """A run that can go on where it stopped.

    Args:
        run: its folder, with configuration and library in it.
        config: its configuration.
        library: its tasks.

    Attributes:
        transitions: control steps so far over all ducks.
        seconds: training time so far [s].
    """

    def __init__(self, run: RunFolder, config: TrainConfig, library: MicroDuckTask) -> None:
        torch.manual_seed(config.seed)
        self.run_folder, self.config = run, config
        self.policy, self.critic = make_networks(config, library.batch_size[0])
        mirror = Mirror(config.layout, library) if config.mirror else None
        self.ppo = PPO(self.policy, self.critic, config, mirror)
        self.env = MicroDuckEnv(
            tasks=library,
            num_envs=config.num_envs,
            layout=config.layout,
            action_scale=config.action_scale,
            physics_options=config.physics_options,
            seed=config.seed,
        )
        self.transitions, self.seconds, self._length = 0, 0.0, 0.0

    @classmethod
    def start(cls, run: RunFolder, config: TrainConfig) -> Trainer:
        """Return the trainer of a new run in an empty folder."""
        library = find_library(config.library)
        trainer = cls(run, config, library)  # refuses what cannot be trained before a file is written
        run.create(config, library)
        trainer.save()  # so that a run killed at any moment can be resumed
        return trainer

    @classmethod
    def resume(cls, run: RunFolder, config: TrainConfig) -> Trainer:
        """Return a trainer at the last checkpoint of a run; its ducks begin new episodes."""
        trainer = cls(run, config, run.library(rewarded=True))
        trainer._restore()
        return trainer

    def train(self, notify: Callable[[LogRow], None], stop: Callable[[], bool] = lambda: False) -> None:
        """Train until the configuration's limit; always leaves a checkpoint and the curves.

        Args:
            notify: called with each row of the log.
            stop: asked between two updates whether to end early.

        Raises:
            TrainingError: a value that is not finite came up.
        """
        log = TrainingLog(self.run_folder.log_file, keep=self.transitions)
        collector = Collector(self.env, self.ppo.actor)
        saved = self.seconds
        try:
            while self.progress() < 1 and not stop():
                row = self._iterate(collector)
                log.append(row)
                notify(row)
                if self.seconds - saved >= CHECKPOINT_EVERY_S:
                    self.save()
                    saved = self.seconds
        finally:
            self.save()
            plot_log(read_log(log.path), self.run_folder.plot_file)

    def progress(self) -> float:
        """Return how much of the configuration's limit is reached, 1 or more at the end."""
        limit = self.config.transitions
        return max(self.seconds / (60 * self.config.minutes), self.transitions / limit if limit else 0.0)

    def _iterate(self, collector: Collector) -> LogRow:
        start = time.perf_counter()
        batch, collected = collector.collect(self.config.steps)
        updated = self.ppo.update(batch)
        elapsed = time.perf_counter() - start
        self.transitions += batch.numel()
        self.seconds += elapsed
        return self._row(batch.numel() / elapsed, collected, updated)

    def _row(self, rate: float, collected: CollectStats, updated: UpdateStats) -> LogRow:
        if collected.episode_length is not None:
            self._length = collected.episode_length
        return LogRow(
            transitions=self.transitions,
            seconds=self.seconds,
            rate=rate,
            episode_length=self._length,
            speed_error=collected.speed_error,
            reward=collected.reward,
            kl=updated.kl,
            policy_loss=updated.policy_loss,
            value_loss=updated.value_loss,
            learning_rate=updated.learning_rate,
            std=float(self.policy.log_std.detach().exp().mean()),
        )

    def save(self) -> None:
        """Write a checkpoint."""
        self.run_folder.save_checkpoint(
            {
                "policy": self.policy.state_dict(),
                "critic": self.critic.state_dict(),
                "optimiser": self.ppo.optimiser.state_dict(),
                "transitions": self.transitions,
                "seconds": self.seconds,
                "torch_rng": torch.get_rng_state(),
                "env_rng": self.env.rng_state,
            }
        )

    def _restore(self) -> None:
        state = self.run_folder.load_checkpoint()
        load_weights(self.policy, state, "policy", self.run_folder)
        load_weights(self.critic, state, "critic", self.run_folder)
        self.ppo.optimiser.load_state_dict(state["optimiser"])
        self.transitions, self.seconds = state["transitions"], state["seconds"]
        torch.set_rng_state(state["torch_rng"])
        self.env.rng_state = state["env_rng"]
