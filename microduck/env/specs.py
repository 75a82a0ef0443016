"""The specs of an environment: shapes, types and bounds of all it takes and gives."""

from __future__ import annotations

import torch
from torch import Tensor
from torchrl.data import Bounded, Categorical, Composite, TensorSpec, Unbounded

from hardware import contract
from hardware.joints import NUM_JOINTS
from microduck.env import diagnostics, privileged
from microduck.env.options import EnvOptions

FLAGS = ("done", "terminated", "truncated")


def carried(low: Tensor, high: Tensor, count: int) -> dict[str, TensorSpec]:
    """Return the specs of what a reset may fix: task and command.

    They are part of the observation and of the state, so that wrappers hand a request at reset through.

    Args:
        low: lower corners of the tasks' command boxes, (num_tasks, 3).
        high: upper corners, (num_tasks, 3).
        count: number of ducks.
    """
    least, most = (corner.expand(count, 3).clone() for corner in (low.amin(0), high.amax(0)))
    return {
        "task_id": Categorical(len(low), shape=(count, 1), dtype=torch.int64, device=low.device),
        "command": Bounded(least[:, :2], most[:, :2], shape=(count, 2), device=low.device),
        "yaw_rate_command": Bounded(least[:, 2:], most[:, 2:], shape=(count, 1), device=low.device),
    }


def observation(options: EnvOptions, terms: list[str], count: int) -> dict[str, TensorSpec]:
    """Return the specs of what a step and a reset give besides `carried`.

    Args:
        options: layout, pictures, diagnostics.
        terms: names of the registered reward terms.
        count: number of ducks.
    """
    device = options.torch_device
    given: dict[str, TensorSpec] = {"fallen": _flag(count, device)}
    if not options.pixels_only:
        given["observation"] = Unbounded(shape=(count, contract.width(options.layout)), device=device)
    if options.privileged:
        given["privileged"] = Unbounded(shape=(count, privileged.WIDTH), device=device)
    if options.from_pixels:
        shape = (count, options.render_height, options.render_width, 3)
        given["pixels"] = Unbounded(shape=shape, dtype=torch.uint8, device=device)
    if options.diagnostics:
        numbers, flags = diagnostics.keys(terms)
        given |= {name: Unbounded(shape=(count, 1), device=device) for name in numbers}
        given |= {name: _flag(count, device) for name in flags}
        widths = {} if options.randomization is None else diagnostics.property_widths()
        given |= {name: Unbounded(shape=(count, width), device=device) for name, width in widths.items()}
    return given


def action(count: int, device: torch.device) -> TensorSpec:
    """Return the spec of the action, (count, 14)."""
    clip = contract.ACTION_CLIP
    return Bounded(-clip, clip, shape=(count, NUM_JOINTS), device=device)


def flags(count: int, device: torch.device) -> Composite:
    """Return the spec of done, terminated and truncated, (count, 1) each."""
    return Composite(**{name: _flag(count, device) for name in FLAGS}, shape=(count,), device=device)


def _flag(count: int, device: torch.device) -> TensorSpec:
    return Categorical(2, shape=(count, 1), dtype=torch.bool, device=device)
