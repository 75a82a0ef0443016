"""What an environment takes as an action."""

from __future__ import annotations

import torch
from torch import Tensor

from hardware.errors import ConfigError
from hardware.joints import NUM_JOINTS

MAX_ACTION = 1e6
"""Largest action that is taken; it is clipped to 1 for the joints, but costs its square."""


def checked(action: Tensor, count: int) -> Tensor:
    """Return a copy of the actions (count, 14) as float32.

    Raises:
        ConfigError: they have another shape, or one is no finite real number of at most `MAX_ACTION`.
    """
    if tuple(action.shape) != (count, NUM_JOINTS) or action.is_complex():
        raise ConfigError(
            f"action is {action.dtype} of shape {tuple(action.shape)}; it must be {(count, NUM_JOINTS)} "
            "real numbers"
        )
    action = action.to(torch.float32, copy=True)
    wrong = ~(action.abs().amax(-1) <= MAX_ACTION)  # NaN compares false
    if bool(wrong.any()):
        rows = wrong.nonzero().squeeze(-1).tolist()
        raise ConfigError(
            f"action of environments {rows} is not finite or beyond +-{MAX_ACTION:g}; check the policy"
        )
    return action
