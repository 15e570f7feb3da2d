"""The seam for features in the server: the groups of a server, from its start to its stop."""

from __future__ import annotations

import contextlib
import logging

from jupyter_dist.server.groups.manager import GroupManager
from jupyter_dist.system import points

log = logging.getLogger(__name__)


class ServerPart:
    """One feature in a server, from the adoption of an earlier server's groups to the stop. Override what it needs."""

    def __init__(self, manager: GroupManager) -> None:
        self.manager = manager

    def start(self) -> None:
        """Begin, in the event loop."""

    async def stop(self) -> None:
        """Stop timers and tasks. Idempotent."""


class ServerParts:
    """The parts of one server. One that fails is left out and named in the log: the server starts all the same."""

    def __init__(self, manager: GroupManager) -> None:
        self._manager = manager
        self._parts: list[ServerPart] = []

    def start(self) -> None:
        """Start all parts that there are."""
        found = points.find_parts("server", ServerPart)
        for problem in found.problems:
            log.warning("jupyter_dist: %s", problem)
        for name, cls in found.classes.items():
            try:
                part = cls(self._manager)
                part.start()
            except Exception:  # of another package
                log.exception("jupyter_dist: the part '%s' is left out.", name)
            else:
                self._parts.append(part)

    async def stop(self) -> None:
        """Stop all parts."""
        while self._parts:
            with contextlib.suppress(Exception):
                await self._parts.pop().stop()
