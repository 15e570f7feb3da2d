"""REST: the trace of a profiled cell, as a file."""

from __future__ import annotations

import asyncio

from jupyter_dist.protocol.profiles import PROFILE_MIME
from jupyter_dist.server.groups.group import ManagedGroup
from jupyter_dist.server.groups.traces import find_trace, trace_chunks
from jupyter_dist.server.http.downloads import DownloadHandler
from jupyter_dist.server.http.operations import Answer, Operation, operation


class TraceHandler(DownloadHandler):
    """The trace of a profiled cell."""

    @operation(
        Operation(
            "Download the trace of a profiled cell",
            "read",
            {
                200: Answer(
                    "A Chrome trace of all its ranks, each a process, for Perfetto and chrome://tracing",
                    headers=("Content-Disposition",),
                )
            },
            errors=("unknown_group", "unknown_execution", "not_found", "too_many", "agent_unreachable", "timed_out"),
        )
    )
    async def get(self, name: str, execution_id: str) -> None:
        """Stream it at the client's pace."""
        group = self.group(name)
        group.executions.get(execution_id)
        files = await asyncio.to_thread(find_trace, group.directory.path, execution_id)
        shifts = await self._shifts(group, execution_id)
        with self.service.downloads.one(self):
            filename = f"{group.id}-{execution_id}-trace.json"
            await self.stream("application/json", filename, trace_chunks(files, shifts), "The trace cannot be read.")

    async def _shifts(self, group: ManagedGroup, execution_id: str) -> dict[int, float]:
        """Return how the clocks of ranks differ, in microseconds, as the cell's profile says."""
        view = await group.view(execution_id)
        for item in reversed(view.snapshot().to_list()):
            output = item.get("output")
            if output is not None and output["output_type"] == "display_data" and PROFILE_MIME in output["data"]:
                rows = output["data"][PROFILE_MIME]["ranks"]
                return {int(row["rank"]): float(row["shift_seconds"]) * 1e6 for row in rows}
        return {}
