"""The parts of a rank in comparisons, in the main thread between cells."""

from __future__ import annotations

from typing import Any

from jupyter_dist.protocol.errors import bad_request
from jupyter_dist.rank.collectives.torch_compat import without_functions

from . import numbers


def about(namespace: dict[Any, Any], asked: dict[str, Any]) -> dict[str, Any]:
    """Return the rank's part of a comparison of a name in a namespace.

    Raises:
        JupyterDistError: `not_found` or `bad_request`, if there is no such variable, or it has changed meanwhile.
    """
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
