"""Methods of AsyncGroup."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from jupyter_dist.client.answers.keywords import RunOptions
from jupyter_dist.client.asynchronous.group import AsyncGroup
from jupyter_dist.client.results.result import Result

if TYPE_CHECKING:
    from typing_extensions import Unpack


async def profile(
    group: AsyncGroup, code: str, ranks: str = "all", *, trace: str | None = None, **options: Unpack[RunOptions]
) -> Result:
    """Run a cell under torch's profiler (%%profile) on all these ranks; `Result.profile` has the times.

    Args:
        group: The group of these ranks.
        code: The cell.
        ranks: A rank expression.
        trace: A path on this machine to write the merged trace to, for Perfetto.
        options: The options of RunOptions (docs/reference/python.md).
    """
    result = await group.run(f"%%profile\n{code}", ranks, **options)
    if trace is not None:
        await save_trace(group, result, trace)
    return result


async def save_trace(group: AsyncGroup, result: Result, path: str) -> None:
    """Write the merged trace of a profiled cell into a file: a Chrome trace, with a process for each rank.

    Raises:
        JupyterDistError: `not_found`, if the cell was not profiled, or its trace is no longer kept.
    """
    response = await group.client.api.fetch("GET", "groups", group.id, "executions", result.id, "trace")
    await asyncio.to_thread(Path(path).write_bytes, response.body)
