"""The first episode of every command, step by step: for films and gait diagrams."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from microduck.env import MicroDuckEnv


@dataclass(frozen=True)
class Trace:
    """One episode, up to its fall.

    Attributes:
        qpos: poses after each step, (T, 21) [m, quaternion w x y z, rad].
        contacts: whether the left and right foot are down, (T, 2) bool.
        phase: phase of the gait clock, (T,) [rad].
    """

    qpos: np.ndarray
    contacts: np.ndarray
    phase: np.ndarray


class Recorder:
    """Keeps the first episode of every command while an evaluation runs."""

    def __init__(self) -> None:
        self._qpos: list[np.ndarray] = []
        self._contacts: list[np.ndarray] = []
        self._phase: list[np.ndarray] = []
        self._upright: list[np.ndarray] = []

    def add(self, env: MicroDuckEnv, alive: torch.Tensor, episodes: int) -> None:
        """Take a step in.

        Args:
            env: the batch; the episodes of each command stand next to each other.
            alive: who has not fallen, (n,) bool.
            episodes: episodes of each command.
        """
        every = slice(None, None, episodes)
        self._qpos.append(env.physics.qpos[every].numpy().copy())
        self._contacts.append(env.features["contacts"][every].numpy().copy())
        self._phase.append(env.features["gait_phase"][every].numpy().copy())
        self._upright.append(alive[every].numpy().copy())

    def traces(self) -> list[Trace]:
        """Return one episode for each command, in their order."""
        qpos, contacts, phase, upright = (
            np.stack(kept, axis=1) for kept in (self._qpos, self._contacts, self._phase, self._upright)
        )
        lengths = np.maximum(upright.sum(axis=1), 1)
        return [
            Trace(qpos[i, :length], contacts[i, :length], phase[i, :length])
            for i, length in enumerate(lengths)
        ]
