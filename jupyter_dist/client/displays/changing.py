"""Shows changes of earlier cells' displays by later cells (`handle.update()`), in the output of the earlier cell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from jupyter_dist.client.results.result import Result
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.models import METADATA_KEY, ViewItem

MAX_KEPT = 50  # executions; the displays of older ones stay as they are in this client's output

Show = Callable[[Result], None]


class Peekable(Protocol):
    """An execution whose result can be read after its end."""

    def peek(self) -> Result:
        """Return the result so far."""


class Changing:
    """The executions of a kernel whose displays may be updated."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[Peekable, Show, list[ViewItem]]] = {}

    def keep(self, execution: Peekable, result: Result, show: Show) -> None:
        """Keep an execution that has ended, if it has displays that may be updated."""
        if any(map(_may_change, result.folded)):
            self._kept[result.id] = execution, show, result.folded
            if len(self._kept) > MAX_KEPT:
                del self._kept[next(iter(self._kept))]

    def update(self) -> None:
        """Show the executions whose displays have changed, after a cell that may have changed them."""
        for key, (execution, show, shown) in list(self._kept.items()):
            try:
                result = execution.peek()
            except JupyterDistError:  # the group is gone
                self._kept.pop(key, None)
                continue
            if result.folded != shown:
                self._kept[key] = execution, show, result.folded
                show(result)


def _may_change(item: ViewItem) -> bool:
    mark = item.get("output", {}).get("metadata", {}).get(METADATA_KEY)
    return isinstance(mark, dict) and bool(mark.get("updates"))
