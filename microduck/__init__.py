"""Training MicroDuck skills in simulation: tasks, the batched environment, learning.

The names below load on first use, so that a command that needs no torch starts at once.
"""

import os
from importlib import import_module
from typing import Any

from microduck.gl import shield_import

# Must be set before torch loads. Its idle threads would otherwise spin on the cores that physics needs, and a
# program running beside a training slowed it down eightfold instead of twofold.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
shield_import()

_HOMES = {
    "MicroDuckEnv": "microduck.env",
    "EnvOptions": "microduck.env.options",
    "MicroDuckGait": "microduck.gait",
    "MicroDuckTask": "microduck.tasks",
    "MicroDuckTaskSampler": "microduck.sampler",
    "PhysicsOptions": "microduck.physics.options",
    "Randomization": "microduck.randomization",
    "SkillPolicy": "microduck.policy",
    "SuccessTaskSampler": "microduck.success_sampler",
    "gait_metrics": "microduck.gait_metrics",
    "load_library": "microduck.tasks",
    "register_reward": "microduck.rewards",
    "save_library": "microduck.tasks",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'microduck' has no attribute {name!r}; it has {__all__}")
    return getattr(import_module(_HOMES[name]), name)
