"""The key `privileged`: what the simulator knows and the duck does not, for a critic that trains it."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from hardware import contract
from microduck.randomization.ducks import Ducks, NominalDucks
from microduck.randomization.parameters import COLUMNS
from microduck.randomization.ranges import Randomization

WIDTH = contract.width("state") + 7 + COLUMNS
"""Layout `state` without disturbances, yaw rate command [rad/s], heading error [rad], base height [m],
contact and height [m] of the feet, left then right, and the duck's randomised properties, about -1 to 1."""


def privileged(signals: Mapping[str, Tensor], features: Mapping[str, Tensor], properties: Tensor) -> Tensor:
    """Return the critic's view, (k, WIDTH) float32.

    Args:
        signals: blocks of layout `state` as they truly are, and `command` (k, 3).
        features: of the step.
        properties: what `Properties` gives, (k, COLUMNS).
    """
    numbers = [signals["command"][:, 2], features["heading"], features["base_height"]]
    parts = [
        contract.observe("state", signals),
        torch.stack(numbers, dim=-1),
        features["contacts"].float(),
        features["foot_heights"],
        properties,
    ]
    return torch.cat(parts, dim=-1)


class Properties:
    """Tells a critic what ducks are, about -1 to 1: their values within the full ranges.

    Args:
        device: where the ducks are.
    """

    def __init__(self, device: torch.device) -> None:
        low, high = (torch.tensor(ends, device=device) for ends in Randomization.full().bounds())
        nominal = torch.tensor(Randomization.off().bounds()[0], device=device)
        low, high = torch.minimum(low, nominal), torch.maximum(high, nominal)
        self._middle, self._half = (low + high) / 2, (high - low) / 2

    def __call__(self, ducks: NominalDucks, ids: Tensor) -> Tensor:
        """Return the properties of ducks `ids` (k,), (k, COLUMNS); zeros for nominal ones."""
        if isinstance(ducks, Ducks):
            return ((ducks.values[ids] - self._middle) / self._half).float()
        return self._middle.new_zeros(len(ids), COLUMNS)
