"""REST: groups."""

from __future__ import annotations

from jupyter_dist.protocol import machine, models, requests
from jupyter_dist.server.devices import samples
from jupyter_dist.server.groups.resolve import WantedGroup
from jupyter_dist.server.http.base import DistHandler
from jupyter_dist.server.http.operations import Answer, Operation, operation
from jupyter_dist.server.http.schemas import INTEGER, MAX_START_BYTES, NUMBER, STRING

MAX_WAIT_SECONDS = 300

MINUTES_SECONDS = 300.0
DEFAULT_SAMPLES = 600
MAX_SAMPLES = 1200

WAIT = {**NUMBER, "minimum": 0, "maximum": MAX_WAIT_SECONDS, "description": f"Seconds, 0 to {MAX_WAIT_SECONDS}."}
SINCE = {**NUMBER, "minimum": 0, "maximum": 1e11, "description": "Seconds since the epoch: only later samples."}
SECONDS = {**NUMBER, "minimum": 0, "maximum": 1e9, "description": "Only the last seconds, by the server's clock."}
LIMIT = {**INTEGER, "minimum": 1, "maximum": MAX_SAMPLES, "description": f"How many, 1 to {MAX_SAMPLES}."}


class GroupsHandler(DistHandler):
    """All groups."""

    @operation(
        Operation(
            "List the groups",
            "read",
            {200: Answer("All groups, oldest first", models.Groups)},
        )
    )
    async def get(self) -> None:
        """All groups."""
        self.answer({"groups": [group.model() for group in self.manager.all()]})

    @operation(
        Operation(
            "Start a group",
            "execute",
            {201: Answer("The group; its ranks are starting", models.Group, headers=("Location",))},
            is_keyed=True,
            body=requests.StartRequest,
            body_bytes=MAX_START_BYTES,
            errors=(
                *("bad_devices", "bad_environment", "bad_directory", "name_taken", "unknown_group"),
                *("agent_unreachable", "timed_out"),
            ),
        )
    )
    async def post(self) -> None:
        """Start a group."""
        group = await self.manager.start(WantedGroup(**self.body), self.key)
        self.answer(group.model(), 201, self.url("groups", group.id))


class GroupHandler(DistHandler):
    """One group."""

    @operation(
        Operation(
            "Read a group",
            "read",
            {200: Answer("The group", models.Group)},
            query={
                "wait": WAIT,
                "not_state": {**STRING, "maxLength": 20, "description": "Answer once the group has left this state."},
            },
            errors=("unknown_group",),
        )
    )
    async def get(self, name: str) -> None:
        """Read the group, at once or after it has left a state."""
        group = self.group(name)
        if (state := self.query.get("not_state")) is not None:
            # A group that does not respond may still be in it.
            left = lambda: state not in (group.state, group.status.told_state)  # noqa: E731
            await group.wait_until(left, self.query.get("wait", 0))
        self.answer(group.model())

    @operation(
        Operation(
            "Shut a group down",
            "execute",
            {200: Answer("The group has ended; lists what had to be killed", models.Shutdown)},
            errors=("unknown_group", "timed_out"),
        )
    )
    async def delete(self, name: str) -> None:
        """Shut the group down."""
        self.answer({"killed": await self.manager.shutdown(self.group(name))})


class OwnersHandler(DistHandler):
    """The processes that a group ends with."""

    @operation(
        Operation(
            "Have a group that ends with processes live as long as another one, too",
            "execute",
            {200: Answer("The group; one that outlives all processes is not changed", models.Group)},
            body=requests.OwnerRequest,
            is_keyed=True,
            errors=("unknown_group", "group_not_ready", "agent_unreachable", "timed_out"),
        )
    )
    async def post(self, name: str) -> None:
        """Add an owner."""
        group = self.group(name)
        await group.own(self.body)
        self.answer(group.model())


class InterruptHandler(DistHandler):
    """Interrupts ranks."""

    @operation(
        Operation(
            "Interrupt ranks",
            "execute",
            {202: Answer("The ranks that were running a cell", models.Interrupted)},
            body=requests.RanksRequest,
            errors=("unknown_group", "bad_ranks", "group_not_ready", "agent_unreachable", "timed_out"),
        )
    )
    async def post(self, name: str) -> None:
        """Interrupt the cells on the ranks."""
        self.answer(await self.group(name).interrupt(self.body.get("ranks", "all")), 202)


