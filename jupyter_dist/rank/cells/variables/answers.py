"""Answers the agent's `variables` requests, in the main thread between cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jupyter_dist.protocol.errors import bad_request
from jupyter_dist.rank.collectives.torch_compat import without_functions
from jupyter_dist.rank.guard.own import json

from . import holders, listing, numbers

if TYPE_CHECKING:
    from jupyter_dist.rank.memory import MemoryCounters


def answer(namespace: dict[Any, Any], hidden: Any, memory: MemoryCounters, payload: bytes) -> dict[str, Any]:
    """Return the rank's part of a list of variables, or of a comparison (docs/messaging.md).

    Raises:
        JupyterDistError: `not_found` or `bad_request`, if there is no such variable, or it has changed meanwhile.
    """
    asked = json.loads(payload)
    if asked["do"] == "list":
        with without_functions():
            held = holders.find(namespace, hidden, holders.last_error())
            variables, left_out = listing.list_variables(namespace, hidden, held)
            return {"busy": False, "variables": variables, "left_out": left_out, "memory": _model(held, memory)}
    return about(namespace, asked)


def about(namespace: dict[Any, Any], asked: dict[str, Any]) -> dict[str, Any]:
    """Return the rank's part of a comparison of a name in a namespace. Raises as `answer` does."""
    answering = _ANSWERING.get(asked["do"])
    if answering is None:
        raise bad_request(f"A rank cannot do '{asked['do']:.40}' with variables.")
    with without_functions():
        found = answering(namespace, asked)
    return {"busy": True} if found is None else {"busy": False, **found}


_ANSWERING = {
    "checksums": numbers.checksums,
    "values": numbers.values,
    "read": numbers.read,
    "compare": numbers.compare,
}


def _model(held: holders.HeldStorages, memory: MemoryCounters) -> dict[str, Any]:
    """Return the rank's HeldMemory, without its number, which the server knows."""
    largest = held.largest()
    return {
        "bytes": held.num_bytes,
        "devices": held.by_device,
        **memory.counters(),
        "holders": [holder.model() for holder in largest[: holders.MAX_LISTED]],
        "left_out": max(0, len(largest) - holders.MAX_LISTED),
        "is_whole": held.is_whole,
    }
