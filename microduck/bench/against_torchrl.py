"""The environment against TorchRL's own MicroDuckEnv: one machine, one run, one model, one call.

Both gather transitions with `env.rollout`, random actions and automatic resets.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import mujoco
from torchrl.envs import EnvBase
from torchrl.envs import MicroDuckEnv as Peer

from microduck.bench.rates import Notify, Rate, bare, compare
from microduck.env import MicroDuckEnv
from microduck.physics.options import PhysicsOptions
from microduck.physics.threads import usable_cpus
from microduck.scene import BUILT_IN

PEER_TIMESTEP = 0.002
"""Physics step of the model that TorchRL's environment is made for [s]; ten make a control step."""
DUCKS = 1024
"""Ducks that ours steps at once."""
STEPS = 24
"""Control steps that a run of ours makes with all ducks."""
PEER_SECONDS = 1.5
"""Time that a run of TorchRL's takes, about [s]."""
TRIAL_STEPS = 60
"""Control steps by which a setting of TorchRL's is judged."""


@dataclass(frozen=True)
class Setting:
    """How TorchRL's environment is run.

    Attributes:
        count: number of ducks.
        parallel: one process for each duck; else all in this one.
    """

    count: int
    parallel: bool

    @property
    def name(self) -> str:
        """What a table calls it."""
        if self.count == 1:
            return "TorchRL, one duck"
        return f"TorchRL, {self.count} ducks in {'as many processes' if self.parallel else 'one process'}"


def _settings() -> list[Setting]:
    """Return what to try: one process, or about as many as there are CPUs; more were slower still."""
    cpus = usable_cpus()
    processes = sorted({max(2, cpus), 2 * cpus})
    return [Setting(1, False), Setting(4, False), *(Setting(count, True) for count in processes)]


def against_torchrl(rounds: int, notify: Notify = lambda done: None) -> list[Rate]:
    """Time TorchRL's environment at its best setting, ours on its model, ours at our defaults, bare physics.

    Args:
        rounds: rounds to count.
        notify: called with the number of rounds done.

    Returns:
        One rate each, with TorchRL's as the reference.
    """
    with _peers_scene() as path:
        best = max(_settings(), key=lambda setting: _trial(path, setting))
        peer = _peer(path, best)
        try:
            return _compare(path, peer, best, rounds, notify)
        finally:
            peer.close()


def _compare(path: Path, peer: EnvBase, best: Setting, rounds: int, notify: Notify) -> list[Rate]:
    trial = _seconds(_rollout(peer, TRIAL_STEPS)) / TRIAL_STEPS
    peer_steps = max(TRIAL_STEPS, round(PEER_SECONDS / trial))
    ours = STEPS * DUCKS
    cases = {
        best.name: (_rollout(peer, peer_steps), peer_steps * best.count),
        "ours, the same model and substeps": (
            _rollout(MicroDuckEnv(path, num_envs=DUCKS, seed=0), STEPS),
            ours,
        ),
        "ours, at its own defaults": (_rollout(MicroDuckEnv(num_envs=DUCKS, seed=0), STEPS), ours),
        "bare Batch.step, the same model": (bare(PhysicsOptions(), DUCKS, STEPS, 0.35, path), ours),
        "bare Batch.step, at our defaults": (bare(PhysicsOptions(), DUCKS, STEPS, 0.35), ours),
    }
    runs = {name: run for name, (run, _) in cases.items()}
    return compare(runs, {name: steps for name, (_, steps) in cases.items()}, best.name, rounds, notify)


@contextmanager
def _peers_scene() -> Iterator[Path]:
    """Give the built-in duck with TorchRL's physics step."""
    spec = mujoco.MjSpec.from_file(str(BUILT_IN))
    spec.option.timestep = PEER_TIMESTEP
    spec.compile()
    with TemporaryDirectory() as folder:
        path = Path(folder, "duck.xml")
        path.write_text(spec.to_xml(), encoding="utf-8")
        yield path


def _peer(path: Path, setting: Setting) -> EnvBase:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what TorchRL warns of is not the user's to mend
        return Peer(path, backend="mujoco", num_envs=setting.count, parallel=setting.parallel, seed=0)


def _trial(path: Path, setting: Setting) -> float:
    """Return control steps per second."""
    env = _peer(path, setting)
    try:
        run = _rollout(env, TRIAL_STEPS)
        run()
        return TRIAL_STEPS * setting.count / _seconds(run)
    finally:
        env.close()


def _rollout(env: EnvBase, steps: int) -> Callable[[], None]:
    def run() -> None:
        env.rollout(steps, break_when_any_done=False)

    return run


def _seconds(run: Callable[[], None]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
