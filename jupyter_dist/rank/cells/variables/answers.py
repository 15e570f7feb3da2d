"""Answers the agent's `variables` requests, in the main thread between cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jupyter_dist.protocol.errors import bad_request
from jupyter_dist.rank.collectives.torch_compat import without_functions
from jupyter_dist.rank.guard.own import json

from . import holders, listing, numbers

if TYPE_CHECKING:
    from jupyter_dist.rank.memory import Memory


def answer(namespace: dict[Any, Any], hidden: Any, memory: Memory, payload: bytes) -> dict[str, Any]:
    """Return the rank's part of a list of variables, or of a comparison (docs/messaging.md).

    Raises:
        JupyterDistError: `not_found` or `bad_request`, if the variable has no tensors or has changed meanwhile.
    """
    asked = json.loads(payload)
    with without_functions():
        if asked["do"] == "list":
            held = holders.find(namespace, hidden, holders.last_error())
            variables, left_out = listing.list_variables(namespace, hidden, held)
            return {"busy": False, "variables": variables, "left_out": left_out, "memory": _model(held, memory)}
        name = asked["name"]
        found, _ = numbers.find(namespace, name)
        if any(numbers.is_device_busy(leaf) for _, leaf in found):
            return {"busy": True}
        if asked["do"] == "checksums":
            number, done, checksum = asked["start"]
            found_here = numbers.checksums(namespace, name, (number, done, checksum))
        elif asked["do"] == "read":
            found_here = numbers.read(namespace, name, asked["path"], asked["start"])
        elif asked["do"] == "compare":
            found_here = numbers.compare(namespace, asked)
        else:
            raise bad_request(f"A rank cannot do '{asked['do']:.40}' with variables.")
    return {"busy": False, **found_here}


def _model(held: holders.Held, memory: Memory) -> dict[str, Any]:
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
