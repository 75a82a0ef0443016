"""Checkpoints: tensors and plain values in one file, with a description of what they fit."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from pickle import UnpicklingError
from typing import Any
from zipfile import BadZipFile, ZipFile

import torch
from torch import Tensor, nn

from hardware.errors import TrainingError
from hardware.files import parse_object, read_bounded, replacing
from microduck.learning.config import TrainConfig
from microduck.learning.faults import writing
from microduck.tasks import MicroDuckTask

VERSION = 2
"""Of the files' content; one before had no description."""
MAX_BYTES = 256 * 1024 * 1024
"""Most a checkpoint may hold; one of the default networks holds about two million bytes."""
ANEW = "Put back what it was made for, or train in another folder"

State = dict[str, Any]
"""What a checkpoint holds, by name."""


def describe(config: TrainConfig, library: MicroDuckTask, *networks: nn.Module) -> dict[str, Any]:
    """Return what weights depend on: whatever differs makes them useless.

    Args:
        config: layout and action scale.
        library: names of the tasks.
        networks: the actor, and the critic where it matters.
    """
    names = ("actor widths", "critic widths")
    return {
        "version": VERSION,
        "layout": config.layout,
        "action scale": config.action_scale,
        "tasks": list(library.names),
        **{name: _widths(network) for name, network in zip(names, networks, strict=False)},
    }


def reward_terms(library: MicroDuckTask) -> list[str]:
    """Return the terms that some row weighs, in the registry's order."""
    names = library.reward_terms[0].split(",")
    used = (library.reward_weights != 0).any(0).tolist()
    return [name for name, weighed in zip(names, used, strict=True) if weighed]


def _widths(network: nn.Module) -> list[int]:
    layers = [layer for layer in network.modules() if isinstance(layer, nn.Linear)]
    return [layers[0].in_features, *(layer.out_features for layer in layers)]


def write_checkpoint(state: State, description: dict[str, Any], path: Path) -> None:
    """Write a checkpoint; the one before stays until the new one is on the disk as a whole.

    Raises:
        TrainingError: it cannot be written.
    """
    buffer = io.BytesIO()
    torch.save({**state, "description": json.dumps(description)}, buffer)
    with writing(path), replacing(path) as temporary, temporary.open("wb") as file:
        file.write(buffer.getbuffer())
        file.flush()
        # Some file systems find out only now that they are full.
        os.fsync(file.fileno())


def read_checkpoint(path: Path, description: dict[str, Any], way_out: str = ANEW) -> State:
    """Return what a checkpoint holds.

    Args:
        path: the file.
        description: what it must have been made for; what it says beyond that is not compared.
        way_out: what to advise where it was made for something else.

    Raises:
        TrainingError: it is damaged, too large, or was made for something else, which is named.
    """
    data = io.BytesIO(read_bounded(path, MAX_BYTES, TrainingError))
    with undamaged(path):
        with ZipFile(data) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        if size > MAX_BYTES:
            raise TrainingError(f"{path} unpacks to {size:,} bytes; {MAX_BYTES:,} is the most that is read")
        data.seek(0)
        state = torch.load(data, weights_only=True)
        if not isinstance(state, dict):
            raise TypeError(f"a {type(state).__name__}")
    other = _differences(state.get("description"), description, path)
    if other:
        raise TrainingError(f"{path} was made for something else: {'; '.join(other)}. {way_out}")
    return state


def _differences(text: Any, wanted: dict[str, Any], path: Path) -> list[str]:
    if not isinstance(text, str):
        raise TrainingError(f"{path} is of an older version, which said nothing of itself; train anew")
    found = parse_object(text.encode(), f"the description in {path}", TrainingError)
    return [_told(name, found.get(name), value) for name, value in wanted.items() if found.get(name) != value]


