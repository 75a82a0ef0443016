from collections.abc import Callable

import pytest
import torch

from export.bundle import BundleSpec
from hardware import contract
from microduck.policy import SkillPolicy
from microduck.tasks import speed_range_task, stack_tasks, standing_task


@pytest.fixture
def policy() -> SkillPolicy:
    """A policy for layout `sensor` and two tasks, with a normaliser that has seen uneven observations."""
    torch.manual_seed(7)
    width = contract.width("sensor")
    made = SkillPolicy(width, 2, hidden=(32, 32))
    made.normaliser.update(500, torch.randn(width), torch.linspace(0.1, 20, width).square())
    torch.nn.init.normal_(made.task.weight)
    torch.nn.init.normal_(made.heads.weight, std=0.1)
    return made


@pytest.fixture
def make_spec(policy: SkillPolicy) -> Callable[..., BundleSpec]:
    """Makes a valid spec, with any field replaced."""

    def make(**changes: object) -> BundleSpec:
        fields: dict[str, object] = {
            "policy": policy,
            "layout": "sensor",
            "action_scale": 0.35,
            "p_gain": 200,
            "library": stack_tasks([standing_task(), speed_range_task(yaw_rate_interval=(-0.5, 0.25))]),
            "training": {"seed": 3, "environments": 1024},
            "evaluation": {"survival": 1.0},
        }
        return BundleSpec(**{**fields, **changes})  # type: ignore[arg-type]

    return make