def _renewal(summary: str, answer: str, *more_errors: str) -> Operation:
    errors = ("unknown_group", "group_not_ready", "agent_unreachable", "timed_out", *more_errors)
    return Operation(
        summary,
        "execute",
        {202: Answer(answer, models.Group)},
        body=requests.EmptyRequest,
        is_keyed=True,
        errors=errors,
    )


class RestartHandler(DistHandler):
    """Restarts a group."""

    @operation(_renewal("Restart all ranks", "The group; its ranks are restarting", "name_taken"))
    async def post(self, name: str) -> None:
        """End all ranks and start new ones."""
        group = self.group(name)
        await self.manager.restart(group, self.key)
        self.answer(group.model(), 202)


class ReplaceHandler(DistHandler):
    """Replaces dead ranks."""

    @operation(
        _renewal(
            "Replace dead ranks by new processes; the others keep their variables",
            "The group; the new ranks are starting",
        )
    )
    async def post(self, name: str) -> None:
        """Start a new process for every dead rank."""
        group = self.group(name)
        await group.replace(self.key)
        self.answer(group.model(), 202)


class ReformHandler(DistHandler):
    """Re-creates the process group."""

    @operation(
        _renewal(
            "Re-create the process group in the same processes; variables are kept",
            "The group; its ranks are joining again",
        )
    )
    async def post(self, name: str) -> None:
        """Make all ranks leave the process group, if they are in one, and join a new one."""
        group = self.group(name)
        await group.reform(self.key)
        self.answer(group.model(), 202)


class KillHandler(DistHandler):
    """Kills one rank."""

    @operation(
        Operation(
            "Kill one rank; the others are not affected",
            "execute",
            {202: Answer("The group, without that rank", models.Group)},
            is_keyed=True,
            body=requests.EmptyRequest,
            errors=("unknown_group", "unknown_rank", "group_not_ready", "agent_unreachable", "timed_out"),
        )
    )
    async def post(self, name: str, rank: str) -> None:
        """Kill the rank's process, even if it hangs."""
        group = self.group(name)
        await group.kill(int(rank), self.key)
        self.answer(group.model(), 202)


class StacksHandler(DistHandler):
    """What ranks are doing."""

    @operation(
        Operation(
            "Read the Python stacks of all ranks",
            "read",
            {200: Answer("The stacks of the main threads; ranks with equal ones share an entry", models.Stacks)},
            errors=("unknown_group", "group_not_ready", "incompatible", "agent_unreachable", "timed_out"),
        )
    )
    async def get(self, name: str) -> None:
        """Ask every rank where it is; ranks that do not answer within 2 s are `unknown`."""
        self.answer({"stacks": await self.group(name).stacks()})


class EmptyCacheHandler(DistHandler):
    """Frees memory."""

    @operation(
        Operation(
            "Collect garbage and empty the device caches of idle ranks",
            "execute",
            {200: Answer("Freed bytes by rank", models.FreedBytes)},
            body=requests.RanksRequest,
            errors=("unknown_group", "bad_ranks", "group_not_ready", "agent_unreachable", "timed_out"),
        )
    )
    async def post(self, name: str) -> None:
        """Free unused memory."""
        self.answer({"freed_bytes": await self.group(name).empty_cache(self.body.get("ranks", "all"))})


class MemoryHandler(DistHandler):
    """Memory samples."""

    @operation(
        Operation(
            "Read the last minutes of memory samples",
            "read",
            {200: Answer("Samples, newest last", machine.Samples)},
            errors=("unknown_group",),
        )
    )
    async def get(self, name: str) -> None:
        """Read the samples, which are only taken while a page follows the memory."""
        self.answer({"samples": self.group(name).memory.last(MINUTES_SECONDS)})


class SamplesHandler(DistHandler):
    """The last hour of samples."""

    @operation(
        Operation(
            "Read the last hour of memory samples, page by page, with what ranks were seen to wait in",
            "read",
            {200: Answer("Columns, oldest first", machine.PastSamples)},
            query={"since": SINCE, "seconds": SECONDS, "limit": LIMIT},
            errors=("unknown_group",),
        )
    )
    async def get(self, name: str) -> None:
        """Read a page of samples, which are only taken while a client follows the memory."""
        group = self.group(name)
        since = self.query.get("since", 0.0)
        if "seconds" in self.query:
            since = max(since, samples.seconds_ago(self.query["seconds"]))
        page = group.memory.page(since, self.query.get("limit", DEFAULT_SAMPLES))
        devices = [] if group.status.num_nodes > 1 else self.manager.devices.past.between(page)
        self.answer({**page, "devices": devices})
