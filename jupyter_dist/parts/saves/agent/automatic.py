"""The saves that a group makes by itself: their names and limits, the one under way, and which of them are kept."""

from __future__ import annotations

import asyncio
import logging
import re
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from jupyter_dist.agent.group.cells.execution import AgentExecution
from jupyter_dist.parts.saves.folder.drafts import free_name
from jupyter_dist.parts.saves.folder.layout import SavesFolder
from jupyter_dist.parts.saves.folder.removal import delete_automatic
from jupyter_dist.parts.saves.transfer import DEFAULT_TRANSFER_SECONDS, SavesOptions, TransferSpec
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.ranks import RankSet
from jupyter_dist.protocol.states import GroupState
from jupyter_dist.protocol.wire.specs import ExecutionSpec, GroupSpec
from jupyter_dist.transport.tasks import start_task

from .transfers import Transfers

log = logging.getLogger(__name__)

Ended = Callable[[str, "str | None"], None]  # the state of the execution, and why nothing was saved


class SavingGroup(Protocol):
    """The parts of a group that its saves use."""

    spec: GroupSpec
    state: GroupState
    generation: int

    def add_note(self, text: str, *, until: str | None = None) -> None:
        """Show a note to users, until this ends it."""


class AutomaticSave:
    """The save under way of one reason for saves, if there is one: queued, followed to its end, and limited."""

    def __init__(self, group: SavingGroup, options: SavesOptions, transfers: Transfers, on_end: Ended) -> None:
        self._group = group
        self._options = options
        self._transfers = transfers
        self._on_end = on_end
        self._execution_id: str | None = None  # of the save under way
        self._is_queued = False
        self._late: str | None = None  # why it is to end, even before it is queued
        self._work: asyncio.Task[None] | None = None
        self.name = ""  # of the last save

    @property
    def is_under_way(self) -> bool:
        """Whether a save has begun and not ended."""
        return self._execution_id is not None

    def begin(self, make_way: Callable[[], None] | None = None) -> None:
        """Queue a save in the background, after a call of `make_way`."""
        self._execution_id, self._is_queued, self._late = f"e-{uuid.uuid4().hex[:12]}", False, None
        self._work = start_task(self._submit(self._execution_id, make_way), "save", self._failed)

    def end(self, reason: str) -> None:
        """Drop the save, unless it is decided."""
        self._late = reason
        if self._execution_id is not None and self._is_queued:
            self._transfers.end(self._execution_id, reason)

    def changed(self, execution: AgentExecution) -> None:
        """Handle a new state of an execution of the group."""
        if execution.id != self._execution_id or not execution.is_final:
            return
        if execution.state == "ok":
            asyncio.get_running_loop().run_in_executor(None, drop_older, self._group.spec, self._options)
            self._end("ok", None)
        else:
            reason = execution.error.message if execution.error else f"It ended with '{execution.state}'."
            self._end(execution.state, reason)

    async def _submit(self, execution_id: str, make_way: Callable[[], None] | None) -> None:
        group = self._group
        if make_way is not None:
            make_way()
        wanted = await asyncio.to_thread(automatic_save, group.spec, self._options)
        self.name, ranks = wanted.name, RankSet(range(group.spec.world_size))
        save = ExecutionSpec(execution_id, ranks, silent=True, expression="all")
        try:
            await self._transfers.submit(save, f"# save of {self.name}".encode(), wanted)
        except JupyterDistError as err:
            self._end("error", str(err))
            return
        self._is_queued = True
        if self._execution_id == execution_id and self._late is not None:  # the folder was slow
            self._transfers.end(execution_id, self._late)

    def _failed(self, error: BaseException) -> None:
        self._end("error", f"{error!r:.300}")

    def _end(self, state: str, reason: str | None) -> None:
        if self._execution_id is not None:
            self._execution_id = None
            self._on_end(state, reason)


def automatic_save(group: GroupSpec, options: SavesOptions) -> TransferSpec:
    """Return a save of all ranks. Blocking."""
    name = re.sub("[^A-Za-z0-9_.-]", "-", group.name).lstrip("_.-")[:60] or "group"
    return TransferSpec(
        "save",
        options.saves_folder,
        free_name(SavesFolder(Path(options.saves_folder)), f"{name}-auto-{time.strftime('%Y%m%d-%H%M%S')}"),
        timeout_seconds=DEFAULT_TRANSFER_SECONDS,
        max_bytes=options.saves_bytes,
        is_automatic=True,
    )


def drop_older(group: GroupSpec, options: SavesOptions) -> None:
    """Delete the automatic saves of a group that are more than it keeps. Blocking."""
    try:
        delete_automatic(SavesFolder(Path(options.saves_folder)), group.group_id, options.saves_kept)
    except OSError as err:  # the next save tries again
        log.warning("Older saves cannot be deleted: %s", err)
