"""The operations of a group: a method for each operation of protocol/operations on a group, by its name."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models import machine, models
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.protocol.ranks import RankSet
from jupyter_dist.protocol.secrets import Secrets
from jupyter_dist.protocol.wire import road
from jupyter_dist.protocol.wire.requests import MAX_CODE_BYTES
from jupyter_dist.protocol.wire.specs import ExecutionSpec, ReplaceSpec
from jupyter_dist.server.devices.samples import seconds_ago
from jupyter_dist.server.mirror.logs import log_text
from jupyter_dist.server.spawner.local import client_environment

from .resolve import Again, checked_owner

if TYPE_CHECKING:
    from .group import ManagedGroup
    from .manager import GroupManager

LAST_SECONDS = 300.0

_SAME_KEY = "The cell may still run. A retry with the same key does not run it twice."
_LOOK_FIRST = "The cell may still be running: check the group's executions before you run it again."


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
        self._mirror = group.mirror
        self._manager = manager

    @property
    def id(self) -> str:
        """Return the group's id."""
        return self._group.id

    @property
    def group(self) -> ManagedGroup:
        """Return the group, for operations of parts."""
        return self._group

    # -- the group --------------------------------------------------------------------------------------

    async def status(self, wait: float = 0, not_state: str | None = None) -> models.GroupModel:
        """Return the state of the group, at once or after it has left a state."""
        mirror = self._mirror
        if not_state is not None:
            # A group that does not respond may still be in that state.
            await mirror.wait_until(lambda: not_state not in (mirror.state, mirror.status.reported_state), wait)
        return mirror.model()

    async def shutdown(self) -> models.Shutdown:
        """End the group."""
        return {"killed": await self._manager.shutdown(self._group)}

    async def own(self, key: str | None = None, **owner: Any) -> models.GroupModel:
        """Let the group live as long as another process, in addition to its owners."""
        return await self._group.changed_by("own", owner=checked_owner(owner))

    async def interrupt(self, ranks: str = "all") -> models.Interrupted:
        """Interrupt the cells that run on these ranks."""
        answer, _ = await self._mirror.ask("interrupt", ranks=self._chosen(ranks))
        found: models.Interrupted = {
            "interrupted": str(RankSet(answer["interrupted"])),
            "idle": str(RankSet(answer["idle"])),
        }
        if answer.get("unresponsive"):
            found["unresponsive"] = str(RankSet(answer["unresponsive"]))
        return found

    async def restart(self, key: str | None = None) -> models.GroupModel:
        """End all ranks and start new ones; not repeated for a key that the agent has seen.

        Raises:
            JupyterDistError: `name_taken`, if the group was dead, and another one has its name now.
        """
        self._manager.check_name(self._group)
        return await self._group.changed_by("restart", key=key)

    async def start_again(
        self, env: dict[str, str] | None = None, environ: str | None = None, key: str | None = None
    ) -> models.GroupModel:
        """Start a group that has ended with the options of its start.

        Raises:
            JupyterDistError: `group_not_ready`, if it has not ended, or variables are to be given; else as a start.
        """
        again = Again(Secrets.parsed(env), None if environ is None else client_environment(environ))
        return (await self._manager.start_again(self._group, again, key)).model()

    async def replace(
        self, state: str = "empty", others: str = "leave", key: str | None = None, **fields: Any
    ) -> models.GroupModel:
        """Start a new process for every dead rank, which begins with variables of the others, or as a part has them.

        Raises:
            JupyterDistError: `group_not_ready`, if no rank is dead; `ranks_differ`; the errors of a restore.
        """
        way = self._manager.parts.way_to_replace(state)
        wanted = ReplaceSpec(state, others, way(self._group, **fields) if way else None)
        return await self._group.changed_by("replace", key=key, wanted=wanted.to_dict())

    async def reform(self, key: str | None = None) -> models.GroupModel:
        """Re-create the process group in the same processes.

        Raises:
            JupyterDistError: `group_not_ready`, if ranks are dead or running cells.
        """
        return await self._group.changed_by("reform", key=key)

    async def empty_cache(self, ranks: str = "all") -> models.FreedBytes:
        """Free unused memory of ranks."""
        answer, _ = await self._mirror.ask("empty_cache", ranks=self._chosen(ranks))
        return {"freed_bytes": dict(answer["freed_bytes"])}

    async def last_samples(self) -> machine.SamplesModel:
        """Return the last minutes of memory samples."""
        return {"samples": self._mirror.memory.last(LAST_SECONDS)}

    async def samples(self, since: float = 0, seconds: float | None = None, limit: int = 600) -> machine.PastSamples:
        """Return a page of the last hour's samples."""
        if seconds is not None:
            since = max(since, seconds_ago(seconds))
        page = self._mirror.memory.page(since, limit)
        devices = [] if len(self._mirror.status.node_ranks) > 1 else self._manager.devices.past.between(page)
        return {**page, "devices": devices}

    async def stacks(self) -> models.Stacks:
        """Return the Python stacks of all ranks."""
        answer, _ = await self._mirror.ask("stacks")
        return {"stacks": list(answer["stacks"])}

    async def verdicts(self) -> models.Verdicts:
        """Return the verdicts on the group's cells, and what happened afterwards."""
        answer, _ = await self._mirror.ask("verdicts")
        return {"shown": answer["shown"], "refuted": answer["refuted"], "verdicts": answer["verdicts"]}

    async def history(self, number: int = 500) -> machine.HistoryModel:
        """Return the last cells that ran, with their code; also the cells from before a restart of the ranks."""
        return {"cells": await self._mirror.history.cells(number)}

    # -- one rank ---------------------------------------------------------------------------------------

    async def kill(self, rank: int, key: str | None = None) -> models.GroupModel:
        """Kill the rank's process, even if it hangs."""
        self._mirror.check_rank(rank)
        return await self._group.changed_by("kill", rank=rank, key=key)

    async def send_comm(self, rank: int, kind: str, content: str) -> models.CommTaken:
        """Send a message to a widget of a rank, which handles it when no cell runs there."""
        self._mirror.check_rank(rank)
        answer, _ = await self._mirror.ask("to_rank", road.checked(kind, content), kind=kind, ranks=[rank])
        return {"waits": bool(answer["waits"])}

    async def logs(self, rank: int, tail_bytes: int = 256 << 10, before: int | None = None) -> models.LogPage:
        """Return the newest records of a rank's log, or the records before a given one."""
        self._mirror.check_had_rank(rank)
        return await self._mirror.history.log_page(rank, before, tail_bytes)

    async def log_file(self, rank: int) -> FileAnswer:
        """Return the full log of a rank as text."""
        self._mirror.check_had_rank(rank)
        chunks = map(log_text, self._mirror.history.log_chunks(rank, self._mirror.status.most_ranks))
        return FileAnswer(f"{self.id}-rank-{rank}.log", chunks, "The log cannot be read.")

    # -- executions -------------------------------------------------------------------------------------

    async def executions(self) -> models.ExecutionsModel:
        """Return the executions of the group."""
        return {"executions": self._mirror.executions.listed()}

    async def submit(
        self, code: str, ranks: str = "all", key: str | None = None, owner: str | None = None, **fields: Any
    ) -> models.ExecutionModel:
        """Queue a cell on ranks, and return its execution.

        A key that was used before, by this or an earlier server, returns the earlier execution.

        Args:
            code: the cell.
            ranks: a rank expression.
            key: of the request, so that it is not repeated.
            owner: the name of the user who runs the cell.
            fields: optional ones of RunRequest.

        Raises:
            JupyterDistError: `bad_ranks`, `group_not_ready`, `rank_dead`, `too_large`, ...
        """
        mirror, payload = self._mirror, code.encode("utf-8", "surrogatepass")
        if len(payload) > MAX_CODE_BYTES:
            message = say("The cell is %1 bytes; the limit is %2.", len(payload), MAX_CODE_BYTES)
            raise JupyterDistError("too_large", message, say("Put the data into a file."))
        mirror.status.check_takes_cells()
        chosen = self._mirror.status.rank_set(ranks)
        # Beside the spec, of which an agent of 0.3 knows each field: it counts by itself then.
        beside = {"execution_count": fields.pop("execution_count", None)}
        fields.update(ranks=chosen, expression=self._mirror.status.named(ranks), owner=owner)
        spec = ExecutionSpec.from_dict({"execution_id": execution_id_of(key), **fields})
        try:
            await mirror.ask("execute", payload, take=mirror.on_submitted, execution=spec.to_dict(), **beside)
        except JupyterDistError as err:
            if err.code not in ("timed_out", "agent_unreachable") or mirror.status.silence is err:
                raise
            raise JupyterDistError(err.code, err.message, _SAME_KEY if key else _LOOK_FIRST) from err
        mirror.executions.set_code(spec.execution_id, code)
        return mirror.executions.get(spec.execution_id)

    async def view(self, execution_id: str, wait: float = 0) -> models.ViewModel:
        """Return an execution and its folded outputs, at once or after it has ended."""
        mirror = self._mirror
        await mirror.wait_ended(execution_id, wait)
        snapshot = (await mirror.view(execution_id)).snapshot()
        return {"execution": await mirror.execution(execution_id), "seq": snapshot.seq, "items": snapshot.to_list()}

    async def cancel(self, execution_id: str) -> models.ExecutionModel:
        """Cancel a queued execution, interrupt a running one."""
        self._mirror.executions.get(execution_id)
        await self._mirror.ask("cancel", execution_id=execution_id)
        return await self._mirror.execution(execution_id)

    async def answer_input(
        self, execution_id: str, text: str | None, ranks: str | None = None, seq: int | None = None
    ) -> models.InputAnswered:
        """Answer the question of an execution's ranks; of several answers to a question the first one counts.

        Args:
            execution_id: the cell.
            text: the answer; None: there is no more input.
            ranks: a rank expression; by default all that ask, if they ask the same.
            seq: the number of the question; later ones are not answered.

        Raises:
            JupyterDistError: `not_asking`, `rank_dead`, `bad_request`, `bad_ranks`, ...
        """
        self._mirror.executions.get(execution_id)
        chosen = None if ranks is None else self._chosen(ranks)
        payload = road.TO_RANK["input"].encode(road.InputAnswer(text=text))
        fields = {"kind": "input", "execution_id": execution_id, "ranks": chosen, "seq": seq}
        answer, _ = await self._mirror.ask("to_rank", payload, **fields)
        answered = list(answer["ranks"])
        left = [] if chosen is None else [rank for rank in chosen if rank not in answered]
        return {"answered": str(RankSet(answered)), "not_asking": str(RankSet(left))}

    async def extend(self, execution_id: str, ranks: str = "all") -> models.ExecutionModel:
        """Run a running cell, as it was submitted, on more ranks; ranks that already have the cell are skipped."""
        mirror = self._mirror
        mirror.executions.get(execution_id)
        fields: dict[str, Any] = {"execution_id": execution_id, "ranks": self._chosen(ranks)}
        await mirror.ask("extend", take=mirror.on_execution, **fields)
        return await mirror.execution(execution_id)

    # -- inside -----------------------------------------------------------------------------------------

    def _chosen(self, ranks: str) -> list[int]:
        return list(self._mirror.status.rank_set(ranks))


def execution_id_of(key: str | None) -> str:
    """Return a new id, the same for the same key, so that the agent recognizes a cell that it already has."""
    return f"e-{hashlib.sha256(key.encode()).hexdigest()[:24] if key else secrets.token_hex(6)}"
