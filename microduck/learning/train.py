"""The training loop: collect, update, log, check, save; stops on time, on transitions or on Ctrl-C."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
from tensordict import TensorDict

from hardware.errors import RewardError
from microduck.env import MicroDuckEnv
from microduck.learning.annealing import most_std, randomization
from microduck.learning.checks import FLOOR, SEED, standing, task_scores
from microduck.learning.collect import Collector, CollectStats
from microduck.learning.config import TrainConfig
from microduck.learning.faults import (
    Faults,
    NotFiniteError,
    all_or_nothing,
    memory_explained,
    refuse_bad_steps,
)
from microduck.learning.journal import Journal, check_installed
from microduck.learning.lead import Lead, first_mover
from microduck.learning.log import LogRow, ScoreRow
from microduck.learning.ppo import PPO, UpdateStats
from microduck.learning.ranks import ALONE, Ranks
from microduck.learning.recipes import find_library
from microduck.learning.resumable import Resumable
from microduck.learning.run_folder import RunFolder, make_networks
from microduck.learning.symmetry import Mirror
from microduck.tasks import MicroDuckTask
from microduck.tasks.shares import by_success, shares

Stop = Callable[[], bool]
Notify = Callable[[LogRow], None]
NotifyCheck = Callable[[ScoreRow], None]


class Trainer(Resumable):
    """A run that can go on where it stopped.

    Args:
        run: its folder.
        config: its configuration.
        library: its tasks.
        ranks: this process among those that train together.

    Attributes:
        transitions: control steps so far over all ducks of all processes.
        seconds: training time so far, by the clock on the wall of process 0 [s].
        best: scores of the best policy so far, (num_tasks,); None before the first check.
        faults: what went wrong so far.
    """

    def __init__(
        self, run: RunFolder, config: TrainConfig, library: MicroDuckTask, ranks: Ranks = ALONE
    ) -> None:
        check_installed(config)
        torch.manual_seed(config.seed)  # every process begins with the same networks
        config = replace(config, threads=config.threads or ranks.cpus)
        self.run_folder, self.config, self.ranks = run, config, ranks
        self.policy, self.critic = make_networks(config, library.batch_size[0])
        mirror = Mirror(config.layout, library) if config.mirror else None
        self.ppo = PPO(self.policy, self.critic, config, mirror, ranks)
        refuse_bad_steps(self.ppo.optimiser)
        self.env = MicroDuckEnv(
            tasks=library,
            num_envs=config.num_envs,
            layout=config.layout,
            privileged=True,
            randomization=config.randomization,
            action_scale=config.action_scale,
            physics_options=config.physics_options,
            seed=config.seed + ranks.rank,
        )
        if not ranks.first:
            torch.manual_seed(config.seed + ranks.rank)
        self.transitions, self.seconds, self._length = 0, 0.0, 0.0
        self.best: torch.Tensor | None = None
        self.faults = Faults()
        self._shares = shares(library.weight, library.names)
        self._lead = Lead(self.env, first_mover(library) if config.lead and not config.start_from else None)

    @classmethod
    def start(cls, run: RunFolder, config: TrainConfig, ranks: Ranks = ALONE) -> Trainer:
        """Return the trainer of a new run in an empty folder.

        Raises:
            TrainingError: the folder holds a run or cannot be written, or memory ran out.
        """
        if ranks.first:
            run.refuse_another()
        library = find_library(config.library)
        with memory_explained(config):
            # Refuses what cannot be trained before a file is written.
            trainer = cls(run, config, library, ranks)
        if config.start_from:
            trainer.take_over(RunFolder(Path(config.start_from)))
        if ranks.first:
            run.create(config, library, trainer.state(), trainer.fits())
        return trainer

    @classmethod
    def resume(cls, run: RunFolder, config: TrainConfig, ranks: Ranks = ALONE) -> Trainer:
        """Return a trainer at the last checkpoint of a run; its ducks begin new episodes.

        Raises:
            TrainingError: there is no checkpoint that fits, or memory ran out.
        """
        with memory_explained(config):
            trainer = cls(run, config, run.library(rewarded=True), ranks)
        trainer.restore()
        if ranks.first:
            run.sweep()
        return trainer

    def train(
        self, notify: Notify, stop: Stop = lambda: False, notify_check: NotifyCheck = lambda row: None
    ) -> None:
        """Train until the configuration's limit; always leaves a checkpoint and the curves.

        Args:
            notify: called with each row of the log.
            stop: asked between two updates whether to end early.
            notify_check: called with the result of each check of the tasks.

        Raises:
            TrainingError: too much went wrong in a row, memory ran out, or a file cannot be written.
        """
        if not self.ranks.first:
            self._loop(notify, stop, notify_check)
            return
        journal = Journal(self.run_folder, self.config, self.env.tasks.names, self.transitions)

        def update(row: LogRow) -> None:
            journal.update(row)
            notify(row)

        def check(row: ScoreRow) -> None:
            journal.check(row)
            notify_check(row)

        try:
            self._loop(update, stop, check)
        finally:
            self.save()
            journal.close()

    def _loop(self, notify: Notify, stop: Stop, notify_check: NotifyCheck) -> None:
        self._at = time.perf_counter()
        self._collector = Collector(self.env, self.ppo.actor)
        saved = checked = self.seconds
        save_every, check_every = (
            60 * minutes for minutes in (self.config.save_every_minutes, self.config.evaluate_every_minutes)
        )
        with memory_explained(self.config):
            while self.progress() < 1 and not self.ranks.agree(stop()):
                if (row := self._iterate()) is not None:
                    notify(row)
                ended = self.progress() >= 1 and self.best is not None
                if check_every and (ended or self.seconds - checked >= check_every):
                    checked = self.seconds
                    if (scores := self._check()) is not None:
                        notify_check(scores)
                if self.seconds - saved >= save_every:
                    saved = self.seconds
                    self.save()

    def progress(self) -> float:
        """Return how much of the configuration's limit is reached, 1 or more at the end."""
        limit = self.config.transitions
        return max(self.seconds / (60 * self.config.minutes), self.transitions / limit if limit else 0.0)

    def _tick(self) -> None:
        """Let the training time follow the clock of process 0."""
        now = time.perf_counter()
        self.seconds += self.ranks.from_first(now - self._at)
        self._at = now

    def _iterate(self) -> LogRow | None:
        """Return the row of one batch, None where it was dropped or its update undone."""
        start = time.perf_counter()
        self._anneal()
        collected = self._collect()
        updated = None
        if collected is not None:
            self.transitions += self.ranks.count * collected[0].numel()
            updated = self._update(collected[0])
        self._tick()
        if collected is None or updated is None:
            return None
        batch, stats = collected
        if self._lead.follow(float(self.ranks.mean(torch.tensor(stats.progress)))):
            self._lead.hand_over(self.policy, self.critic, self._shares)
            self._collector = Collector(self.env, self.ppo.actor)
        rate = self.ranks.count * batch.numel() / (time.perf_counter() - start)
        return self._row(rate, stats, updated)

    def _anneal(self) -> None:
        """Let exploration fall and the randomisation grow with the run."""
        config, progress = self.config, self.progress()
        self.policy.limit_std(most_std(config.initial_std, config.final_std, progress))
        if config.randomize:
            differ = 1.0 if config.start_from else randomization(progress)
            self.env.randomization_strength = config.randomize * differ

    def _collect(self) -> tuple[TensorDict, CollectStats] | None:
        """Return a batch, or None where a process met a reward that is not finite."""
        collected, cause = None, "another process met a reward that is not finite"
        try:
            collected = self._collector.collect(self.config.steps)
        except RewardError as error:
            cause = str(error)
            # The step was cut short halfway: begin new episodes.
            self._collector = Collector(self.env, self.ppo.actor)
        if self.ranks.agree(collected is None):
            self.faults.drop(cause)
            return None
        return collected

    def _update(self, batch: TensorDict) -> UpdateStats | None:
        """Learn from a batch; None where that was undone."""
        try:
            with all_or_nothing((self.policy, self.critic), self.ppo.optimiser):
                updated = self.ppo.update(batch)
                figures = (updated.kl, updated.policy_loss, updated.value_loss)
                if self.ranks.agree(not all(map(math.isfinite, figures))):
                    raise NotFiniteError("a loss is not finite; look for rewards that are far too large")
        except NotFiniteError as error:
            self.faults.undo(str(error))
            return None
        self.faults.succeed()
        return updated

    def _check(self) -> ScoreRow | None:
        """Score every task, keep the policy if it is the best so far, and raise the tasks that lag.

        Each process tries other episodes. None where a reward that is not finite got in the way.
        """
        scores, cause = None, "another process met a reward that is not finite"
        try:
            scores = task_scores(self.policy, self.env.tasks, self.config, SEED + self.ranks.rank)
        except RewardError as error:
            cause = str(error)
        if self.ranks.agree(scores is None) or scores is None:
            self.faults.drop(cause)
            return None
        scores = self.ranks.mean(scores)
        if not self._lead.on:
            self.env.task_shares = by_success(self._shares, scores, FLOOR)
        self._tick()
        drawn = self._shares > 0
        best = self.best is None or standing(scores[drawn]) >= standing(self.best[drawn])
        if best:
            self.best = scores
            self.save_best()
        return ScoreRow(self.transitions, self.seconds, tuple(scores.tolist()), best)

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
            std=float(self.policy.std(torch.arange(len(self._shares)).unsqueeze(-1)).detach().mean()),
            dropped=self.faults.dropped,
            undone=self.faults.undone,
        )
