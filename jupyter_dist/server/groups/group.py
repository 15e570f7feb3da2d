"""The operations on a group: start, restart and shutdown, cells, views, and logs of ranks."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import secrets
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jupyter_dist.protocol import machine, models, road
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models import LogRecord
from jupyter_dist.protocol.ranks import format_ranks, parse_ranks
from jupyter_dist.protocol.requests import MAX_CODE_BYTES
from jupyter_dist.protocol.specs import ExecutionSpec, GroupSpec
from jupyter_dist.server.launchers.allocation import Allocation, Wanted
from jupyter_dist.server.mirror.following import ANSWER_SECONDS, FollowedGroup
from jupyter_dist.server.mirror.history import Printed
from jupyter_dist.server.mirror.logs import LogReader
from jupyter_dist.server.script.writer import write_script
from jupyter_dist.server.spawner.process import AgentProcess
from jupyter_dist.transport.frames import MAX_PAYLOAD_BYTES, Header
from jupyter_dist.transport.tasks import start_task

from .ending import end_agent, end_keeper
from .nodes import GroupNodes
from .resolve import checked_owner

if TYPE_CHECKING:
    from jupyter_dist.server.launchers.launcher import Launcher

log = logging.getLogger(__name__)

_SAME_KEY = "The cell may still run. A retry with the same key does not run it twice."
_LOOK_FIRST = "The cell may still be running: check the group's executions before you run it again."


class ManagedGroup(FollowedGroup):
    """A group as the manager has it: what is known of it, and its operations."""

    _nodes: GroupNodes | None = None
    _following_nodes: asyncio.Task[None] | None = None

    # -- life -----------------------------------------------------------------------------------------

    async def start(self, spec: GroupSpec, environment: models.GroupEnvironment) -> None:
        """Turn the waiting agent into this group, and start its ranks."""
        await self._link.request("start", take=self._on_group, spec=spec.to_dict(), environment=environment)
        await self._follow(0)

    async def responds(self) -> bool:
        """Whether its agent gives a sign of life within a moment; one that does not is not asked to end, but ended."""
        self._link.is_silent = not await self._link.responds(ANSWER_SECONDS)
        return not self._link.is_silent

    async def restart(self, key: str | None = None) -> None:
        """End all ranks and start new ones; not repeated for a key that the agent has seen."""
        await self._ask("restart", take=self._on_group, key=key)

    async def replace(self, key: str | None = None) -> None:
        """Start a new process for every dead rank; the others keep theirs, and their variables.

        Raises:
            JupyterDistError: `group_not_ready`, if no rank is dead.
        """
        await self._ask("replace", take=self._on_group, key=key)

    async def reform(self, key: str | None = None) -> None:
        """Re-create the process group in the same processes; every variable is kept.

        Raises:
            JupyterDistError: `group_not_ready`, if ranks are dead or running cells.
        """
        await self._ask("reform", take=self._on_group, key=key)

    async def own(self, owner: dict[str, Any]) -> None:
        """Have a group that ends with processes live as long as this one, too."""
        await self._ask("own", take=self._on_group, owner=checked_owner(owner))

    async def kill(self, rank: int, key: str | None = None) -> None:
        """Kill one rank's process, even if it hangs; the others are not affected."""
        self.check_rank(rank)
        await self._ask("kill", take=self._on_group, rank=rank, key=key)

    async def shutdown(self) -> list[str]:
        """End the group and remove its files; return what had to be killed.

        Raises:
            JupyterDistError: `timed_out`, if its agent cannot be ended; the group is kept then.
        """
        await self._stop_tasks()
        process = self.agent_process()
        keeper = AgentProcess.find(self.directory.path, process and process.parent, "keeper")
        try:
            killed = await self._end_agent(process)
            await end_keeper(keeper)
        finally:
            for held in (process, keeper):
                if held is not None:
                    held.close()
        await self._link.close()
        killed += await self._release_nodes()
        self.directory.remove()
        self.status.silence = None
        self.status.update(state="dead")
        self._changed()
        return killed

    async def _end_agent(self, process: AgentProcess | None) -> list[str]:
        try:
            return await end_agent(self._link, process, self.name)
        except JupyterDistError:
            self._ending = False
            self.connect()
            raise

    # -- nodes ----------------------------------------------------------------------------------------

    async def launch_nodes(self, launcher: Launcher, options: Mapping[str, Any], env: Mapping[str, str]) -> None:
        """Have a launcher start the node agents of the group, which has just been started.

        Raises:
            JupyterDistError: `bad_request`, `launcher_failed` or `timed_out`.
        """
        spec, command = self.status.fields["spec"], shlex.split(self.status.fields["join"])
        wanted = Wanted(
            group_id=self.id,
            name=self.name,
            directory=self.directory.path,
            num_nodes=spec["num_nodes"],
            command=tuple(command),
            env=env,
            cwd=spec["cwd"],
            options=options,
            files=(Path(command[-1]),),
        )
        self.take_allocation(await launcher.submit(wanted))

    def take_allocation(self, allocation: Allocation) -> None:
        """Follow what happens to the group's nodes; the server's first look, or an adopted job."""
        self._nodes = GroupNodes(allocation)
        self._show_nodes()
        following = self._nodes.follow(self._show_nodes, self._nodes_failed)
        self._following_nodes = start_task(following, f"nodes of {self.id}")

    def _show_nodes(self) -> None:
        assert self._nodes is not None
        before, self.status.allocation = self.status.allocation, self._nodes.model()
        if (warning := self.status.allocation["warning"]) and warning != (before and before["warning"]):
            log.warning("jupyter_dist: group '%s': %s", self.name, warning)
        self._changed()

    async def _nodes_failed(self, why: str) -> None:
        """End a group whose nodes will never be complete; one that was is told by its agents."""
        assert self._nodes is not None
        if self.status.told_state != "starting" or self._ending:
            return
        await self._stop_tasks()
        await self._nodes.release()
        with self.agent_process() or contextlib.nullcontext() as process:
            await self._end_agent(process)
        await self._link.close()
        error = JupyterDistError("start_failed", f"The nodes of group '{self.name}' did not start. {why}")
        self.status.silence = None
        self.status.update(state="dead", error=error.to_dict(), join=None)
        self._show_nodes()

    async def _release_nodes(self) -> list[str]:
        if self._following_nodes is not None:
            self._following_nodes.cancel()
            await asyncio.gather(self._following_nodes, return_exceptions=True)
        return await self._nodes.release() if self._nodes is not None else []

    # -- cells ----------------------------------------------------------------------------------------

    async def execute(self, code: str, ranks: str, key: str | None = None, **fields: Any) -> models.Execution:
        """Queue a cell for the ranks that the expression names, and return its execution.

        A key that was used before, by this or an earlier server, returns the earlier execution.

        Raises:
            JupyterDistError: `bad_ranks`, `group_not_ready`, `rank_dead`, `too_large`, ...
        """
        payload = code.encode("utf-8", "surrogatepass")
        if len(payload) > MAX_CODE_BYTES:
            message = f"The cell is {len(payload)} bytes; the limit is {MAX_CODE_BYTES}."
            raise JupyterDistError("too_large", message, "Put the data into a file.")
        self.status.check_takes_cells()
        chosen = parse_ranks(ranks, self.world_size, self.status.num_nodes)
        spec = ExecutionSpec(execution_id=_execution_id(key), ranks=chosen, **fields)
        try:
            await self._ask("execute", payload, take=self._on_submitted, execution=spec.to_dict())
        except JupyterDistError as err:
            if err.code not in ("timed_out", "agent_unreachable") or self.status.silence is err:
                raise
            raise JupyterDistError(err.code, err.message, _SAME_KEY if key else _LOOK_FIRST) from err
        self.executions.set_code(spec.execution_id, code)
        return self.executions.get(spec.execution_id)

    async def answer_input(
        self, execution_id: str, text: str | None, ranks: str | None = None, seq: int | None = None
    ) -> models.InputAnswered:
        """Answer what ranks of a cell ask for; of several answers to a question the first one counts.

        Args:
            execution_id: the cell.
            text: the answer; None: there is no more input.
            ranks: a rank expression; by default all that ask, if they ask the same.
            seq: that of the question; later ones are not answered.

        Raises:
            JupyterDistError: `not_asking`, `rank_dead`, `bad_request`, `bad_ranks`, ...
        """
        self.executions.get(execution_id)
        chosen = None if ranks is None else list(parse_ranks(ranks, self.world_size, self.status.num_nodes))
        payload = road.TO_RANK["input"].encode(road.InputAnswer(text=text))
        fields = {"kind": "input", "execution_id": execution_id, "ranks": chosen, "seq": seq}
        answer, _ = await self._ask("to_rank", payload, **fields)
        answered = list(answer["ranks"])
        left = [] if chosen is None else [rank for rank in chosen if rank not in answered]
        return {"answered": format_ranks(answered), "not_asking": format_ranks(left)}

    async def fetch_comms(self) -> Header:
        """Return all open comms, with their state. Raises JupyterDistError `agent_unreachable`, ..."""
        answer, _ = await self._ask("comms")
        return answer

    async def send_comm(self, rank: int, kind: str, content: str) -> models.CommTaken:
        """Send a message to a widget of a rank, which handles it when no cell runs there.

        Raises:
            JupyterDistError: `unknown_rank`, `not_found`, `rank_dead`, `bad_request`, ...
        """
        self.check_rank(rank)
        answer, _ = await self._ask("to_rank", road.checked(kind, content), kind=kind, ranks=[rank])
        return {"waits": bool(answer["waits"])}

    async def execution(self, execution_id: str) -> models.Execution:
        """Return the execution with its code. Raises JupyterDistError `unknown_execution`, ..."""
        self.executions.get(execution_id)
        with contextlib.suppress(JupyterDistError):  # its state can be told whatever the disk does
            await self._history.fetch_code(execution_id)
        return self.executions.get(execution_id)

    async def extend(self, execution_id: str, ranks: str) -> None:
        """Run a running cell, as it was submitted, on more ranks; those that have it already are skipped.

        Raises:
            JupyterDistError: `bad_ranks`, `group_not_ready`, `rank_dead`, ...
        """
        self.executions.get(execution_id)
        chosen = list(parse_ranks(ranks, self.world_size, self.status.num_nodes))
        await self._ask("extend", take=self._on_execution, execution_id=execution_id, ranks=chosen)

    async def cancel(self, execution_id: str) -> None:
        """Cancel a queued execution, interrupt a running one."""
        self.executions.get(execution_id)
        await self._ask("cancel", execution_id=execution_id)

    async def interrupt(self, ranks: str) -> models.Interrupted:
        """Interrupt the cells that run on these ranks."""
        answer, _ = await self._ask("interrupt", ranks=list(parse_ranks(ranks, self.world_size, self.status.num_nodes)))
        found: models.Interrupted = {
            "interrupted": format_ranks(answer["interrupted"]),
            "idle": format_ranks(answer["idle"]),
        }
        if answer.get("unresponsive"):
            found["unresponsive"] = format_ranks(answer["unresponsive"])
        return found

    async def empty_cache(self, ranks: str) -> dict[str, int]:
        """Collect garbage and empty the device caches of these ranks; return the freed bytes by rank."""
        chosen = list(parse_ranks(ranks, self.world_size, self.status.num_nodes))
        answer, _ = await self._ask("empty_cache", ranks=chosen)
        return dict(answer["freed_bytes"])

    async def complete(self, rank: int, code: str, cursor_pos: int | None) -> models.Completion:
        """Complete the code before the cursor with the names of a rank: `matches`, `cursor_start`, `cursor_end`.

        Raises:
            JupyterDistError: `unknown_rank`, `rank_dead`, `timed_out` if the rank cannot answer at once, ...
        """
        self.check_rank(rank)
        position = len(code) if cursor_pos is None else min(cursor_pos, len(code))
        payload = code.encode("utf-8", "replace")
        answer, _ = await self._ask("complete", payload, rank=rank, cursor_pos=position)
        found: models.Completion = {
            "matches": answer["matches"],
            "cursor_start": answer["cursor_start"],
            "cursor_end": answer["cursor_end"],
        }
        if "types" in answer:  # the rank runs no cell
            found["types"], found["signatures"] = answer["types"], answer["signatures"]
        return found

    async def inspect(self, rank: int, code: str, cursor_pos: int | None, detail: int) -> models.Inspection:
        """Return what a rank knows about the name at the cursor. Raises like `complete`."""
        self.check_rank(rank)
        position = len(code) if cursor_pos is None else min(cursor_pos, len(code))
        payload = code.encode("utf-8", "replace")
        answer, _ = await self._ask("inspect", payload, rank=rank, cursor_pos=position, detail=detail)
        return {"found": answer["found"], "data": answer["data"], "busy": answer["busy"]}

    async def ask_variables(self, rank: int, asked: dict[str, Any]) -> dict[str, Any]:
        """Ask a rank about its variables, between cells (docs/messaging.md). Raises as `inspect`."""
        answer, _ = await self._ask("variables", json.dumps(asked).encode(), rank=rank)
        return dict(answer["reply"])

    async def debug(self, ranks: str, message: dict[str, Any]) -> models.DebugReplies:
        """Pass a debug_request of Jupyter's to the debuggers of these ranks. Raises as `inspect`."""
        chosen = list(parse_ranks(ranks, self.world_size, self.status.num_nodes))
        payload = json.dumps(message).encode()
        answers = await asyncio.gather(*(self._ask("debug", payload, rank=rank) for rank in chosen))
        return {
            "replies": [{"rank": rank, "content": a["reply"]} for rank, (a, _) in zip(chosen, answers, strict=True)]
        }

    async def stacks(self) -> list[models.RankStack]:
        """Return the Python stacks of all ranks, equal ones once."""
        answer, _ = await self._ask("stacks")
        return list(answer["stacks"])

    async def log_page(self, rank: int, before: int | None, max_bytes: int) -> models.LogPage:
        """Return a page of a rank's log: the newest records, or those before the given one."""
        self.check_rank(rank)
        return await self._history.log_page(rank, before, max_bytes)

    async def log_after(self, rank: int, seq: int) -> tuple[list[LogRecord], int]:
        """Return the newest log records after `seq`, and how many were skipped."""
        self.check_rank(rank)
        return (await self._history.ring(rank)).after(seq)

    async def history(self, number: int) -> list[machine.HistoryCell]:
        """Return the last cells that ran, oldest first; also those that ran before a restart of the ranks."""
        return await self._history.cells(number)

    async def script(self, notebook: str | None, cells: str | None) -> models.Script:
        """Return the cells that ran on ranks as a script for torchrun (docs/api.md, Script).

        Raises:
            JupyterDistError: `bad_request`, `not_found`, `too_large`.
        """
        runs, codes = await self._history.runs()
        return await asyncio.to_thread(write_script, self.model(), runs, codes, notebook, cells)

    async def printed(self, execution_id: str, max_bytes: int) -> Printed:
        """Return the records of an execution: those that its view leaves out, too."""
        self.executions.get(execution_id)
        return await self._history.printed(execution_id, max_bytes)

    def log_chunks(self, rank: int) -> Iterator[list[LogRecord]]:
        """Yield the full log of a rank, about a megabyte of the journal at a time. Reads files: call it in a thread."""
        reader = LogReader(rank, self.executions.counts, MAX_PAYLOAD_BYTES)
        return reader.chunks(self.directory.journal_path, self.world_size, self._is_sound)

    def check_rank(self, rank: int) -> None:
        """Raise JupyterDistError `unknown_rank` unless the rank exists."""
        if not 0 <= rank < self.world_size:
            message = f"Group '{self.name}' has no rank {rank}."
            raise JupyterDistError("unknown_rank", message, f"Its ranks are 0 to {self.world_size - 1}.")


def _execution_id(key: str | None) -> str:
    """Return a new id, the same for the same key, so that the agent recognizes a cell that it already has."""
    return f"e-{hashlib.sha256(key.encode()).hexdigest()[:24] if key else secrets.token_hex(6)}"
