"""Environment classes that are written inside a function, in worker processes.

TorchRL hands the class of an environment to its workers with pickle, which knows classes of modules only. A
subclass with reward terms of its own is often written where it is used; that one goes by value.
"""

from __future__ import annotations

import copyreg
from typing import Any

import cloudpickle
from torchrl.envs.common import _EnvPostInit


# TorchRL's environments have this metaclass, which no public name gives.
class LocalClasses(_EnvPostInit):
    """Metaclass of environments that pickle wherever they are written."""


def _reduce(cls: type) -> Any:
    if "<locals>" in cls.__qualname__:
        return cloudpickle.loads, (cloudpickle.dumps(cls),)
    return cls.__qualname__  # by name, as pickle does with every class


copyreg.pickle(LocalClasses, _reduce)
