"""How an evaluation is made."""

from __future__ import annotations

from dataclasses import dataclass, field

from hardware import contract
from microduck.checks import check_whole
from microduck.evaluation.criteria import NOMINAL, Criteria
from microduck.evaluation.tally import SETTLE_STEPS
from microduck.physics.options import PhysicsOptions
from microduck.randomization import Randomization


@dataclass(frozen=True)
class EvaluationOptions:
    """How to evaluate.

    Attributes:
        layout: observation layout of the policy.
        action_scale: its joint travel for an action of 1 [rad].
        seed: seed of the resets, which the training must not have seen.
        episodes: episodes for each task and command.
        steps: length of an episode, more than those left out of mean velocities [control steps].
        grid: commands along the leading axis of a task's box; 2 or 1 for a quick look at its extremes.
        physics_options: how the ducks are simulated.
        randomization: by how much they differ; None for the duck as it is modelled.
        criteria: what a task must reach.

    Raises:
        ConfigError: a count is not valid.
        ContractError: the layout does not exist.
    """

    layout: str
    action_scale: float
    seed: int
    episodes: int = 64
    steps: int = 500
    grid: int = 5
    physics_options: PhysicsOptions = field(default_factory=PhysicsOptions)
    randomization: Randomization | None = None
    criteria: Criteria = NOMINAL

    def __post_init__(self) -> None:
        contract.blocks(self.layout)
        for name, least in (("episodes", 1), ("steps", SETTLE_STEPS + 1), ("grid", 1), ("seed", 0)):
            check_whole(name, getattr(self, name), least)
