"""Groups for asyncio programs: the one implementation. group.py says the same without `await`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jupyter_dist.client.calls import exchange
from jupyter_dist.client.calls.launching import Call
from jupyter_dist.client.connection.feeds import LogFeed, MemoryFeed
from jupyter_dist.client.results.result import Result
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.ranks import parse_ranks
from jupyter_dist.protocol.states import GONE_GROUP_STATES, UNREACHABLE_GROUP_STATES

from .execution import AsyncExecution

if TYPE_CHECKING:
    from .client import AsyncClient

POLL_SECONDS = 30
COMPLETE_SECONDS = 1.0  # somebody has pressed a key and waits; a rank that can answer needs a few milliseconds
ASSERT_JOINED = "assert __import__('torch.distributed').distributed.is_initialized()"

Fields = dict[str, Any]


class AsyncGroup:
    """One group; `model` is what was last heard of it (docs/api.md, Group)."""

    def __init__(self, client: AsyncClient, model: Fields) -> None:
        self.client = client
        self.model = model

    @property
    def id(self) -> str:
        """Its id, which no other group ever has."""
        return str(self.model["id"])

    @property
    def name(self) -> str:
        """The name that its user gave it."""
        return str(self.model["name"])

    @property
    def world_size(self) -> int:
        """How many ranks it has."""
        return int(self.model["world_size"])

    def __repr__(self) -> str:
        return f"<{type(self).__name__} '{self.name}': {self.world_size} ranks, {self.model['state']}>"

    async def status(self) -> Fields:
        """The Group of docs/api.md, now."""
        self.model = await self._ask("GET")
        return self.model

    async def ready(self, not_state: str = "starting") -> AsyncGroup:
        """Wait until it has left that state. Raises why it is not ready."""
        while (state := self.model["state"]) in (not_state, "unresponsive"):
            self.model = await self._ask("GET", params={"wait": POLL_SECONDS, "not_state": state})
            if state == "unresponsive" == self.model["state"]:
                break
        if self.model["state"] in GONE_GROUP_STATES | UNREACHABLE_GROUP_STATES:
            message = f"The group '{self.name}' is {self.model['state']}."
            raise JupyterDistError.from_dict(self.model["error"] or {"code": "group_not_ready", "message": message})
        return self

    async def submit(self, code: str, ranks: str = "all", **fields: Any) -> AsyncExecution:
        """Queue a cell; the fields of `POST .../executions` (docs/api.md) may be given."""
        answer = await self._once("executions", body={"code": code, "ranks": ranks, **fields})
        return AsyncExecution(self, answer)

    async def run(self, code: str, ranks: str = "all", **fields: Any) -> Result:
        """Run a cell to its end, however long it takes."""
        return await (await self.submit(code, ranks, **fields)).result()

    async def stream(self, code: str, ranks: str = "all", **fields: Any) -> AsyncIterator[Result]:
        """Run a cell; what is there so far, again and again, the last time `done`."""
        execution = await self.submit(code, ranks, **fields)
        async for result in execution.stream():
            yield result

    async def push(self, values: Mapping[str, Any], ranks: str = "all") -> None:
        """Give ranks variables: any Python objects, arrays and tensors without copies. On one machine."""
        await exchange.push(self, values, ranks)

    async def scatter(self, name: str, parts: Sequence[Any], ranks: str = "all") -> None:
        """Give the first rank the first part, the second the second ..., as variable `name`."""
        await exchange.scatter(self, name, parts, ranks)

    async def broadcast(self, name: str, src: int = 0, ranks: str = "all") -> None:
        """Give ranks the value that variable `name` has on rank `src`; it does not come here."""
        await exchange.broadcast(self, name, src, ranks)

    async def pull(self, name: str, rank: int = 0) -> Any:
        """The value of a variable, or of any expression, on one rank."""
        return (await exchange.gather(self, [name], str(rank)))[rank % self.world_size][name]

    async def gather(self, name: str, ranks: str = "all") -> dict[int, Any]:
        """The values of a variable, or of any expression, by rank."""
        values = await exchange.gather(self, [name], ranks)
        return {rank: found[name] for rank, found in values.items()}

    async def launch(
        self, function: Callable[..., Any], *args: Any, ranks: str = "all", **kwargs: Any
    ) -> dict[int, Any]:
        """Call a function on ranks; what it returns, by rank. One of a notebook is defined there by its source."""
        call = await asyncio.to_thread(Call, function, args, kwargs)
        try:
            result = call.checked(await self.run(call.code, ranks))
            return await asyncio.to_thread(call.values, result.ranks)
        finally:
            call.close()

    async def memory(self) -> Fields:
        """A fresh MemorySample of docs/api.md."""
        feed = MemoryFeed(self.id)
        async with self.client.channel.following(feed):
            while feed.sample is None:
                await feed.wait()
        return feed.sample

    async def complete(self, code: str, cursor_pos: int | None = None, rank: int = 0) -> Fields:
        """What fits at the cursor (in characters; the end) of what a rank knows: Jupyter's complete_reply.

        Raises:
            JupyterDistError: when the rank cannot answer at once.
        """
        body = {"code": code, "cursor_pos": cursor_pos}
        path = ("ranks", str(rank), "complete")
        found: Fields = await self._ask("POST", *path, body=body, timeout_seconds=COMPLETE_SECONDS)
        return found

    async def interrupt(self, ranks: str = "all") -> Fields:
        """Interrupt what runs; the ranks and their variables stay."""
        answer: Fields = await self._ask("POST", "interrupt", body={"ranks": ranks})
        return answer

    async def restart(self) -> AsyncGroup:
        """Fresh processes for all ranks; returns when they are ready."""
        self.model = await self._once("restart")
        return await self.ready("restarting")

    async def replace(self) -> AsyncGroup:
        """Fresh processes for dead ranks, the others keep theirs; returns when they have joined."""
        self.model = await self._once("replace")
        return await self.ready("restarting")

    async def kill(self, rank: int) -> AsyncGroup:
        """End one rank's process, for when no interrupt frees it; the others keep theirs. Then `replace` it."""
        (chosen,) = parse_ranks(str(rank), self.world_size)
        self.model = await self._once("ranks", str(chosen), "kill")
        return self

    async def reform(self) -> AsyncGroup:
        """Form the process group anew in the same processes, which keep every variable; returns when it is there.

        Raises:
            JupyterDistError: `group_not_ready`, when a cell runs, a rank is dead, or ranks could not join.
        """
        self.model = await self._once("reform")
        # Cells wait until it was formed, or could not be.
        if not (await self.run(ASSERT_JOINED, silent=True)).ok:
            note = (await self.status())["note"]
            raise JupyterDistError("group_not_ready", note or f"Not all ranks of '{self.name}' could join.")
        return self

    async def empty_cache(self, ranks: str = "all") -> dict[int, int]:
        """Collect garbage and empty the device caches of idle ranks; freed bytes by rank."""
        freed = (await self._ask("POST", "empty-cache", body={"ranks": ranks}))["freed_bytes"]
        return {int(rank): size for rank, size in freed.items()}

    async def shutdown(self) -> list[str]:
        """End the group; returns sentences about what did not leave by itself."""
        killed: list[str] = (await self._ask("DELETE"))["killed"]
        self.model = {**self.model, "state": "dead"}
        return killed

    async def logs(self, rank: int, tail_bytes: int = 1 << 18) -> list[Fields]:
        """The last records of a rank's log (docs/api.md, LogRecord)."""
        page = await self._ask("GET", "ranks", str(rank), "log", params={"tail": tail_bytes})
        records: list[Fields] = page["records"]
        return records

    async def follow_logs(self, rank: int, tail_bytes: int = 1 << 18) -> AsyncIterator[list[Fields]]:
        """The last records of a rank's log, then what comes, for ever."""
        records = await self.logs(rank, tail_bytes)
        yield records
        feed = LogFeed(self.id, rank, records[-1]["seq"] if records else 0)
        async with self.client.channel.following(feed):
            while True:
                await feed.wait()
                yield feed.taken()

    async def _once(self, *path: str, body: Any = None) -> Any:
        return await self.client.api.ask_once("groups", self.id, *path, body=body)

    async def _ask(self, method: str, *path: str, **options: Any) -> Any:
        return await self.client.api.ask(method, "groups", self.id, *path, **options)
