"""Methods of AsyncGroup."""

from __future__ import annotations

from collections.abc import Sequence

from jupyter_dist.client.answers import infos
from jupyter_dist.client.answers.base import ApiList, listed
from jupyter_dist.client.asynchronous.execution import AsyncExecution
from jupyter_dist.client.asynchronous.group import AsyncGroup
from jupyter_dist.client.results.result import Result
from jupyter_dist.protocol.errors import JupyterDistError


async def undo(group: AsyncGroup, count: int = 1, executions: Sequence[str] | None = None) -> Result:
    """Undo the last cells that kept undo, on all ranks that ran them; returns when they are undone.

    Variables get the values of before the cells, in the same objects. Files, prints, the network and other
    processes are not undone. Waits its turn, as a cell does.

    Args:
        group: The group.
        count: How many cells.
        executions: Instead: the ids of these executions, which must be the last kept ones on their ranks.

    Raises:
        JupyterDistError: `cannot_undo`, with the reason; nothing has been changed.
    """
    return await _carried_out(group, "undo", count, executions)


async def redoable(group: AsyncGroup) -> ApiList[infos.UndoableCellInfo]:
    """Return the undone cells that can be done again now, in this order."""
    return listed(infos.UndoableCellInfo, (await group.ask("undoable")).get("undone", []))


async def redo(group: AsyncGroup, count: int = 1, executions: Sequence[str] | None = None) -> Result:
    """Give variables what undone cells had left in them; returns when they have it. No code runs.

    It is possible until a cell runs that changes something, or that keeps no undo. Waits its turn, as a cell does.

    Args:
        group: The group.
        count: How many cells.
        executions: Instead: the ids of these executions, which must be the next undone ones on their ranks.

    Raises:
        JupyterDistError: `cannot_undo`, with the reason; nothing has been changed.
    """
    return await _carried_out(group, "redo", count, executions)


async def _carried_out(group: AsyncGroup, do: str, count: int, executions: Sequence[str] | None) -> Result:
    which = {"executions": list(executions)} if executions else {"count": count}
    result = await AsyncExecution(group, await group.ask(do, **which)).result()
    if result.state == "aborted" and (error := result.execution["error"]):
        raise JupyterDistError.from_dict(error)
    result.raise_for_error()
    return result
