"""What a rank answers about the name at a cursor, as kernels do: completions, documentation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol

from jupyter_dist.protocol.operations import AT_CURSOR


class Asks(Protocol):
    """A group of the blocking client."""

    def ask(self, operation: str, **arguments: Any) -> Any:
        """Make the request of an operation; return its answer."""


def at_cursor(
    group: Asks,
    message: Literal["complete_request", "inspect_request"],
    rank: int,
    code: str,
    cursor_pos: int,
    **fields: Any,
) -> Mapping[str, Any] | None:
    """Return a rank's answer to a message of Jupyter's; None if no part answers it.

    Raises:
        JupyterDistError: if the rank cannot answer at once.
    """
    operation = AT_CURSOR.get(message)
    if operation is None:
        return None
    answer: Mapping[str, Any] = group.ask(operation, rank=rank, code=code, cursor_pos=cursor_pos, **fields)
    return answer
