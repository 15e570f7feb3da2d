"""Methods of AsyncGroup."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from jupyter_dist.client.answers import infos
from jupyter_dist.client.asynchronous.arguments import place_of
from jupyter_dist.client.asynchronous.execution import AsyncExecution
from jupyter_dist.client.asynchronous.group import AsyncGroup
from jupyter_dist.client.results.result import Result
from jupyter_dist.protocol.errors import JupyterDistError

from .results import Restored

if TYPE_CHECKING:
    from jupyter_dist.parts.saves.models import Transfer


async def save(
    group: AsyncGroup,
    name: str | None = None,
    *,
    folder: str | None = None,
    overwrite: bool = False,
    timeout_seconds: float | None = None,
) -> infos.SaveInfo:
    """Save the variables of all ranks, when the cells that were sent before have ended; return the save.

    Args:
        group: The group of these ranks.
        name: Its name; a save of this group with the name is replaced. By default the group's name and the time.
        folder: A folder on the server's machine; by default the server's own.
        overwrite: Whether to replace a save of another group with this name.
        timeout_seconds: How long it may take once it has begun; by default an hour.

    Raises:
        JupyterDistError: `not_saved`, with the reason; an earlier save with this name is as it was.
    """
    body = {
        "name": name,
        "folder": place_of(folder, is_private=group.client.is_private),
        "timeout_seconds": timeout_seconds,
    }
    done = await _transfer(group, "saves", {**body, "overwrite": overwrite or None})
    return await _save_of(group, done)


async def restore(  # noqa: PLR0913 - of a method
    group: AsyncGroup,
    name: str,
    *,
    folder: str | None = None,
    rerun: bool = False,
    any_version: bool = False,
    timeout_seconds: float | None = None,
) -> Restored:
    """Give all ranks the variables of a save, when the cells that were sent before have ended.

    Args:
        group: The group of these ranks.
        name: The name of a save; its group had as many ranks as this one.
        folder: The folder of the save, on the server's machine; by default the server's own.
        rerun: Whether to run the cells again that made what could not be saved.
        any_version: Whether to try it with another version of Python.
        timeout_seconds: How long it may take once it has begun; by default an hour.

    Raises:
        JupyterDistError: `not_restored`, with the reason, `not_found`, `cannot_restore`, ...; no rank is changed.
        RankError: a cell that was run again failed; the variables are restored.
    """
    body = {
        "name": name,
        "folder": place_of(folder, is_private=group.client.is_private),
        "timeout_seconds": timeout_seconds,
    }
    done = await _transfer(group, "restore", {**body, "any_version": any_version or None})
    num_names = _shown(done).get("num_names")  # None: of a group of 0.3
    found = Restored(await _save_of(group, done), done.text, num_names=num_names)
    for cell in found.cells if rerun else ():
        found.results.append(await group.run(cell.code, cell.ranks))
        found.results[-1].raise_for_error()
    return found


async def _transfer(group: AsyncGroup, path: str, body: Mapping[str, Any]) -> Result:
    """Save or restore, and wait until that has ended. Raises JupyterDistError."""
    sent = {name: value for name, value in body.items() if value is not None}
    execution = AsyncExecution(group, await group.client.api.ask_once("groups", group.id, path, body=sent))
    try:
        result = await execution.result()
    except asyncio.CancelledError:
        with contextlib.suppress(JupyterDistError):
            await execution.cancel()
        raise
    result.was_streamed = True  # code of this package: its traceback does not help users
    if not result.ok:
        raise JupyterDistError.from_dict(result.execution["error"] or {"message": result.text})
    return result


def _shown(done: Result) -> Transfer:
    return cast("Transfer", done.execution.get("transfer"))


async def _save_of(group: AsyncGroup, done: Result) -> infos.SaveInfo:
    """Return the save that an execution has written or restored."""
    transfer = _shown(done)
    saves = await group.saves(transfer["folder"])
    found = [save for save in saves if save.name == transfer["name"]]
    if not found:
        message = f"The save '{transfer['name']}' is gone: it was deleted meanwhile."
        raise JupyterDistError("not_found", message)
    return found[0]
