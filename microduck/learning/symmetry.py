"""Left and right exchanged: a duck's mirror image is a duck too.

Every transition of a task is as good mirrored, as one of the task that asks for the mirrored motion: turning
left teaches turning right, and walking ahead teaches itself. Showing the actor both keeps its walk from
leaning to one side, and doubles what there is to learn from.
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
_BEAT = "hop_rhythm"
"""The term that ties both legs at once to the clock, which a mirror then leaves alone."""
_TURN = "turn_rate"
"""The parameter that favours a side."""


class Mirror:
    """Mirrors observations, actions and tasks.

    Args:
        layout: observation layout.
        library: the tasks.

    Attributes:
        partner: the task that a mirrored duck is on, (num_tasks,); -1 where the library has none.
    """

    def __init__(self, layout: str, library: MicroDuckTask) -> None:
        index: list[int] = []
        sign: list[float] = []
        for block in contract.blocks(layout):
            places, signs = _BLOCKS[block.name]
            index += [len(index) + place for place in places]
            sign += signs
        self._index, self._sign = torch.tensor(index), torch.tensor(sign, dtype=torch.float32)
        at = contract.offsets(layout)["gait_clock"]
        self._beat = slice(at, at + 2)
        self.partner = partners(library)
        terms = library.reward_terms[0].split(",")
        beats = library.reward_weights[:, terms.index(_BEAT)] != 0 if _BEAT in terms else torch.zeros(())
        self._hops = beats.bool().expand(len(self.partner))

    def observation(self, observation: Tensor) -> Tensor:
        """Return the observations (..., width) of the mirrored ducks of a task that steps."""
        return observation[..., self._index] * self._sign

    def action(self, action: Tensor) -> Tensor:
        """Return the actions (..., 14) of the mirrored ducks."""
        return action[..., torch.tensor(MIRROR_INDEX)] * torch.tensor(_JOINTS[1])

    def passes(self, rows: TensorDict) -> Iterator[TensorDict]:
        """Yield transitions (n,) again and again, each time with about half, drawn by chance, mirrored.

        What the actor sees and does is mirrored: `observation`, `action` and `task_id`. The log-probability
        stays: the mirrored action was drawn with it, by the mirrored policy.
        """
        task_id = rows["task_id"].squeeze(-1)
        seen = self.observation(rows["observation"])
        hops = self._hops[task_id].unsqueeze(-1)
        seen[:, self._beat] = torch.where(hops, rows["observation"][:, self._beat], seen[:, self._beat])
        partner = self.partner[task_id].unsqueeze(-1)
        image = {"observation": seen, "action": self.action(rows["action"]), "task_id": partner}
        while True:
            chosen = (partner >= 0) & (torch.rand(rows.shape[0], 1) < 0.5)
            shown = rows.copy()
            for name, mirrored in image.items():
                shown[name] = torch.where(chosen, mirrored, rows[name])
            yield shown


def partners(library: MicroDuckTask) -> Tensor:
    """Return the task that asks for the mirrored motion of each task, (num_tasks,); -1 for none."""
    low, high = command_box(library)
    flip = torch.tensor([1.0, -1.0, -1.0])
    image_low, image_high = torch.minimum(low * flip, high * flip), torch.maximum(low * flip, high * flip)
    params = dict(library.params.items())
    turn = params.pop(_TURN, torch.zeros(len(low)))
    same = torch.stack([library.gait_frequency_hz, library.gait_frequency_per_mps, *params.values()], dim=-1)
    same = torch.cat([same, library.reward_weights], dim=-1)
    mine = torch.cat([same, image_low, image_high, -turn.unsqueeze(-1)], dim=-1)
    theirs = torch.cat([same, low, high, turn.unsqueeze(-1)], dim=-1)
    found = (mine.unsqueeze(1) == theirs.unsqueeze(0)).all(-1)
    return torch.where(found.any(-1), found.int().argmax(-1), -1)
