"""Groups for asyncio programs: the implementation that blocking/group.py wraps."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from jupyter_dist.client.answers.base import ApiList, listed
from jupyter_dist.client.answers.infos import (
    GroupInfo,
    LogRecordInfo,
    MemorySampleInfo,
    RankInfo,
)
from jupyter_dist.client.answers.keywords import ReplaceOptions, ReplaceState, RunOptions
from jupyter_dist.client.connection.feeds import LogFeed, MemoryFeed
from jupyter_dist.client.connection.http import new_key
from jupyter_dist.client.results.result import Result
from jupyter_dist.client.results.samples import SampleSeries, joined
from jupyter_dist.client.servers import own_environ, own_process
from jupyter_dist.protocol.errors import JupyterDistError, TimedOutError, bad_request
from jupyter_dist.protocol.models import machine, models
from jupyter_dist.protocol.operations import BY_NAME
from jupyter_dist.protocol.ranks import ranks_in
from jupyter_dist.protocol.states import GONE_GROUP_STATES, UNREACHABLE_GROUP_STATES, GroupState
from jupyter_dist.protocol.wire import requests
from jupyter_dist.system.limits import within

from . import exchange
from .arguments import check_names, placed
from .calling import call
from .execution import AsyncExecution
from .launching import Call
from .plain import PlainAsyncGroup

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .client import AsyncClient

POLL_SECONDS = 30
SHOW_SECONDS = 1  # while the news of a launcher is shown
SAMPLE_SECONDS = 10.0  # agents that answer send a sample within a second or two
_SEE_STATE = "Its agent does not answer; `jupyter dist list` shows its state."


class AsyncGroup(PlainAsyncGroup):
    """One group; `model` is its last known state (docs/api.md, Group)."""

    def __init__(self, client: AsyncClient, model: models.GroupModel) -> None:
        self.client = client
        self.model = model
        self.notices: list[str] = []  # about the group's nodes, as last received
        self.run_options = {}
        self.trust_nodes = False  # whether values that pull, gather and launch return from other machines may run code

    @property
    def id(self) -> str:
        """Return the id of the group, which is never reused."""
        return str(self.model["id"])

    @property
    def name(self) -> str:
        """Return the name that the user gave the group."""
        return str(self.model["name"])

    @property
    def world_size(self) -> int:
        """Return the number of ranks."""
        return int(self.model["world_size"])

    @property
    def num_nodes(self) -> int:
        """Return the number of machines that the ranks are on."""
        return len(self.model.get("nodes") or ()) or 1

    def __repr__(self) -> str:
        return f"<{type(self).__name__} '{self.name}': {self.world_size} ranks, {self.model['state']}>"

    @property
    def state(self) -> GroupState:
        """Return the state of the group, as last received; `status()` requests it."""
        return self.model["state"]

    @property
    def ranks(self) -> ApiList[RankInfo]:
        """Return the ranks, as last received; `status()` requests them."""
        return listed(RankInfo, self.model["ranks"])

    async def status(self) -> GroupInfo:
        """Request the state of the group and its ranks: `state`, `ranks` and `model` are as new then."""
        self.model = await self._call("status")
        return GroupInfo(self.model)

    async def ready(self, show: Callable[[str], None] | None = None) -> AsyncGroup:
        """Wait until the ranks of the group are ready.

        Args:
            show: Called with the news of a launcher while its engine finds nodes, each time these change.

        Raises:
            JupyterDistError: the start failed, or the group is gone or cannot be reached. `group_not_ready`, if its
                engine will not start its job as it was submitted.
        """
        return await left(self, "starting", show)

    async def submit(self, code: str, ranks: str = "all", **options: Unpack[RunOptions]) -> AsyncExecution:
        """Queue a cell, with the options of RunOptions (docs/reference/python.md)."""
        check_names(options, requests.RunOptions, "code", "ranks")
        kept = {} if options.get("silent") or "call" in options else self.run_options
        cell, key = {"code": code, "ranks": ranks, **kept, **options}, new_key()
        if (feed := await self.client.channel.submit(self.id, key, cell)) is not None:
            return AsyncExecution(self, feed.execution, feed)
        answer = await self.client.api.ask_once("groups", self.id, "executions", body=cell, key=key)
        return AsyncExecution(self, answer)

    async def run(self, code: str, ranks: str = "all", **options: Unpack[RunOptions]) -> Result:
        """Run a cell and wait until it ends, without a time limit."""
        return await (await self.submit(code, ranks, **options)).result()

    async def stream(self, code: str, ranks: str = "all", **options: Unpack[RunOptions]) -> AsyncIterator[Result]:
        """Run a cell; yield the result so far, repeatedly; the last one is `done`."""
        execution = await self.submit(code, ranks, **options)
        async for result in execution.stream():
            yield result

    async def push(self, values: Mapping[str, Any], ranks: str = "all") -> None:
        """Set variables on ranks: any Python objects; arrays and tensors are not copied. On one machine only."""
        await exchange.push(self._exchanger(), values, ranks)

    async def scatter(self, name: str, parts: Sequence[Any], ranks: str = "all") -> None:
        """Set variable `name` to the first part on the first rank, the second part on the second rank, and so on."""
        await exchange.scatter(self._exchanger(), name, parts, ranks)

    async def broadcast(self, name: str, src: int = 0, ranks: str = "all") -> None:
        """Set variable `name` to its value on rank `src`, without passing through this process."""
        await exchange.broadcast(self._exchanger(), name, src, ranks)

    async def pull(self, name: str, rank: int = 0, *, timeout_seconds: float | None = None) -> Any:
        """Return the value of a variable or any other expression on one rank.

        Raises:
            TimedOutError: the rank runs cells for longer; it does not evaluate the expression after that.
        """
        found = await exchange.gather(self._exchanger(), [name], str(rank), timeout_seconds)
        return found[rank % self.world_size][name]

    async def gather(self, name: str, ranks: str = "all") -> dict[int, Any]:
        """Return the values of a variable or any other expression, by rank."""
        values = await exchange.gather(self._exchanger(), [name], ranks)
        return {rank: found[name] for rank, found in values.items()}

    async def launch(
        self, function: Callable[..., Any], *args: Any, ranks: str = "all", **kwargs: Any
    ) -> dict[int, Any]:
        """Call a function on ranks; return its results by rank. A notebook's function uses the ranks' variables."""
        sent = await asyncio.to_thread(Call, function, args, kwargs, is_trusted=self._trusts_ranks())
        try:
            result = sent.checked(await self.run(sent.note, ranks, call=sent.request))
            return await asyncio.to_thread(sent.values, result.ranks)
        finally:
            sent.close()

    async def memory(self) -> MemorySampleInfo:
        """Return how much memory and processor each rank uses now.

        Raises:
            TimedOutError: the group's agent does not answer.
        """
        feed = MemoryFeed(self.id)
        async with self.client.channel.following(feed):
            while feed.sample is None:
                try:
                    await within(SAMPLE_SECONDS, feed.wait())
                except asyncio.TimeoutError:
                    raise TimedOutError(f"Group '{self.name}' did not report its memory.", _SEE_STATE) from None
        return MemorySampleInfo(feed.sample)

    async def samples(self, seconds: float = 3600.0) -> SampleSeries:
        """Return the memory and processor of ranks in the last seconds, an hour at most.

        Samples are taken while a client follows the memory: a page with the sidebar or the timeline.
        """
        params = {"seconds": seconds}  # by the server's clock, which the times of samples are by, too
        pages: list[machine.PastSamples] = []
        while not pages or pages[-1]["more"]:
            pages.append(await self._ask("GET", "samples", params=params))
            if pages[-1]["times"]:
                params = {"since": pages[-1]["times"][-1]}
        return SampleSeries(joined(pages))

    async def ask(self, operation: str, **arguments: Any) -> Any:
        """Make the request of an operation on the group; return its answer as JSON.

        For operations of parts of other packages, and for programs that want the server's own answer.

        Args:
            operation: The operation's name (docs/reference/http.md).
            arguments: The fields of its path, its body and its query.

        Raises:
            JupyterDistError: `bad_request`, if groups have no such operation; else the server's.
        """
        row = BY_NAME.get(operation)
        if row is None or not row.is_of_group:
            raise bad_request(f"Groups have no operation '{operation:.60}'.", "The HTTP reference names them.")
        if row.is_of_last and arguments.get("execution_id") is None:
            arguments["execution_id"] = await self.last_begun()
        if missing := [name for name in row.arguments if name not in arguments]:
            raise bad_request(f"'{operation}' needs the argument '{missing[0]}'.")
        places = [arguments.pop(name) for name in row.arguments]
        if row.body is not None:
            return await self._call(operation, *places, body=arguments)
        return await self._call(operation, *places, query=arguments)

    async def last_begun(self) -> str:
        """Return the id of the cell that began last. Raises JupyterDistError `unknown_execution` if none has."""
        begun = [one.id for one in await self.executions() if one.started_at is not None and not one.silent]
        if not begun:
            message = f"No cell has run on group '{self.name}'."
            raise JupyterDistError("unknown_execution", message, "Run one, or name an execution.")
        return begun[-1]

    async def restart(self, *, wait: bool = True) -> AsyncGroup:
        """Restart all ranks in new processes; returns when they are ready, or at once, and cells wait for them."""
        self.model = await self._once("restart")
        return await left(self, "restarting") if wait else self

    async def start_again(self, *, env: Mapping[str, str] | None = None, wait: bool = True) -> AsyncGroup:
        """Start a group that has ended, with the options of its start; returns when it is ready, or at once.

        It begins without variables: no save is restored, also if the group began with one. `restore` does that.

        Args:
            env: variables of the start. Their values are stored nowhere: give them if the group's agent and its server
                have ended since.
            wait: whether to wait until the group is ready.

        Raises:
            JupyterDistError: `group_not_ready`, if it has not ended, or variables are missing; or the start failed.
        """
        path, body = ("groups", self.name, "start_again"), {"env": dict(env)} if env else {}
        try:
            self.model = await self.client.api.ask_once(*path, body=body)
        except JupyterDistError as err:
            if err.code != "group_not_ready" or not self.client.is_private:
                raise
            # It began with the environment of a program, which nothing has kept: this program gives its own.
            self.model = await self.client.api.ask_once(*path, body={**body, "environ": own_environ()})
        return await self.ready() if wait else self

    async def replace(
        self,
        state: ReplaceState = "empty",
        *,
        others: Literal["leave", "copy"] = "leave",
        **options: Unpack[ReplaceOptions],
    ) -> AsyncGroup:
        """Start new processes for dead ranks; other ranks keep theirs. Returns when the new ranks have joined.

        `model["replaced"]` lists the names that new ranks were given, and sentences on missing ones.

        Args:
            state: What new ranks begin with: a word of ReplaceState (docs/reference/python.md).
            others: For copies: `copy` takes also names that the others do not have alike. With a single other rank
                nothing can be compared, so it is required.
            options: Of the states of parts. For `save`: `save`, its name (by default the newest that the group can
                restore), `folder`, and `any_version`, whether to try a save of another version of Python.

        Raises:
            JupyterDistError: `start_failed`, if ranks are dead after that; `ranks_differ`, `not_found` or another error
                of a restore: nothing was changed, or the new ranks are there without their variables.
        """
        check_names(options, requests.ReplaceRequest)
        given = {name: value for name, value in options.items() if value}
        given = placed(given, requests.ReplaceRequest, is_private=self.client.is_private)
        wanted = {"state": state, "others": others, **given}
        self.model = await self._once("replace", body=wanted if state != "empty" else None)
        await left(self, "restarting")
        if self.model["state"] == "degraded":
            hint = self.model["note"] or "A rank has died again: see its log."
            raise JupyterDistError("start_failed", f"Not all dead ranks of group '{self.name}' were replaced.", hint)
        replaced = self.model.get("replaced")
        if replaced and replaced["error"]:
            raise JupyterDistError.from_dict(replaced["error"])
        return self

    async def kill(self, rank: int) -> AsyncGroup:
        """Kill a rank that cannot be interrupted; the others keep their variables. Then `replace` it."""
        (chosen,) = ranks_in(self.model, str(rank))
        self.model = await self._once("ranks", str(chosen), "kill")
        return self

    async def reform(self) -> AsyncGroup:
        """Re-create the process group in the same processes, which keep all variables; returns when all have joined.

        Raises:
            JupyterDistError: `group_not_ready`, if a cell is running, a rank is dead, or ranks could not join.
        """
        self.model = await self._once("reform")
        await self.run("", silent=True)  # a cell waits until the process group is re-created, or has failed
        group = await self.status()
        if any(rank.process_group != "ok" for rank in group.ranks):
            message = group.note or f"Not all ranks of '{self.name}' could join."
            raise JupyterDistError("group_not_ready", message)
        return self

    async def empty_cache(self, ranks: str = "all") -> dict[int, int]:
        """Collect garbage and empty the device caches of idle ranks; return the freed bytes by rank."""
        freed = (await self._ask("POST", "empty-cache", body={"ranks": ranks}))["freed_bytes"]
        return {int(rank): size for rank, size in freed.items()}

    async def own(self, grace_seconds: float = 0.0) -> None:
        """Have a group that ends with processes live as long as this one, too; other groups are not changed."""
        if self.model.get("ends_with") and self.client.server.is_local:
            self.model = await self._once("owners", body={**own_process(), "grace_seconds": grace_seconds})

    async def shutdown(self) -> list[str]:
        """End the group; return a sentence about each process that had to be killed."""
        server, killed = self.client.server, []
        try:
            killed = (await self._ask("DELETE"))["killed"]
        except JupyterDistError as err:
            if err.code != "unknown_group" or self.client.server is server:
                raise  # else the server, which has ended meanwhile, had ended the group
        self.model = {**self.model, "state": "dead"}
        return killed

    async def follow_logs(self, rank: int, tail_bytes: int = 1 << 18) -> AsyncIterator[ApiList[LogRecordInfo]]:
        """Yield the last records of a rank's log, then new ones, without end."""
        records = await self.logs(rank, tail_bytes)
        yield records
        feed = LogFeed(self.id, rank, records[-1].seq if records else 0)
        async with self.client.channel.following(feed):
            while True:
                await feed.wait()
                yield listed(LogRecordInfo, feed.taken())

    def _trusts_ranks(self) -> bool:
        return exchange.trusts_ranks(self.model, self.trust_nodes)

    def _exchanger(self) -> exchange.Exchanger:
        return exchange.Exchanger(self.model, self.client.segments, self._trusts_ranks(), self._run_call)

    async def _run_call(self, call: requests.RankCall, note: str, ranks: str, timeout_seconds: float | None) -> None:
        """Let ranks carry out a call of this client, such as a pull; the group's log shows the note."""
        execution = await self.submit(note, ranks, silent=True, call=call)
        try:
            result = await execution.result(timeout_seconds)
        except TimedOutError:
            with contextlib.suppress(JupyterDistError):  # the execution has just ended
                await execution.cancel()
            raise
        result.was_streamed = True  # code of this package: its traceback does not help users
        result.raise_for_error()

    async def _call(
        self,
        name: str,
        *arguments: object,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, Any] | None = None,
    ) -> Any:
        return await call(self.client.api, name, self.id, *map(str, arguments), body=body, query=query)

    async def _once(self, *path: str, body: Any = None) -> Any:
        return await self.client.api.ask_once("groups", self.id, *path, body=body)

    async def _ask(self, method: str, *path: str, **options: Any) -> Any:
        return await self.client.api.ask(method, "groups", self.id, *path, **options)


async def left(group: AsyncGroup, not_state: str, show: Callable[[str], None] | None = None) -> AsyncGroup:
    """Wait until the group has left a state, and check that it can be used then."""
    seconds, shown = POLL_SECONDS if show is None else SHOW_SECONDS, None
    while (state := group.model["state"]) in (not_state, "unresponsive"):
        allocation = group.model.get("allocation")
        if show is not None and allocation and allocation["text"] != shown:
            show(shown := allocation["text"])
        if allocation and not allocation.get("can_start", True):  # of an earlier server
            message = f"Group '{group.name}' cannot start: {allocation['text']}"
            hint = "Its job stays in the queue until the group is shut down."
            raise JupyterDistError("group_not_ready", message, hint)
        group.model = await group.client.api.ask(
            "GET", "groups", group.id, params={"wait": seconds, "not_state": state}
        )
        if state == "unresponsive" == group.model["state"]:
            break
    if group.model["state"] in GONE_GROUP_STATES | UNREACHABLE_GROUP_STATES:
        message = f"Group '{group.name}' is {group.model['state']}."
        raise JupyterDistError.from_dict(group.model["error"] or {"code": "group_not_ready", "message": message})
    return group
