"""The part of an environment that tells what its ducks are, and how much they may differ."""

from __future__ import annotations

import torch
from tensordict import TensorDict

from hardware.errors import ConfigError
from microduck.env.options import EnvOptions
from microduck.physics.base import Physics
from microduck.randomization.ducks import Ducks, NominalDucks


class Randomized:
    """Access to the randomisation of an environment."""

    batch_size: torch.Size
    options: EnvOptions
    physics: Physics
    ducks: NominalDucks

    @property
    def randomized(self) -> TensorDict:
        """What each duck is in SI units, by the names of `Randomization`: (num_envs,) or (num_envs, width).

        Empty while randomisation is off.
        """
        return TensorDict(self.ducks.properties(), batch_size=self.batch_size, device=self.physics.device)

    @property
    def randomization_strength(self) -> float:
        """How far the ranges reach, 0 to 1; may be set while training, and counts at each duck's next reset.

        Raises:
            ConfigError: when set: it is not in [0, 1], or randomisation is off.
        """
        return self.ducks.strength

    @randomization_strength.setter
    def randomization_strength(self, strength: float) -> None:
        if not isinstance(self.ducks, Ducks):
            raise ConfigError(
                "randomization is off; make the environment with Randomization.full() or others"
            )
        self.ducks.strength = strength


def make_ducks(options: EnvOptions, physics: Physics, generator: torch.Generator) -> NominalDucks:
    """Return the ducks that the options ask for; see `Ducks`."""
    if options.randomization is None:
        return NominalDucks()
    return Ducks(options.randomization, physics, generator)
