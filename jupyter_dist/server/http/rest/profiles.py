"""REST: the trace of a profiled cell, as a file."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.profiles import PROFILE_MIME
from jupyter_dist.server.groups.group import ManagedGroup
from jupyter_dist.server.groups.traces import find_trace, trace_chunks
from jupyter_dist.server.http.base import DistHandler
from jupyter_dist.server.http.operations import Answer, Operation, operation


class TraceHandler(DistHandler):
    """The trace of a profiled cell."""

    @property
    def content_security_policy(self) -> str:
        """Allow nothing."""
        # Ranks write it, and it is served from our origin, so a browser must never render it as a page.
        return "default-src 'none'; sandbox"

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
            await self._stream(group, execution_id, trace_chunks(files, shifts))

    async def _shifts(self, group: ManagedGroup, execution_id: str) -> dict[int, float]:
        """Return how the clocks of ranks differ, in microseconds, as the cell's profile says."""
        view = await group.view(execution_id)
        for item in reversed(view.snapshot().to_list()):
            output = item.get("output")
            if output is not None and output["output_type"] == "display_data" and PROFILE_MIME in output["data"]:
                rows = output["data"][PROFILE_MIME]["ranks"]
                return {int(row["rank"]): float(row["shift_seconds"]) * 1e6 for row in rows}
        return {}

    async def _stream(self, group: ManagedGroup, execution_id: str, chunks: Iterator[bytes]) -> None:
        self.set_header("Content-Type", "application/json")
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("Content-Disposition", f'attachment; filename="{group.id}-{execution_id}-trace.json"')
        try:
            while (chunk := await asyncio.to_thread(next, chunks, None)) is not None:
                self.write(chunk)
                await self.flush()
        except OSError as err:
            raise JupyterDistError("not_found", "The trace cannot be read.", str(err)) from err
        self.finish(set_content_type="application/json")  # type: ignore[call-arg]  # the host's
