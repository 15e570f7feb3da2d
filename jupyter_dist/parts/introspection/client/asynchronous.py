"""Methods of AsyncGroup."""

from __future__ import annotations

from jupyter_dist.client.answers import infos
from jupyter_dist.client.asynchronous.group import AsyncGroup


async def complete(group: AsyncGroup, code: str, cursor_pos: int | None = None, rank: int = 0) -> infos.CompletionInfo:
    """Complete code at the cursor (in characters; default: the end) on a rank: Jupyter's complete_reply.

    Raises:
        JupyterDistError: if the rank cannot answer at once.
    """
    return infos.CompletionInfo(await group.ask("complete", rank=rank, code=code, cursor_pos=cursor_pos))


async def inspect(
    group: AsyncGroup, code: str, cursor_pos: int | None = None, rank: int = 0, *, detail: int = 0
) -> infos.InspectionInfo:
    """Return a rank's documentation of the name at the cursor, as `name?` shows it; `name??` with `detail=1`.

    A rank that runs a cell answers at once: with `busy`, and only for functions, classes and modules.

    Raises:
        JupyterDistError: if the rank cannot answer at once.
    """
    answer = await group.ask("inspect", rank=rank, code=code, cursor_pos=cursor_pos, detail=detail)
    return infos.InspectionInfo(answer)
