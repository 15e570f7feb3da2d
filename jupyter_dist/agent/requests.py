"""The requests of a server to its agent: one method per request of docs/messaging.md, Server and agent."""

from __future__ import annotations

import asyncio
import contextlib
import json
from functools import partial
from pathlib import Path
from typing import Any

from jupyter_dist.agent.group.cells.dispatch import dead_error
from jupyter_dist.agent.group.cells.execution import AgentExecution
from jupyter_dist.agent.group.group import AgentGroup
from jupyter_dist.agent.group.replacing.variables import Copies, NoVariables, VariableSource
from jupyter_dist.agent.watch.look import stacks_of
from jupyter_dist.journal.reader import execution_records
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.protocol.wire import road
from jupyter_dist.protocol.wire.specs import PROTOCOL_VERSION, ExecutionSpec, GroupSpec, ReplaceSpec
from jupyter_dist.system.limits import within
from jupyter_dist.transport.frames import Header

from .agent import Agent
from .contact.server_link import Answer, RequestHandler, answer

EMPTY_CACHE_SECONDS = 10.0
KILL_SECONDS = 5.0
PAGE_BYTES = 4 << 20


def handlers_of(agent: Agent) -> dict[str, RequestHandler]:
    """Return the handlers of the requests to an agent, by request name."""
    return Requests(agent).handlers()


