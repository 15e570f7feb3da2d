"""The operation in the server."""

from __future__ import annotations

import asyncio

from jupyter_dist.server.groups.group import ManagedGroup
from jupyter_dist.server.part import ServerPart

from .models import Script
from .writer import write_script


class ScriptServer(ServerPart):
    """Writes scripts."""

    async def script(self, group: ManagedGroup, notebook: str | None = None, cells: str | None = None) -> Script:
        """Return the cells of a notebook as a script for torchrun (docs/api.md, Script).

        Raises:
            JupyterDistError: `bad_request`, `not_found`, `too_large`.
        """
        runs, codes = await group.mirror.history.runs()
        return await asyncio.to_thread(write_script, group.model(), runs, codes, notebook, cells)