def _told(name: str, there: Any, here: Any) -> str:
    """Return how a part of the description differs; of lists of names only what is not in both."""
    if isinstance(there, list) and isinstance(here, list) and name in ("tasks", "reward terms"):
        only = [
            [entry for entry in one if entry not in other] for one, other in ((there, here), (here, there))
        ]
        if any(only):
            return f"{name} {only[0]} are only there and {only[1]} only here"
    return f"{name} is {there!r} there and {here!r} here"


def load_weights(network: nn.Module, state: State, name: str, path: Path) -> None:
    """Put a checkpoint's weights into a network.

    Raises:
        TrainingError: the checkpoint lacks them, they have another shape, or one is not finite.
    """
    with undamaged(path, name):
        weights = state[name]
        if not isinstance(weights, dict) or not all(isinstance(key, str) for key in weights):
            raise TypeError("no weights by name")
        for key, value in weights.items():
            if not isinstance(value, Tensor) or not bool(value.isfinite().all()):
                raise ValueError(f"{key} holds what is no finite number")
        network.load_state_dict(weights)


def load_optimiser(optimiser: torch.optim.Optimizer, state: State, path: Path) -> None:
    """Put a checkpoint's moments and step size into an optimiser.

    Raises:
        TrainingError: the checkpoint lacks them or they do not fit.
    """
    with undamaged(path, "optimiser"):
        groups = optimiser.state_dict()["param_groups"]
        optimiser.load_state_dict(state["optimiser"])
        for before, group in zip(groups, optimiser.param_groups, strict=True):
            changed = [name for name in before if type(group.get(name)) is not type(before[name])]
            if changed:
                raise TypeError(f"{changed[0]} is {group.get(changed[0])!r}")
        for parameter, moments in optimiser.state.items():
            for name, value in moments.items():
                fits = isinstance(value, Tensor) and value.shape in (parameter.shape, ())
                if not fits or not bool(value.isfinite().all()):
                    raise ValueError(f"{name} does not fit or is not finite")


def whole_number(state: State, name: str, path: Path) -> int:
    """Return a counter of a checkpoint.

    Raises:
        TrainingError: it is no whole number of 0 or more.
    """
    value = state.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        raise TrainingError(
            f"{path} is damaged: {name} is {value!r}, which must be a whole number; train anew"
        )
    return value


def duration(state: State, name: str, path: Path) -> float:
    """Return a time of a checkpoint [s].

    Raises:
        TrainingError: it is no finite number of 0 or more.
    """
    value = state.get(name)
    if not isinstance(value, float) or not 0 <= value < float("inf"):
        raise TrainingError(f"{path} is damaged: {name} is {value!r}, which must be 0 s or more; train anew")
    return value


def scores_in(state: State, tasks: int, path: Path) -> Tensor:
    """Return the scores of a best policy, (tasks,) in [0, 1].

    Raises:
        TrainingError: they are something else.
    """
    value = state.get("scores")
    if isinstance(value, Tensor) and value.shape == (tasks,) and bool(((value >= 0) & (value <= 1)).all()):
        return value
    raise TrainingError(f"{path} is damaged: scores is {value!r:.80}; remove it to look for the best anew")


@contextmanager
def undamaged(path: Path, part: str = "it") -> Iterator[None]:
    """Name a file, and the part of it that the block reads, when that is damaged.

    Raises:
        TrainingError: it is.
    """
    try:
        yield
    except TrainingError:
        raise
    except _DAMAGE as error:
        problem = (
            f"lacks {error}" if isinstance(error, KeyError) else f"gives: {error or type(error).__name__}"
        )
        raise TrainingError(f"{path} is damaged or no checkpoint: {part} {problem}; train anew") from error


_DAMAGE = (
    # of torch and zipfile reading arbitrary bytes
    UnpicklingError,
    BadZipFile,
    EOFError,
    OSError,
    NotImplementedError,
    # of plain values in the place of others
    ArithmeticError,
    AttributeError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
    AssertionError,
)
