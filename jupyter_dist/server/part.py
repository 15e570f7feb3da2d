"""The seam for features in the server: the groups of a server, from its start to its stop, and more operations."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from jupyter_dist.protocol import parts
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.field import options_of
from jupyter_dist.protocol.operations import PART_OPERATIONS
from jupyter_dist.server.groups.manager import GroupManager, WayToReplace
from jupyter_dist.server.groups.resolve import WantedGroup
from jupyter_dist.server.mirror.status import GroupStatus

log = logging.getLogger(__name__)

T = TypeVar("T")


class ServerPart:
    """One feature in a server, from the adoption of an earlier server's groups to the stop.

    Override the methods that it needs.

    Each operation that the module `api` of the part declares is a coroutine here, with its name. It gets the
    ManagedGroup, if the operation is of a group, and then the fields of path, body and query.
    """

    def __init__(self, manager: GroupManager) -> None:
        self.manager = manager

    def start(self) -> None:
        """Begin, in the event loop."""

    def adopted(self) -> None:
        """Handle a look for groups of earlier servers, as when a page is opened."""

    def options(self, kind: type[T]) -> T:
        """Return the settings of this part: `kind` is `GROUP_OPTIONS` of its module `api`."""
        return options_of(kind, self.manager.defaults.of_parts)

    def start_options(self, request: WantedGroup, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return options of a group that starts which are not as they are configured, such as a whole path.

        `fields` are the fields of its GroupSpec.
        """
        return {}

    def works_at_end(self, options: Mapping[str, Any]) -> bool:
        """Whether nodes of a group with these options wait for its AgentPart when their engine ends them."""
        return False

    async def before_start(self, request: WantedGroup) -> None:
        """Prepare for a group that starts. A JupyterDistError refuses the start."""

    def start_note(self, fields: Mapping[str, Any]) -> str | None:
        """Return the note of a group that starts, with the fields of its GroupSpec; None: this part has none."""
        return None

    def group_fields(self, status: GroupStatus) -> Mapping[str, Any]:
        """Return fields of the model of a group, which `GROUP_FIELDS` of the module `api` declares."""
        return {}

    def ways_to_replace(self) -> Mapping[str, WayToReplace]:
        """Return ways to replace ranks, by the `state` that a request names.

        Each gets the ManagedGroup and the other fields of the request, and returns `restore` of the ReplaceSpec.
        """
        return {}

    async def stop(self) -> None:
        """Stop timers and tasks. Idempotent."""


class ServerParts:
    """The parts of one server. A part that fails is left out and named in the log: the server starts all the same."""

    def __init__(self, manager: GroupManager) -> None:
        self._manager = manager
        self._parts: dict[str, ServerPart] = {}
        self._have_started = False
        self._stopping: set[asyncio.Task[None]] = set()  # of parts that have failed
        manager.parts = self

    def start(self) -> None:
        """Start all parts that there are, once."""
        if self._have_started:
            return
        self._have_started = True
        found = parts.find_parts("server", ServerPart)
        for problem in found.problems:
            log.warning("jupyter_dist: %s", problem)
        for name, cls in found.classes.items():
            try:
                part = cls(self._manager)
                part.start()
            except (Exception, SystemExit):  # of another package
                log.exception("jupyter_dist: the part '%s' is left out.", name)
            else:
                self._parts[name] = part

    async def stop(self) -> None:
        """Stop all parts."""
        while self._parts:
            await self._stop(*self._parts.popitem())
        for stopping in list(self._stopping):
            await stopping

    def adopted(self) -> None:
        """Handle a look for groups of earlier servers."""
        self._each("adopted", lambda _: None)

    def start_options(self, request: WantedGroup, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return options of a group that starts which are not as they are configured."""
        self.start()
        found = self._each("start_options", _fields, request, fields)
        return {name: value for options in found for name, value in options.items()}

    def work_at_end(self, options: Mapping[str, Any]) -> bool:
        """Whether nodes of a group with these options wait for a part when their engine ends them."""
        return any(self._each("works_at_end", bool, options))

    async def before_start(self, request: WantedGroup) -> None:
        """Prepare for a group that starts. Raises JupyterDistError if a part refuses the start."""
        self.start()
        for name, part in list(self._parts.items()):
            try:
                await part.before_start(request)
            except JupyterDistError:
                raise
            except (Exception, SystemExit):
                self._leave_out(name)

    def start_note(self, fields: Mapping[str, Any]) -> str | None:
        """Return the first note that a part has for a group that starts."""
        return next(filter(None, self._each("start_note", lambda note: note and str(note), fields)), None)

    def group_fields(self, status: GroupStatus) -> dict[str, Any]:
        """Return fields of the model of a group."""
        return {name: value for found in self._each("group_fields", _fields, status) for name, value in found.items()}

    def way_to_replace(self, state: str) -> WayToReplace | None:
        """Return how ranks are replaced with that `state`; None: no part has it."""
        self.start()
        return next((found[state] for found in self._each("ways_to_replace", dict) if state in found), None)

    def _each(self, method: str, read: Callable[[Any], Any], *arguments: Any) -> list[Any]:
        """Call a method of each part, and return what came of it, without the parts that fail: these end.

        `read` raises an exception if it is nothing of the right kind.
        """
        found = []
        for name, part in list(self._parts.items()):
            try:
                found.append(read(getattr(part, method)(*arguments)))
            except (Exception, SystemExit):
                self._leave_out(name)
        return found

    def _leave_out(self, name: str) -> None:
        """End a part that has failed, in the event loop: its timers and tasks end, too."""
        log.exception("jupyter_dist: the part '%s' is left out.", name)
        if (part := self._parts.pop(name, None)) is not None:
            with contextlib.suppress(RuntimeError):  # no loop runs: it has no tasks
                loop = asyncio.get_running_loop()
                self._stopping.add(stopping := loop.create_task(self._stop(name, part)))
                stopping.add_done_callback(self._stopping.discard)

    @staticmethod
    async def _stop(name: str, part: ServerPart) -> None:
        try:
            await part.stop()
        except Exception:
            log.exception("jupyter_dist: the part '%s' has not stopped.", name)

    def coroutine(self, operation: str) -> Callable[..., Awaitable[Any]] | None:
        """Return the coroutine that carries an operation out, if it is of a part.

        Raises:
            JupyterDistError: `incompatible`, if that part did not start.
        """
        name = next((name for name, rows in PART_OPERATIONS.items() if operation in (row.name for row in rows)), None)
        if name is None:
            return None
        self.start()  # a request may come before the groups of an earlier server were adopted
        if name not in self._parts:
            message = f"The part '{name}' of this server is off, because it failed."
            raise JupyterDistError("incompatible", message, "The server's log has the reason.")
        found: Callable[..., Awaitable[Any]] = getattr(self._parts[name], operation)
        return found


def _fields(found: Any) -> dict[str, Any]:
    """Return the fields that a part adds. Raises an exception if they are none, or nothing for JSON."""
    return parts.in_json(dict(found))
