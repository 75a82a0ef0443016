"""A library as a `.tdz` archive that lasts: beside its rows, the file names their terms and parameters.

The rows are in TensorDict's own archive format, so `MicroDuckTask.load` and the robot read the same file.
What that format does not keep is in one more member, `library.json`: `schema`, `reward_terms` in the order of
the weights, `params`, and `contract_digest`, the digest of `hardware.contract.foundation()`.
"""

from __future__ import annotations

import json
import logging
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from tensordict import NonTensorStack, TensorDict
from torch import Tensor

from firmware_bridge.skills.archive import MAX_BYTES, NOTES, parse_archive, parse_notes
from hardware import contract
from hardware.errors import ArchiveError, TaskError
from hardware.files import read_bounded, replacing
from microduck.rewards import REWARD_TERMS, RewardRegistry
from microduck.tasks.leaves import Leaves
from microduck.tasks.stacking import stack_tasks
from microduck.tasks.task import MicroDuckTask
from microduck.tasks.term_orders import TermOrder, find_order

SCHEMA = 1
"""Version of `library.json`."""
_log = logging.getLogger(__name__)


def save_library(
    tasks: MicroDuckTask | Iterable[MicroDuckTask],
    path: str | Path,
    *,
    registry: RewardRegistry = REWARD_TERMS,
) -> None:
    """Write a library or rows to one `.tdz` file; an older file stays until the new one is whole.

    Args:
        tasks: what `stack_tasks` takes.
        path: the file.
        registry: the reward terms that the rows weigh.

    Raises:
        TaskError: the rows make no valid library.
    """
    library = stack_tasks(tasks, registry=registry).cpu()
    notes = {
        "schema": SCHEMA,
        "reward_terms": list(registry),
        "params": list(registry.params),
        "contract_digest": contract.digest(contract.foundation()),
    }
    with replacing(Path(path)) as temporary:
        library.save(temporary, archive=True)
        with zipfile.ZipFile(temporary, "a") as file:
            file.writestr(NOTES, json.dumps(notes))


def load_library(
    path: str | Path, *, registry: RewardRegistry = REWARD_TERMS, drop_unknown: bool = False
) -> MicroDuckTask:
    """Read a library, or a row as a library of one, and fit it to the registered terms.

    Terms that the archive does not know weigh zero, and parameters that it does not know take their defaults.
    Archives that name no terms are read where their order is known: those of TorchRL, and this toolkit's
    oldest. One made under another contract loads with a warning.

    Args:
        path: the file.
        registry: the reward terms.
        drop_unknown: drop terms that are not registered, with a warning, even if a row weighs them; for those
            who do not compute rewards.

    Raises:
        ArchiveError: the file is damaged, is no library, holds what it must not, or is of a newer schema.
        TaskError: a row is not valid, or weighs a term that is not registered.
    """
    data = read_bounded(Path(path), MAX_BYTES, ArchiveError)
    tree, notes = parse_archive(data, str(path)), parse_notes(data, str(path))
    try:
        rows = _rows(Leaves(tree), notes, registry)
        if drop_unknown:
            _weigh_unknown_zero(rows, registry)
        return stack_tasks(rows, registry=registry)
    except (ArchiveError, TaskError) as error:
        raise type(error)(f"{path}: {error}") from error


def _rows(leaves: Leaves, notes: Mapping[str, Any] | None, registry: RewardRegistry) -> MicroDuckTask:
    """Return an archive's rows, each with the names of its terms."""
    weights, params, terms = leaves.weights(), leaves.params(), leaves.terms()
    order = None
    if notes is not None:
        order = _stated_order(notes, terms, params)
    elif not all(terms):  # TensorDict's own archive of rows that name no terms
        order = find_order(weights.shape[-1], params)
        params = {order.renamed.get(name, name): values for name, values in params.items()}
    if order is not None:
        terms = [",".join(order.terms)] * len(terms)
        params = _complete(params, order, registry, len(terms))
    count = len(leaves.names)
    return MicroDuckTask(
        **leaves.fields(),
        reward_weights=weights,
        params=TensorDict(params, batch_size=[count]),
        name=NonTensorStack(*leaves.names),
        reward_terms=NonTensorStack(*terms),
        batch_size=[count],
    )


def _weigh_unknown_zero(rows: MicroDuckTask, registry: RewardRegistry) -> None:
    terms = rows.reward_terms[0].split(",")
    unknown = [column for column, term in enumerate(terms) if term not in registry]
    lost = [terms[column] for column in unknown if bool(rows.reward_weights[:, column].any())]
    if lost:
        _log.warning("reward terms %s are not registered here; rewards would lack them", lost)
    rows.reward_weights[:, unknown] = 0


def _stated_order(notes: Mapping[str, Any], terms: list[str], params: Mapping[str, Tensor]) -> TermOrder:
    """Return what `library.json` says of the rows, checked against them."""
    schema = notes.get("schema")
    if type(schema) is not int or not 1 <= schema <= SCHEMA:
        raise ArchiveError(
            f"{NOTES} has the schema {schema!r:.80}, and this toolkit reads 1 to {SCHEMA}; "
            "update the toolkit, or save the library again"
        )
    order = TermOrder(NOTES, tuple(_names(notes, "reward_terms")), frozenset(_names(notes, "params")))
    differing = sorted(params.keys() ^ order.params)
    if differing:
        raise ArchiveError(f"leaves and {NOTES} differ in the parameters {differing}; save the library again")
    if set(terms) != {",".join(order.terms)}:
        raise ArchiveError(f"leaf 'reward_terms' and {NOTES} name other terms; save the library again")
    _check_contract(notes.get("contract_digest"))
    return order


def _check_contract(theirs: Any) -> None:
    """Warn of another contract: the rows are valid, but a command or a clock may mean something else."""
    ours = contract.digest(contract.foundation())
    if not isinstance(theirs, str) or len(theirs) != len(ours):
        raise ArchiveError(
            f"{NOTES} has the contract_digest {theirs!r:.80}; it must be a SHA-256; save it again"
        )
    if theirs != ours:
        _log.warning(
            "the library was made under contract %s, this toolkit has %s; check what its tasks mean here",
            theirs,
            ours,
        )


def _names(notes: Mapping[str, Any], key: str) -> list[str]:
    names = notes.get(key)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ArchiveError(f"{NOTES}: {key!r} must be a list of names; save the library again")
    return names


def _complete(
    params: Mapping[str, Tensor], order: TermOrder, registry: RewardRegistry, count: int
) -> dict[str, Tensor]:
    """Return the parameters of the archive's terms as they are registered today, (num_tasks,) each."""
    terms = [registry[term] for term in order.terms if term in registry]
    defaults = {key: value for term in terms for key, value in term.params.items()}
    new, gone = sorted(defaults.keys() - params.keys()), sorted(params.keys() - registry.params.keys())
    if new or gone:
        _log.info("parameters %s are new and take their defaults; %s are no longer read", new, gone)
    kept = {key: value for key, value in params.items() if key not in gone}
    return {**{key: torch.full((count,), defaults[key]) for key in new}, **kept}
