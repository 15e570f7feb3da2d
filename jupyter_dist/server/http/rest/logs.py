"""REST: the log of a rank, in pages and as a file."""

from __future__ import annotations

from jupyter_dist.protocol import models
from jupyter_dist.protocol.specs import MAX_SEQ
from jupyter_dist.server.http.base import DistHandler
from jupyter_dist.server.http.downloads import DownloadHandler
from jupyter_dist.server.http.operations import Answer, Operation, operation
from jupyter_dist.server.http.schemas import INTEGER
from jupyter_dist.server.mirror.logs import log_text

DEFAULT_TAIL_BYTES = 256 * 1024
MAX_TAIL_BYTES = 8 << 20


class LogHandler(DistHandler):
    """A rank's log."""

    @operation(
        Operation(
            "Read a page of a rank's log",
            "read",
            {200: Answer("Records, newest last", models.LogPage)},
            query={
                "tail": {
                    **INTEGER,
                    "minimum": 1,
                    "maximum": MAX_TAIL_BYTES,
                    "description": f"Bytes of records, up to {MAX_TAIL_BYTES}.",
                },
                "before": {**INTEGER, "minimum": 1, "maximum": MAX_SEQ, "description": "Only records before this one."},
            },
            errors=("unknown_group", "unknown_rank", "agent_unreachable", "timed_out"),
        )
    )
    async def get(self, name: str, rank: str) -> None:
        """Read the newest records, or those before the given one."""
        tail_bytes = self.query.get("tail", DEFAULT_TAIL_BYTES)
        self.answer(await self.group(name).log_page(int(rank), self.query.get("before"), tail_bytes))


class LogDownloadHandler(DownloadHandler):
    """A rank's log as a file."""

    @operation(
        Operation(
            "Download the full log of a rank",
            "read",
            {200: Answer("Plain text", content_type="text/plain", headers=("Content-Disposition",))},
            errors=("unknown_group", "unknown_rank", "too_many"),
        )
    )
    async def get(self, name: str, rank: str) -> None:
        """Stream the log at the client's pace."""
        group = self.group(name)
        group.check_rank(int(rank))
        chunks = map(log_text, group.log_chunks(int(rank)))
        with self.service.downloads.one(self):
            filename = f"{group.id}-rank-{rank}.log"
            await self.stream("text/plain; charset=utf-8", filename, chunks, "The log cannot be read.")
