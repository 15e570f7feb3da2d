"""Answers of REST that are files, sent as fast as the client reads."""

from __future__ import annotations

import asyncio

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.server.groups.operations import FileAnswer
from jupyter_dist.server.http.base import DistHandler


class FileHandler(DistHandler):
    """Base of the handlers of files."""

    @property
    def content_security_policy(self) -> str:
        """Allow nothing."""
        # Output of ranks is served from our origin, so a browser must never render it as a page.
        return "default-src 'none'; sandbox"

    async def stream(self, content_type: str, file: FileAnswer) -> None:
        """Send a file, whose chunks are made in a thread.

        Raises:
            JupyterDistError: `not_found`, if making a chunk fails with an OSError.
        """
        if content_type.startswith("text/"):
            content_type += "; charset=utf-8"
        self.set_header("Content-Type", content_type)
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("Content-Disposition", f'attachment; filename="{file.name}"')
        try:
            while (chunk := await asyncio.to_thread(next, file.chunks, None)) is not None:
                self.write(chunk)
                await self.flush()
        except OSError as err:
            raise JupyterDistError("not_found", file.unreadable, str(err)) from err
        self.finish(set_content_type=content_type)  # type: ignore[call-arg]  # the host's
