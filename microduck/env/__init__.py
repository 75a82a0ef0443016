"""The environment: a batch of ducks as one TorchRL `EnvBase`, and what it is made of."""

from microduck.env.environment import MicroDuckEnv
from microduck.env.options import EnvOptions

__all__ = ["EnvOptions", "MicroDuckEnv"]
