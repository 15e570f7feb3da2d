"""The agent itself: warm, then a group; what the server may ask of it; its lease and its end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from jupyter_dist.journal.reader import execution_records, rank_page
from jupyter_dist.protocol.errors import JupyterDistError, bad_request
from jupyter_dist.protocol.frames import Header
from jupyter_dist.protocol.specs import PROTOCOL_VERSION, ExecutionSpec, GroupSpec

from .execution import Execution
from .group import Group
from .linux import descendants, reap, send_signal
from .rank_process import RankProcess
from .sampler import Sampler
from .server_link import Answer, ServerLink, answer
from .starter import FreshProcesses, Starter, Zygote

# A warm agent that no server claims, and whose server went away, is of no use to anyone.
UNCLAIMED_LEASE_SECONDS = 30.0
CHECK_SECONDS = 1.0
GROUP_PUSH_SECONDS = 0.02


class Agent:
    """Owns one group directory, from the first connection to the last process."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._environment: dict[str, Any] = {}
        self._created_at = time.time()
        self._lease_seconds = UNCLAIMED_LEASE_SECONDS
        self._group: Group | None = None
        self._starter: Starter | None = None
        self._zygote: Zygote | None = None
        self._sampler: Sampler | None = None
        self._work: asyncio.Task[None] | None = None  # the start or restart under way
        self._ended = asyncio.Event()
        self._group_push: asyncio.TimerHandle | None = None
        self._link = ServerLink(
            directory / "agent.sock",
            {
                "hello": self._hello,
                "start": self._start,
                "execute": self._execute,
                "cancel": self._cancel,
                "interrupt": self._interrupt,
                "restart": self._restart,
                "shutdown": self._shutdown,
                "empty_cache": self._empty_cache,
                "watch": self._watch,
                "page": self._page,
                "execution_records": self._execution_records,
                "lease": self._lease,
                "ping": self._ping,
            },
        )

    async def run(self) -> None:
        """Serve until told to end, or until the lease has run out."""
        self._zygote = Zygote(preload=json.loads(os.environ.get("JUPYTER_DIST_PRELOAD", "[]")), on_exit=self._exited)
        self._write_group_json()
        await self._link.listen()
        lease = asyncio.create_task(self._keep_lease(), name="lease")
        await self._ended.wait()
        lease.cancel()
        await self._end()

    def stop(self) -> None:
        """End the group and the agent (SIGTERM, lease, shutdown)."""
        self._ended.set()

    # -- requests ---------------------------------------------------------------------------------------

    async def _hello(self, header: Header, _: bytes) -> Answer:
        if header.get("protocol") != PROTOCOL_VERSION:
            raise bad_request(
                f"This group's agent speaks protocol {PROTOCOL_VERSION}, the server {header.get('protocol')}.",
                "Shut the group down with the version of jupyter_dist that started it, or end its agent process.",
            )
        queue = self._group.dispatcher.queue if self._group else []
        models = [{**execution.model(), "code": ""} for execution in queue]
        return answer(group=self._status(), executions=models, seq=self._status()["seq"])

    async def _start(self, header: Header, _: bytes) -> Answer:
        if self._group is not None:
            raise bad_request("This agent has its group already.")
        spec = GroupSpec.from_dict(header["spec"])
        self._environment = header.get("environment") or {}
        self._lease_seconds = spec.lease_seconds
        self._group = Group(
            spec, self._directory, self._link.records_grew, self._group_changed, self._execution_changed
        )
        self._link.use_journal(self._group.journal)
        self._sampler = Sampler(self._group, lambda sample: self._link.push("sample", {"t": "sample", "sample": sample}))
        self._write_group_json()
        self._group.prepare()
        self._begin_work(self._first_start())
        return answer(group=self._status())

    async def _execute(self, header: Header, payload: bytes) -> Answer:
        group = self._need_group()
        group.check_takes_cells()
        spec = ExecutionSpec.from_dict(header["execution"])
        execution = Execution(spec, payload)
        group.dispatcher.submit(execution)
        return answer(execution={**execution.model(), "code": ""})

    async def _cancel(self, header: Header, _: bytes) -> Answer:
        dispatcher = self._need_group().dispatcher
        execution = dispatcher.queue.get(header["execution_id"])
        self._interrupt_ranks(dispatcher.cancel(execution))
        return answer(state=execution.state)

    async def _interrupt(self, header: Header, _: bytes) -> Answer:
        ranks = self._need_group().living(header["ranks"])
        busy = [rank for rank in ranks if rank.execution_id is not None]
        self._interrupt_ranks(busy)
        idle = [rank.rank for rank in ranks if rank not in busy]
        return answer(interrupted=[rank.rank for rank in busy], idle=idle)

    async def _restart(self, header: Header, _: bytes) -> Answer:
        group = self._need_group()
        if group.state in ("starting", "restarting", "ending"):
            raise JupyterDistError("group_not_ready", f"Group '{group.spec.name}' is {group.state} already.")
        assert self._starter is not None
        self._begin_work(self._quietly(group.restart(self._starter)))
        return answer(group=self._status())

    async def _shutdown(self, header: Header, _: bytes) -> Answer:
        killed = await self._end_group()
        # The answer must leave before the socket does.
        asyncio.get_running_loop().call_later(0.02, self.stop)
        return answer(killed=killed)

    async def _empty_cache(self, header: Header, _: bytes) -> Answer:
        idle = [rank for rank in self._need_group().living(header["ranks"]) if rank.state == "idle"]
        answers = await asyncio.gather(*(rank.request("empty_cache", 10.0) for rank in idle))
        return answer(freed_bytes={str(rank.rank): reply["freed_bytes"] for rank, reply in zip(idle, answers)})

    async def _watch(self, header: Header, _: bytes) -> Answer:
        if self._sampler is not None:
            self._sampler.watch(float(header["seconds"]))
        return answer()

    async def _page(self, header: Header, _: bytes) -> Answer:
        directory, before = self._need_group().journal.directory, header.get("before")
        # Reading megabytes back must not hold up ranks: this is a file that only grows, so a thread may read it.
        page = asyncio.to_thread(rank_page, directory, header["rank"], before, header["max_bytes"])
        records, more = await page
        first = records[0].header["seq"] if records else None
        return {"first": first, "more": more}, b"".join(record.frame for record in records)

    async def _execution_records(self, header: Header, _: bytes) -> Answer:
        group = self._need_group()
        execution = group.dispatcher.queue.get(header["execution_id"])
        if execution.begin_seq is None:
            return {"skipped_bytes": 0}, b""
        data, skipped = await asyncio.to_thread(
            _head_and_tail, group.journal.directory, execution, int(header["max_bytes"])
        )
        return {"skipped_bytes": skipped}, data

    async def _lease(self, header: Header, _: bytes) -> Answer:
        self._lease_seconds = float(header["seconds"])
        return answer()

    async def _ping(self, header: Header, _: bytes) -> Answer:
        return answer()

    # -- inside -------------------------------------------------------------------------------------------

    def _need_group(self) -> Group:
        if self._group is None:
            raise bad_request("This agent has no group yet.")
        return self._group

    def _interrupt_ranks(self, ranks: list[RankProcess]) -> None:
        for rank in ranks:
            rank.send({"t": "interrupt", "execution_id": rank.execution_id})

    def _begin_work(self, work: Any) -> None:
        self._work = asyncio.create_task(work, name="start or restart")

    async def _first_start(self) -> None:
        """Start the group; a start that fails ends the agent once the server knows why."""
        group = self._need_group()
        try:
            self._starter = await self._choose_starter(group)
            await group.start(self._starter)
        except JupyterDistError as err:
            group.error = err
            group.set_state("dead")
            self._link.push("group", {"t": "group", "group": self._status()})
            await self._link.flush(2.0)
            self.stop()

    async def _quietly(self, restart: Any) -> None:
        with contextlib.suppress(JupyterDistError):  # group.error says it; the journal can still be read
            await restart

    async def _choose_starter(self, group: Group) -> Starter:
        assert self._zygote is not None
        if not self._zygote.warm.done():
            for rank in group.ranks:
                rank.set_state("importing")
        timeout = group.spec.start_timeout_seconds
        try:
            warm = await asyncio.wait_for(asyncio.shield(self._zygote.warm), timeout)
        except asyncio.TimeoutError as err:
            message = f"{sys.executable} did not import torch within {timeout:g} s."
            raise JupyterDistError("start_failed", message) from err
        if warm["t"] == "failed":
            last_lines = "\n".join(str(warm["traceback"]).strip().splitlines()[-4:])
            raise JupyterDistError("start_failed", f"{sys.executable} cannot import what ranks need.", last_lines)
        if warm["safe"]:
            return self._zygote
        group.note = f"Ranks were started as fresh processes, which is slower: {warm['reason']}."
        await self._zygote.stop()
        return FreshProcesses(group.spec.preload, self._exited)

    async def _exited(self, pid: int, code: int | None, sig: int | None) -> None:
        if self._group is not None:
            await self._group.process_exited(pid, code, sig)

    def _status(self) -> dict[str, Any]:
        common = {"lease_seconds": self._lease_seconds, "agent_pid": os.getpid(), "environment": self._environment}
        if self._group is None:
            return {"state": "warm", "seq": 0, **common}
        return {**self._group.status(), **common}

    def _group_changed(self) -> None:
        """Tell the server, gathering the changes of many ranks into one message."""
        if self._group_push is None:
            self._group_push = asyncio.get_running_loop().call_later(GROUP_PUSH_SECONDS, self._push_group)

    def _push_group(self) -> None:
        self._group_push = None
        self._link.push("group", {"t": "group", "group": self._status()})

    def _execution_changed(self, execution: Execution) -> None:
        self._link.push(execution.id, {"t": "execution", "execution": {**execution.model(), "code": ""}})

    async def _keep_lease(self) -> None:
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            self._reap()
            idle_seconds = time.monotonic() - self._link.last_contact
            if not self._link.is_connected and idle_seconds > self._lease_seconds:
                self.stop()

    def _reap(self) -> None:
        known = self._zygote.children() if self._zygote else set()
        reap(known | (self._starter.children() if self._starter else set()))

    async def _end_group(self) -> list[str]:
        if self._work is not None:
            self._work.cancel()
        if self._sampler is not None:
            self._sampler.watch(0)
        return await self._group.end() if self._group is not None else []

    async def _end(self) -> None:
        """Leave nothing: no process, no socket, no file."""
        await self._end_group()
        for starter in (self._starter, self._zygote):
            if starter is not None:
                await starter.stop()
        for pid in descendants(os.getpid()):
            send_signal(pid, 9)  # type: ignore[arg-type]
        if self._group is not None:
            self._group.close()
        await self._link.close()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _write_group_json(self) -> None:
        spec = self._group.spec.to_dict() if self._group else None
        if spec is not None:
            spec["env"] = sorted(spec["env"])  # names only: values may be secrets
        content = {
            "protocol": PROTOCOL_VERSION,
            "group_id": spec["group_id"] if spec else None,
            "name": spec["name"] if spec else None,
            "agent_pid": os.getpid(),
            "python": sys.executable,
            "created_at": self._created_at,
            "environment": self._environment,
            "spec": spec,
        }
        temporary = self._directory / "group.json.new"
        temporary.write_text(json.dumps(content, indent=1))
        temporary.replace(self._directory / "group.json")


def _head_and_tail(directory: Path, execution: Execution, max_bytes: int) -> tuple[bytes, int]:
    """The execution's first and last records, as frames, in `max_bytes`; and how many bytes lie between."""
    assert execution.begin_seq is not None
    head: list[bytes] = []
    tail: list[bytes] = []
    head_size = tail_size = skipped = 0
    for record in execution_records(directory, execution.id, execution.begin_seq, None):
        if not tail and head_size + len(record.frame) <= max_bytes // 2:
            head.append(record.frame)
            head_size += len(record.frame)
            continue
        tail.append(record.frame)
        tail_size += len(record.frame)
        while tail_size > max_bytes // 2 and len(tail) > 1:
            dropped = len(tail.pop(0))
            tail_size -= dropped
            skipped += dropped
    return b"".join(head + tail), skipped
