"""Left and right exchanged: a duck's mirror image is a duck too.

Every transition of a task without a preferred side is as good mirrored. Showing the learner both keeps its
walk from leaning to one side, which it could not notice: the heading is not in the observation.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from tensordict import TensorDict
from torch import Tensor

from hardware import contract
from hardware.joints import MIRROR_INDEX, MIRROR_SIGN
from microduck.tasks import MicroDuckTask, command_box

_JOINTS = (MIRROR_INDEX, tuple(MIRROR_SIGN.tolist()))
# Per block: which value takes each place, and its sign. A mirror keeps x and z of a vector and turns y round;
# of a rotation it keeps y. The gait clock of the other leg is half a period away.
_BLOCKS: dict[str, tuple[tuple[int, ...], tuple[float, ...]]] = {
    "projected_gravity": ((0, 1, 2), (1, -1, 1)),
    "angular_velocity": ((0, 1, 2), (-1, 1, -1)),
    "linear_velocity": ((0, 1, 2), (1, -1, 1)),
    "planar_command": ((0, 1), (1, -1)),
    "command": ((0, 1, 2), (1, -1, -1)),
    "heading_error": ((0,), (-1,)),
    "joint_error": _JOINTS,
    "joint_velocity": _JOINTS,
    "gait_clock": ((0, 1, 2), (-1, -1, 1)),
    "previous_action": _JOINTS,
}


class Mirror:
    """Mirrors observations and actions.

    Args:
        layout: observation layout.
        library: the tasks; those whose commands favour a side are never mirrored.
    """

    def __init__(self, layout: str, library: MicroDuckTask) -> None:
        index: list[int] = []
        sign: list[float] = []
        for block in contract.blocks(layout):
            places, signs = _BLOCKS[block.name]
            index += [len(index) + place for place in places]
            sign += signs
        self._index, self._sign = torch.tensor(index), torch.tensor(sign, dtype=torch.float32)
        low, high = command_box(library)
        self._symmetric = (low[:, 1:] == -high[:, 1:]).all(-1)

    def observation(self, observation: Tensor) -> Tensor:
        """Return the observations (..., width) of the mirrored ducks."""
        return observation[..., self._index] * self._sign

    def action(self, action: Tensor) -> Tensor:
        """Return the actions (..., 14) of the mirrored ducks."""
        return action[..., torch.tensor(MIRROR_INDEX)] * torch.tensor(_JOINTS[1])

    def passes(self, rows: TensorDict) -> Iterator[TensorDict]:
        """Yield transitions (n,) again and again, each time with about half, drawn by chance, mirrored.

        The log-probability stays: the mirrored action was drawn with it, by the mirrored policy.
        """
        image = {"observation": self.observation(rows["observation"]), "action": self.action(rows["action"])}
        symmetric = self._symmetric[rows["task_id"].squeeze(-1)]
        while True:
            chosen = (symmetric & (torch.rand(rows.shape[0]) < 0.5)).unsqueeze(-1)
            shown = rows.copy()
            for name, mirrored in image.items():
                shown[name] = torch.where(chosen, mirrored, rows[name])
            yield shown
