"""The merged trace of a profiled cell, as a file."""

from __future__ import annotations

import asyncio

from jupyter_dist.server.groups.group import ManagedGroup
from jupyter_dist.server.groups.operations import FileAnswer
from jupyter_dist.server.part import ServerPart

from .merging import clock_shifts, find_trace, trace_chunks


class ProfileServer(ServerPart):
    """Answers with the traces of cells."""

    async def trace_file(self, group: ManagedGroup, execution_id: str) -> FileAnswer:
        """Return the merged trace of a profiled cell."""
        mirror = group.mirror
        mirror.executions.get(execution_id)
        files = await asyncio.to_thread(find_trace, mirror.directory.path, execution_id)
        shifts = clock_shifts((await mirror.view(execution_id)).snapshot().to_list())
        chunks = trace_chunks(files, shifts)
        return FileAnswer(f"{group.id}-{execution_id}-trace.json", chunks, "The trace cannot be read.")
