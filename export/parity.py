"""The proof that what was exported acts like the policy it came from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import onnxruntime
import torch

from export.onnx_graph import INPUTS, OUTPUT
from hardware.errors import ExportError
from microduck.policy import SkillPolicy

OBSERVATIONS = 1000
"""Observations compared, at the least."""
TOLERANCE = 1e-5
"""Largest difference allowed in any action."""
SPREAD = 3.0
"""Standard deviation of the observations, in standard deviations of those seen in training."""
_SEED = 20

Actor = Callable[[np.ndarray, int], np.ndarray]
"""Takes an observation (width,) and a task id, returns the action (num_actions,)."""


@dataclass(frozen=True)
class Parity:
    """What a comparison found.

    Attributes:
        observations: number of observations compared.
        max_abs_difference: largest difference in any action, in action units.
    """

    observations: int
    max_abs_difference: float


def graph_actor(graph: bytes) -> Actor:
    """Return an actor that runs an ONNX file in onnxruntime, on one thread as on the robot."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])

    def act(observation: np.ndarray, task_id: int) -> np.ndarray:
        inputs = (observation[None], np.array([[task_id]], np.int64))
        return session.run([OUTPUT], dict(zip(INPUTS, inputs, strict=True)))[0][0]

    return act


def check_parity(policy: SkillPolicy, act: Actor) -> Parity:
    """Compare an actor with the policy in torch, on seeded observations of every task.

    Args:
        policy: the policy, on the CPU.
        act: what was made from it.

    Raises:
        ExportError: the two differ, an action is not finite, or a task's action never changes.
    """
    observation, task_id = sample_inputs(policy)
    with torch.no_grad():
        wanted = policy(observation, task_id).numpy()
    tasks = task_id.numpy().ravel()
    got = np.stack([act(row, int(task)) for row, task in zip(observation.numpy(), tasks, strict=True)])
    for name, actions in (("policy", wanted), ("exported graph", got)):
        if not np.isfinite(actions).all():
            raise ExportError(f"the {name} gives actions that are not finite; export an earlier checkpoint")
    _refuse_constant(got, tasks)
    difference = float(np.abs(wanted - got).max())
    if difference > TOLERANCE:
        raise ExportError(
            f"the exported graph differs from the policy by {difference:g}; at most {TOLERANCE:g} is valid"
        )
    return Parity(len(got), difference)


def sample_inputs(policy: SkillPolicy) -> tuple[torch.Tensor, torch.Tensor]:
    """Return observations (n, width) around those seen in training, and task ids (n, 1) in turn."""
    num_tasks = policy.task.num_embeddings
    count = max(OBSERVATIONS, 2 * num_tasks)  # two of each task show whether its action changes
    normaliser = policy.normaliser
    noise = torch.randn(count, policy.first.in_features, generator=torch.Generator().manual_seed(_SEED))
    deviation = torch.sqrt(normaliser.variance + normaliser.FLOOR)
    return normaliser.mean + SPREAD * deviation * noise, torch.arange(count)[:, None] % num_tasks


def _refuse_constant(actions: np.ndarray, tasks: np.ndarray) -> None:
    for task in np.unique(tasks):
        if np.ptp(actions[tasks == task], axis=0).max() <= TOLERANCE:
            raise ExportError(
                f"the policy gives task {task} the same action whatever it observes: the duck would freeze; "
                "check that the trained parameters were loaded"
            )