class Requests:
    """Parses requests, calls the agent or its group, and answers."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def handlers(self) -> dict[str, RequestHandler]:
        """Return the methods by request name."""
        once = self._agent.keyed.once
        return {
            "hello": self._hello,
            "start": self._start,
            "execute": self._execute,
            "extend": self._extend,
            "cancel": self._cancel,
            "to_rank": self._to_rank,
            "comms": self._comms,
            "interrupt": self._interrupt,
            "restart": once(self._restart),
            "replace": once(self._replace),
            "reform": once(self._reform),
            "kill": once(self._kill),
            "shutdown": self._shutdown,
            "executions": self._executions,
            "empty_cache": self._empty_cache,
            "stacks": self._stacks,
            "verdicts": self._verdicts,
            "watch": self._watch,
            "lease": self._lease,
            "ends": self._ends,
            "tunnels": self._tunnels,
            "own": self._own,
            "ping": self._ping,
        }

    async def _hello(self, header: Header, _: bytes) -> Answer:
        newest = header.get("protocol")
        oldest = header.get("oldest_protocol", newest)
        if not (isinstance(newest, int) and isinstance(oldest, int) and oldest <= PROTOCOL_VERSION <= newest):
            raise JupyterDistError(
                "incompatible",
                say(
                    "This group's agent speaks protocol %1, the server %2 to %3.",
                    PROTOCOL_VERSION,
                    f"{oldest!r:.20}",
                    f"{newest!r:.20}",
                ),
                say("Shut the group down with the version of jupyter_dist that started it, or end its agent process."),
            )
        status = self._agent.status()
        return answer(protocol=PROTOCOL_VERSION, group=status, seq=status["seq"])

    async def _executions(self, header: Header, _: bytes) -> Answer:
        """Return a page of the executions that are kept, oldest first, starting after the given one."""
        page: list[dict[str, Any]] = []
        size = 0
        for execution in self._agent.need_group().dispatcher.queue.after(header.get("after")):
            if size > PAGE_BYTES:
                return answer(executions=page, more=True)
            page.append(execution.model())
            if execution.code is not None:  # the journal does not have it: the cell waits, or the disk was full
                page[-1]["code"] = execution.code.decode("utf-8", "replace")
            size += len(json.dumps(page[-1]))
        return answer(executions=page, more=False)

    async def _start(self, header: Header, _: bytes) -> Answer:
        self._agent.begin_group(GroupSpec.from_dict(header["spec"]), header.get("environment") or {})
        return self._agent.group_answer()

    async def _execute(self, header: Header, payload: bytes) -> Answer:
        group = self._agent.need_group()
        group.check_takes_cells()
        execution = AgentExecution(ExecutionSpec.from_dict(header["execution"]), payload)
        execution.execution_count = header.get("execution_count")
        execution = group.dispatcher.submit(execution)
        return answer(execution=execution.model())

    async def _extend(self, header: Header, _: bytes) -> Answer:
        group = self._agent.need_group()
        execution = group.dispatcher.queue.get(header["execution_id"])
        code = await _code_of(group, execution)
        if not code:
            raise JupyterDistError("not_found", say("The code of this cell is no longer kept."), say("Run it again."))
        group.dispatcher.extend(execution, list(header["ranks"]), code)
        return answer(execution=execution.model())

    async def _cancel(self, header: Header, _: bytes) -> Answer:
        dispatcher = self._agent.need_group().dispatcher
        execution = dispatcher.queue.get(header["execution_id"])
        self._agent.interrupt(dispatcher.cancel(execution))
        return answer(state=execution.state)

    async def _to_rank(self, header: Header, payload: bytes) -> Answer:
        """Pass a message of a client to the code on ranks: one branch per kind of road.TO_RANK."""
        group, kind = self._agent.need_group(), header["kind"]
        if kind not in road.TO_RANK:
            raise JupyterDistError("incompatible", say("This group takes no '%1' messages.", f"{kind:.40}"))
        if kind in road.COMM_KINDS:
            self._agent.need_group().check_awake()
            self._agent.need_parts().used()
            waits = _send_comm(group, header["ranks"][0], kind, payload)
            return answer(ranks=header["ranks"], waits=waits)
        execution = group.dispatcher.queue.get(header["execution_id"])
        road.TO_RANK[kind].decode(payload)
        return answer(ranks=group.dispatcher.answer(execution, header["ranks"], header["seq"], payload))

    async def _comms(self, _header: Header, _: bytes) -> Answer:
        """Return the open comms, and send what happens to them from now on."""
        return answer(**self._agent.need_group().comms.snapshot())

    async def _interrupt(self, header: Header, _: bytes) -> Answer:
        ranks = self._agent.need_group().living(header["ranks"])
        busy = [rank for rank in ranks if rank.execution_id is not None]
        comms = self._agent.need_group().comms
        calling = [rank for rank in ranks if rank not in busy and comms.calls_back(rank.rank)]
        for rank in calling:
            rank.interrupt_callback()
        await self._agent.interrupt(busy)
        busy += calling
        idle = [rank.rank for rank in ranks if rank not in busy]
        silent = [rank.rank for rank in busy if rank.state == "unresponsive"]
        return answer(interrupted=[rank.rank for rank in busy], idle=idle, unresponsive=silent)

    async def _kill(self, header: Header, _: bytes) -> Answer:
        group = self._agent.need_group()
        for rank in group.living([header["rank"]]):
            rank.kill("on request")
            # A process that waits for a failed disk ends late; its end is reported then.
            with contextlib.suppress(asyncio.TimeoutError):
                await within(KILL_SECONDS, rank.gone.wait())
        return self._agent.group_answer()

    async def _restart(self, _header: Header, _: bytes) -> Answer:
        self._agent.need_starts().restart()
        self._agent.need_parts().restarts()
        return self._agent.group_answer()

    async def _replace(self, header: Header, _: bytes) -> Answer:
        group = self._agent.need_group()
        wanted = ReplaceSpec.from_dict(header.get("wanted") or {})
        # A rank that has lost its device lives, and only another process gets a new context on it.
        if not group.dispatcher.queue.in_state("running"):
            lost = [rank for rank in group.living() if rank.process_group == "lost"]
            for rank in lost:
                rank.kill("because it had lost its device")
            for rank in lost:
                with contextlib.suppress(asyncio.TimeoutError):
                    await within(KILL_SECONDS, rank.gone.wait())
        starts = self._agent.need_starts()
        starts.check_may_replace()
        if (way := self._agent.need_parts().way_to_replace(wanted.state)) is not None:
            await way(wanted, partial(starts.replace_dead, wanted))
            return self._agent.group_answer()
        source = _source(group, wanted)
        try:
            starts.replace_dead(wanted, source)
        except JupyterDistError:
            source.close()
            raise
        return self._agent.group_answer()

    async def _reform(self, _header: Header, _: bytes) -> Answer:
        self._agent.need_group().recreate_process_group()
        return self._agent.group_answer()

    async def _shutdown(self, _header: Header, _: bytes) -> Answer:
        killed = await self._agent.end_group()
        # The answer must leave before the socket does.
        asyncio.get_running_loop().call_later(0.02, self._agent.stop)
        return answer(killed=killed)

    async def _empty_cache(self, header: Header, _: bytes) -> Answer:
        group = self._agent.need_group()
        self._agent.need_group().check_awake()
        idle = [rank for rank in group.living(header["ranks"]) if rank.state == "idle"]
        answers = await asyncio.gather(*(rank.request("empty_cache", EMPTY_CACHE_SECONDS) for rank in idle))
        freed = {str(rank.rank): reply["freed_bytes"] for rank, reply in zip(idle, answers, strict=True)}
        return answer(freed_bytes=freed)

    async def _verdicts(self, _header: Header, _: bytes) -> Answer:
        self._agent.need_group()
        return answer(**self._agent.proving.model())

    async def _stacks(self, _header: Header, _: bytes) -> Answer:
        self._agent.need_group().check_awake()
        return answer(stacks=await stacks_of(self._agent.need_group()))

    async def _watch(self, header: Header, _: bytes) -> Answer:
        self._agent.watch(float(header["seconds"]))
        return answer()

    async def _lease(self, header: Header, _: bytes) -> Answer:
        self._agent.lease_seconds = float(header["seconds"])
        return answer()

    async def _ends(self, header: Header, _: bytes) -> Answer:
        """Take the time at which the allocation of the group ends, or None if it has no limit."""
        self._agent.ends(None if header["at"] is None else float(header["at"]))
        return self._agent.group_answer()

    async def _tunnels(self, header: Header, _: bytes) -> Answer:
        """Open tunnels to the hosts of the nodes, where the group wants them."""
        group = self._agent.need_group()
        if group.nodes is not None:
            hosts, code = [str(host) for host in header["hosts"]], str(header.get("code", ""))
            group.nodes.open_tunnels(hosts, str(header["job"]), code)
        return self._agent.group_answer()

    async def _own(self, header: Header, _: bytes) -> Answer:
        self._agent.own(header["owner"])
        return self._agent.group_answer()

    async def _ping(self, _header: Header, _: bytes) -> Answer:
        return answer()


def _send_comm(group: AgentGroup, number: int, kind: str, payload: bytes) -> bool:
    """Pass a message of a page to a widget's code; return whether it waits for the end of a cell.

    Raises:
        JupyterDistError: `unknown_rank`, `rank_dead`, `not_found`, `node_unreachable`, `timed_out`.
    """
    if not 0 <= number < len(group.ranks):
        raise JupyterDistError("unknown_rank", say("Group '%1' has no rank %2.", group.spec.name, number))
    rank, content = group.ranks[number], road.TO_RANK[kind].decode(payload)
    if rank.state == "dead":
        raise dead_error([rank])
    if rank.unreachable is not None:
        raise JupyterDistError("node_unreachable", rank.unreachable, say("Wait until the link is back."))
    comm = group.comms.find(content["comm_id"])
    if kind != "comm_open" and (comm is None or comm.rank != number or not comm.live):
        message = say("Rank %1 has no widget with this id: it was closed, or its rank was started again.", number)
        raise JupyterDistError("not_found", message, say("Run the cell again."))
    if not group.comms.send(number, content, len(payload)):
        message = say("Rank %1 has not handled the last messages to its widgets.", number)
        raise JupyterDistError("timed_out", message, say("Wait for its cell or callback, or interrupt it."))
    rank.send({"t": "to_rank", "kind": kind, "number": 0}, payload)
    return rank.execution_id is not None


def _source(group: AgentGroup, wanted: ReplaceSpec) -> VariableSource:
    """Return where the variables of new ranks come from. Raises JupyterDistError, if there are none."""
    if wanted.state == "copy":
        return Copies(group, takes_all=wanted.others == "copy")
    if wanted.state != "empty":
        raise JupyterDistError("incompatible", f"This group cannot replace ranks with '{wanted.state:.40}'.")
    return NoVariables()


async def _code_of(group: AgentGroup, execution: AgentExecution) -> bytes:
    """Return the code of an execution, once begun from its `begin` record; empty if the journal has dropped that."""
    if execution.code is not None or execution.begin_seq is None:
        return execution.code or b""
    return await asyncio.to_thread(_begun_code, group.journal.directory, execution)


def _begun_code(directory: Path, execution: AgentExecution) -> bytes:
    assert execution.begin_seq is not None
    records = execution_records(directory, execution.id, execution.begin_seq, execution.begin_seq)
    return next((record.payload for record in records), b"")
