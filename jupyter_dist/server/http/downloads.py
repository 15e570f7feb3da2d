"""What is streamed as a file, at the client's pace."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from jupyter_dist.protocol.errors import JupyterDistError

from .base import DistHandler


class DownloadHandler(DistHandler):
    """Base of the handlers of files."""

    @property
    def content_security_policy(self) -> str:
        """Allow nothing."""
        # What ranks wrote is served from our origin, so a browser must never render it as a page.
        return "default-src 'none'; sandbox"

    async def stream(self, content_type: str, filename: str, chunks: Iterator[bytes | str], unreadable: str) -> None:
        """Send a file, whose chunks are made in a thread.

        Raises:
            JupyterDistError: `not_found`, with `unreadable` as its message, if making a chunk fails with an OSError.
        """
        self.set_header("Content-Type", content_type)
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("Content-Disposition", f'attachment; filename="{filename}"')
        try:
            while (chunk := await asyncio.to_thread(next, chunks, None)) is not None:
                self.write(chunk)
                await self.flush()
        except OSError as err:
            raise JupyterDistError("not_found", unreadable, str(err)) from err
        self.finish(set_content_type=content_type)  # type: ignore[call-arg]  # the host's
