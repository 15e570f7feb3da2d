"""Methods of AsyncExecution."""

from __future__ import annotations

from jupyter_dist.client.asynchronous.execution import AsyncExecution
from jupyter_dist.client.results.result import Result

from . import asynchronous


async def undo(execution: AsyncExecution) -> Result:
    """Undo the cell, on all ranks that ran it; returns when it is undone. See AsyncGroup.undo.

    Raises:
        JupyterDistError: `cannot_undo`, also if cells ran after it that are to be undone first.
    """
    return await asynchronous.undo(execution.group, executions=[execution.id])


async def redo(execution: AsyncExecution) -> Result:
    """Give variables what the undone cell had left in them. See AsyncGroup.redo.

    Raises:
        JupyterDistError: `cannot_undo`, also if cells before it are to be done again first.
    """
    return await asynchronous.redo(execution.group, executions=[execution.id])
