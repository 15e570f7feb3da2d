"""What clients may ask of a group: one method for each operation of a group in protocol/operations, by its name."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jupyter_dist.protocol import curves, differences, machine, models
from jupyter_dist.protocol.ranks import parse_ranks
from jupyter_dist.server.devices.samples import seconds_ago
from jupyter_dist.server.mirror.logs import log_text

from .comparison import compare
from .curves import MAX_BYTES, CurvesByName, csv_chunks, find_curves, list_curves
from .differences import list_variables
from .drift import find_drift
from .traces import clock_shifts, find_trace, trace_chunks

if TYPE_CHECKING:
    from .group import ManagedGroup
    from .manager import GroupManager

LAST_SECONDS = 300.0


@dataclass(frozen=True)
class FileAnswer:
    """A file that is made while it is sent."""

    name: str
    chunks: Iterator[bytes | str]  # each made in a thread
    unreadable: str  # the message of the error if that fails


class GroupOperations:
    """The operations of one group."""

    def __init__(self, group: ManagedGroup, manager: GroupManager) -> None:
        self._group = group
        self._manager = manager

    @property
    def id(self) -> str:
        """Return the group's id."""
        return self._group.id

    # -- the group --------------------------------------------------------------------------------------

    async def status(self, wait: float = 0, not_state: str | None = None) -> models.Group:
        """Return the state of the group, at once or after it has left a state."""
        group = self._group
        if not_state is not None:
            # A group that does not respond may still be in it.
            await group.wait_until(lambda: not_state not in (group.state, group.status.told_state), wait)
        return group.model()

    async def shutdown(self) -> models.Shutdown:
        """End the group."""
        return {"killed": await self._manager.shutdown(self._group)}

    async def own(self, key: str | None = None, **owner: Any) -> models.Group:
        """Let the group live as long as another process, too."""
        await self._group.own(owner)
        return self._group.model()

    async def interrupt(self, ranks: str = "all") -> models.Interrupted:
        """Interrupt running cells."""
        return await self._group.interrupt(ranks)

    async def restart(self, key: str | None = None) -> models.Group:
        """Restart all ranks."""
        await self._manager.restart(self._group, key)
        return self._group.model()

    async def replace(self, key: str | None = None) -> models.Group:
        """Start new processes for dead ranks."""
        await self._group.replace(key)
        return self._group.model()

    async def reform(self, key: str | None = None) -> models.Group:
        """Re-create the process group in the same processes."""
        await self._group.reform(key)
        return self._group.model()

    async def debug(self, message: dict[str, Any], ranks: str = "all") -> models.DebugReplies:
        """Send a request to the debuggers of ranks."""
        return await self._group.debug(ranks, message)

    async def empty_cache(self, ranks: str = "all") -> models.FreedBytes:
        """Free unused memory of ranks."""
        return {"freed_bytes": await self._group.empty_cache(ranks)}

    async def last_samples(self) -> machine.Samples:
        """Return the last minutes of memory samples."""
        return {"samples": self._group.memory.last(LAST_SECONDS)}

    async def samples(self, since: float = 0, seconds: float | None = None, limit: int = 600) -> machine.PastSamples:
        """Return a page of the last hour's samples."""
        if seconds is not None:
            since = max(since, seconds_ago(seconds))
        page = self._group.memory.page(since, limit)
        devices = [] if self._group.status.num_nodes > 1 else self._manager.devices.past.between(page)
        return {**page, "devices": devices}

    async def stacks(self) -> models.Stacks:
        """Return the Python stacks of all ranks."""
        return {"stacks": await self._group.stacks()}

    async def variables(self, ranks: str = "all") -> differences.Variables:
        """Return the variables of idle ranks; no code of users runs there."""
        return await list_variables(self._group.ask_variables, self._chosen(ranks))

    async def compare(self, name: str, ranks: str = "all") -> differences.Comparison:
        """Compare a variable between ranks."""
        return await compare(self._group.ask_variables, name, self._chosen(ranks))

    async def drift(self) -> differences.Drift:
        """Return the cells since the last restart, and the ranks that have missed them."""
        return await find_drift(self._group)

    async def history(self, number: int = 500) -> machine.History:
        """Return the last cells that ran, with their code."""
        return {"cells": await self._group.history(number)}

    async def script(self, notebook: str | None = None, cells: str | None = None) -> models.Script:
        """Return the cells of a notebook as a script for torchrun."""
        return await self._group.script(notebook, cells)

    # -- one rank ---------------------------------------------------------------------------------------

    async def kill(self, rank: int, key: str | None = None) -> models.Group:
        """Kill the rank's process, even if it hangs."""
        await self._group.kill(rank, key)
        return self._group.model()

    async def complete(self, rank: int, code: str, cursor_pos: int | None = None) -> models.Completion:
        """Complete code with the names of a rank."""
        return await self._group.complete(rank, code, cursor_pos)

    async def inspect(self, rank: int, code: str, cursor_pos: int | None = None, detail: int = 0) -> models.Inspection:
        """Return the documentation that a rank has of the name at the cursor."""
        return await self._group.inspect(rank, code, cursor_pos, detail)

    async def send_comm(self, rank: int, kind: str, content: str) -> models.CommTaken:
        """Send a message to a widget of a rank."""
        return await self._group.send_comm(rank, kind, content)

    async def logs(self, rank: int, tail_bytes: int = 256 << 10, before: int | None = None) -> models.LogPage:
        """Return the newest records of a rank's log, or those before a record."""
        return await self._group.log_page(rank, before, tail_bytes)

    async def log_file(self, rank: int) -> FileAnswer:
        """Return the full log of a rank as text."""
        group = self._group
        group.check_rank(rank)
        chunks = map(log_text, group.log_chunks(rank))
        return FileAnswer(f"{group.id}-rank-{rank}.log", chunks, "The log cannot be read.")

    # -- executions -------------------------------------------------------------------------------------

    async def executions(self) -> models.Executions:
        """Return the executions of the group."""
        return {"executions": self._group.executions.listed()}

    async def submit(
        self, code: str, ranks: str = "all", key: str | None = None, owner: str | None = None, **fields: Any
    ) -> models.Execution:
        """Queue a cell on ranks, with optional fields of RunRequest; `owner` is the name of the user who runs it."""
        return await self._group.execute(code, ranks, key, owner=owner, **fields)

    async def view(self, execution_id: str, wait: float = 0) -> models.View:
        """Return an execution and its folded outputs, at once or after it has ended."""
        group = self._group
        await group.wait_ended(execution_id, wait)
        snapshot = (await group.view(execution_id)).snapshot()
        return {"execution": await group.execution(execution_id), "seq": snapshot.seq, "items": snapshot.to_list()}

    async def cancel(self, execution_id: str) -> models.Execution:
        """Cancel a queued execution, interrupt a running one."""
        await self._group.cancel(execution_id)
        return await self._group.execution(execution_id)

    async def answer_input(
        self, execution_id: str, text: str | None, ranks: str | None = None, seq: int | None = None
    ) -> models.InputAnswered:
        """Answer the question of an execution's ranks."""
        return await self._group.answer_input(execution_id, text, ranks, seq)

    async def extend(self, execution_id: str, ranks: str = "all") -> models.Execution:
        """Run a running cell on more ranks."""
        await self._group.extend(execution_id, ranks)
        return await self._group.execution(execution_id)

    async def curves(self, execution_id: str) -> curves.Curves:
        """Return the curves of an execution, from all lines so far."""
        found, unread_bytes = await self._curves(execution_id)
        return list_curves(execution_id, found, unread_bytes)

    async def curves_file(self, execution_id: str) -> FileAnswer:
        """Return every number of the curves of an execution."""
        found, _ = await self._curves(execution_id)
        return FileAnswer(f"{self.id}-{execution_id}-curves.csv", csv_chunks(found), "The curves cannot be read.")

    async def trace_file(self, execution_id: str) -> FileAnswer:
        """Return the merged trace of a profiled cell."""
        self._group.executions.get(execution_id)
        files = await asyncio.to_thread(find_trace, self._group.directory.path, execution_id)
        shifts = clock_shifts((await self._group.view(execution_id)).snapshot().to_list())
        chunks = trace_chunks(files, shifts)
        return FileAnswer(f"{self.id}-{execution_id}-trace.json", chunks, "The trace cannot be read.")

    async def _curves(self, execution_id: str) -> tuple[CurvesByName, int]:
        printed = await self._group.printed(execution_id, MAX_BYTES)
        return await asyncio.to_thread(find_curves, printed), printed.unread_bytes

    def _chosen(self, ranks: str) -> list[int]:
        return list(parse_ranks(ranks, self._group.world_size, self._group.status.num_nodes))
