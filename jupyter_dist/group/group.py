"""What can be asked of a group: starts and ends, cells, views and its ranks' logs."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from typing import Any

from jupyter_dist.folding.views import View
from jupyter_dist.journal.reader import JournalCursor
from jupyter_dist.journal.sound import is_sound
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.frames import MAX_PAYLOAD_BYTES
from jupyter_dist.protocol.ranks import format_ranks, parse_ranks
from jupyter_dist.protocol.specs import ExecutionSpec, GroupSpec

from .executions import ExecutionModel
from .following import FollowedGroup
from .logs import LogReader, LogRecord, concerned_ranks

MAX_CODE_BYTES = 16 << 20
SHUTDOWN_SECONDS = 20.0
GONE_SECONDS = 10.0


class Group(FollowedGroup):
    """A group, and what can be asked of it."""

    # -- life -----------------------------------------------------------------------------------------

    async def start(self, spec: GroupSpec, environment: dict[str, Any]) -> None:
        """Make the waiting agent this group; its ranks come up from now on."""
        answer, _ = await self._link.request("start", spec=spec.to_dict(), environment=environment)
        self.status.fields = answer["group"]
        await self._follow(0)
        self._changed()

    async def restart(self) -> None:
        """End all ranks and start new ones."""
        await self._renew("restart")

    async def replace(self) -> None:
        """Give every dead rank a new process; the others keep theirs, and their variables.

        Raises:
            JupyterDistError: `group_not_ready`, when no rank is dead.
        """
        await self._renew("replace")

    async def reform(self) -> None:
        """Form the process group anew in the same processes; every variable is kept.

        Raises:
            JupyterDistError: `group_not_ready`, when ranks are dead, or run cells.
        """
        answer, _ = await self._ask("reform")
        self.status.fields = answer["group"]
        self._changed()

    async def kill(self, rank: int) -> None:
        """End one rank's process, whatever it does; the others are left alone."""
        self.check_rank(rank)
        answer, _ = await self._ask("kill", rank=rank)
        self.status.fields = answer["group"]
        self._changed()

    async def shutdown(self) -> list[str]:
        """End everything; returns what had to be killed, when no process and no file is left."""
        self._ending = True
        if self._reconnecting is not None:
            self._reconnecting.cancel()
        killed: list[str] = []
        if self._link.is_open:
            with contextlib.suppress(JupyterDistError):
                answer, _ = await self._link.request("shutdown", timeout_seconds=SHUTDOWN_SECONDS)
                killed = answer["killed"]
        if not await self._link.wait_exit(GONE_SECONDS):
            self._link.kill_agent()
            await self._link.wait_exit(GONE_SECONDS)
            killed.append("The group's agent did not end by itself and was killed.")
        await self._link.close()
        self.directory.remove()
        self.status.update(state="dead")
        self._changed()
        return killed

    # -- cells ----------------------------------------------------------------------------------------

    async def execute(self, code: str, ranks: str, **fields: Any) -> ExecutionModel:
        """Run a cell on the ranks that the expression names; returns once it is queued.

        Raises:
            JupyterDistError: `bad_ranks`, `group_not_ready`, `rank_dead`, `too_large`, ...
        """
        payload = code.encode("utf-8", "surrogatepass")
        if len(payload) > MAX_CODE_BYTES:
            message = f"The cell has {len(payload)} bytes; the limit is {MAX_CODE_BYTES}."
            raise JupyterDistError("too_large", message, "Put data into a file.")
        self.status.check_takes_cells()
        chosen = list(parse_ranks(ranks, self.world_size))
        spec = ExecutionSpec(execution_id=f"e-{secrets.token_hex(6)}", ranks=chosen, **fields)
        answer, _ = await self._link.request("execute", payload, execution=spec.to_dict())
        self.executions.set_code(spec.execution_id, code)
        known = [model for model in self.executions.all() if model["id"] == spec.execution_id]
        if not known:  # else the agent has told of a newer state already
            self.executions.update(answer["execution"])
        return self.executions.get(spec.execution_id)

    async def cancel(self, execution_id: str) -> None:
        """Cancel a queued execution, interrupt a running one."""
        self.executions.get(execution_id)
        await self._ask("cancel", execution_id=execution_id)

    async def interrupt(self, ranks: str) -> dict[str, str]:
        """Interrupt what runs on these ranks."""
        answer, _ = await self._ask("interrupt", ranks=list(parse_ranks(ranks, self.world_size)))
        found = {key: format_ranks(answer[key]) for key in ("interrupted", "idle")}
        if answer.get("unresponsive"):
            found["unresponsive"] = format_ranks(answer["unresponsive"])
        return found

    async def empty_cache(self, ranks: str) -> dict[str, int]:
        """Collect garbage and empty the device caches of these ranks; freed bytes by rank."""
        chosen = list(parse_ranks(ranks, self.world_size))
        answer, _ = await self._ask("empty_cache", ranks=chosen)
        return dict(answer["freed_bytes"])

    async def complete(self, rank: int, code: str, cursor_pos: int | None) -> dict[str, Any]:
        """What the names of a rank make of the code before the cursor: `matches`, `cursor_start`, `cursor_end`.

        Raises:
            JupyterDistError: `unknown_rank`, `rank_dead`, `timed_out` when the rank cannot answer at once, ...
        """
        self.check_rank(rank)
        position = len(code) if cursor_pos is None else min(cursor_pos, len(code))
        payload = code.encode("utf-8", "replace")
        answer, _ = await self._ask("complete", payload, rank=rank, cursor_pos=position)
        return {name: answer[name] for name in ("matches", "cursor_start", "cursor_end")}

    async def view(self, execution_id: str) -> View:
        """The view of an execution."""
        model = self.executions.get(execution_id)
        return await self._views.get(execution_id, model["ranks"])

    def peek_view(self, execution_id: str) -> View | None:
        """The view, if it is in memory."""
        return self._views.peek(execution_id)

    # -- logs and memory --------------------------------------------------------------------------------

    async def log_page(self, rank: int, before: int | None, max_bytes: int) -> dict[str, Any]:
        """A page of a rank's log: the newest records, or those before one."""
        self.check_rank(rank)
        return await self._history.log_page(rank, before, max_bytes)

    async def log_after(self, rank: int, seq: int) -> tuple[list[LogRecord], int]:
        """The newest log records after `seq`, and how many more there are than that."""
        self.check_rank(rank)
        return (await self._history.ring(rank)).after(seq)

    def log_chunks(self, rank: int) -> Iterator[list[LogRecord]]:
        """The whole log of a rank, about a megabyte of the journal at a time. Reads files: for a thread."""
        cursor = JournalCursor(self.directory.journal_path)
        reader = LogReader(rank, self.executions.counts, MAX_PAYLOAD_BYTES)
        try:
            while records := cursor.read():
                sound = (r for r in records if is_sound(r.header, self.world_size))
                mine = (r for r in sound if rank in concerned_ranks(r.header, self.world_size))
                converted = (reader.convert(record.header, record.payload) for record in mine)
                yield [record for record in converted if record is not None]
        finally:
            cursor.close()

    def check_rank(self, rank: int) -> None:
        """Raise JupyterDistError `unknown_rank` unless the rank exists."""
        if not 0 <= rank < self.world_size:
            message = f"Group '{self.name}' has no rank {rank}."
            raise JupyterDistError("unknown_rank", message, f"Its ranks are 0 to {self.world_size - 1}.")

    async def _renew(self, request: str) -> None:
        answer, _ = await self._ask(request)
        # The agent answers before it begins; whoever waits for the end must not see the state before.
        self.status.fields = {**answer["group"], "state": "restarting"}
        self._changed()
