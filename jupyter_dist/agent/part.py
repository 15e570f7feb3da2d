"""The seam for features in the agent: the events of a group, and how a part adds to the group and its cells."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeVar

from jupyter_dist.agent.contact.server_link import Answer, RequestHandler
from jupyter_dist.agent.group.cells.execution import AgentExecution
from jupyter_dist.agent.group.cells.proving import Proving
from jupyter_dist.agent.group.group import AgentGroup
from jupyter_dist.agent.group.replacing.replacement import BeginReplacing, WayToReplace
from jupyter_dist.agent.group.starts import GroupStarts
from jupyter_dist.agent.processes.rank_process import RankProcess
from jupyter_dist.agent.watch.look import Looks
from jupyter_dist.protocol import parts
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.field import options_of
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.protocol.wire.specs import ReplaceSpec
from jupyter_dist.transport.frames import Header

log = logging.getLogger(__name__)

T = TypeVar("T")


class BegunRank(Protocol):
    """Finds a rank that can answer."""

    def __call__(self, number: int, *, may_be_away: bool = False) -> RankProcess:
        """Return a rank; raise where it starts, or where its values are away, unless it answers without them."""


@dataclass(frozen=True)
class AgentCore:
    """What a part has of its agent."""

    group: AgentGroup
    starts: GroupStarts  # starts ranks, one change of them at a time
    proving: Proving  # keeps what was shown, and counts what was refuted
    looks: Looks  # at what all ranks do
    begun_rank: BegunRank
    used: Callable[[], None]  # counts as a use of the group: its user types
    execution_changed: Callable[[AgentExecution], None]  # sends the model of an execution, to which a part has added
    status_changed: Callable[[], None]  # sends the status of the group soon, to which a part has added
    group_answer: Callable[[], Answer]  # of a request that changes the group
    interrupt: Callable[[list[RankProcess]], object]  # the cells of these ranks
    send: Callable[[RankProcess, Mapping[str, Any]], None]  # sends a message to the RankPart of the same name
    failed: Callable[[BaseException], None]  # ends this part: `on_failure` of its tasks


class AgentPart:
    """One feature in the agent of a group, from the group's begin to its end. Override what the feature needs.

    What raises an exception ends the part, not the group: a note of the group names it, its requests are refused, and
    its RankParts get `cut_off`. A restart of the group begins the part again.
    """

    def __init__(self, core: AgentCore) -> None:
        self.core = core

    def options(self, kind: type[T]) -> T:
        """Return the options of the group of this part: `kind` is `GROUP_OPTIONS` of its module `api`."""
        return options_of(kind, self.core.group.spec.options)

    def changed(self, execution: AgentExecution) -> None:
        """Handle a new state of an execution, before the server gets it. Called for every cell, so it must be short.

        `execution.add` puts a value into the model that users see.
        """

    def asked(self, execution: AgentExecution) -> Mapping[str, Any] | None:
        """Return values for the RankPart of the same name with a cell that begins (`asked` there), or None."""
        return None

    def interrupted(self, ranks: Sequence[RankProcess]) -> Sequence[RankProcess]:
        """Handle a user's interrupt of the cells of these ranks; return the ranks that are to get it.

        The others wait for this part in a call, which it ends on all ranks alike.
        """
        return ranks

    def ranks_changed(self) -> None:
        """Handle new states of ranks. Called very often, so it must be short."""

    def used(self, *, by_cell: bool) -> None:
        """Handle a use of the group: a cell was queued, or its user has typed, or has moved a widget."""

    def restarts(self) -> None:
        """Handle a restart of the group: its ranks end."""

    def received(self, rank: RankProcess, content: dict[str, Any]) -> None:
        """Handle a message of the RankPart of the same name, or the message that came with the end of a cell there."""

    def tick(self, now: float) -> None:
        """Do work at intervals. Called about every second, with the time of the monotonic clock."""

    def status(self) -> dict[str, Any] | None:
        """Return the entry of this part in `parts` of the group's model; None: it has none."""
        return None

    def group_fields(self) -> Mapping[str, Any]:
        """Return fields of the group's model, which `GROUP_FIELDS` of the module `api` declares."""
        return {}

    def ends(self, at: float | None) -> None:
        """Take the end of the group's allocation, in seconds since 1970; None: it has no limit."""

    def nodes_end(self) -> bool:
        """Handle a request of the engine that the group's nodes end; others may have come before.

        Return whether they wait for a call of `group.let_nodes_end`.
        """
        return False

    def requests(self) -> Mapping[str, RequestHandler]:
        """Return the requests of the server that this part answers, by names that no other part has.

        One with a `key` is carried out once; a retry is answered by `core.group_answer`.
        """
        return {}

    def ways_to_replace(self) -> Mapping[str, WayToReplace]:
        """Return more ways to replace ranks, by the `state` that a request names."""
        return {}

    def children(self) -> set[int]:
        """Return the processes that this part has started and reaps itself."""
        return set()

    def stop(self) -> None:
        """Stop timers and tasks. Idempotent."""

    def failed(self, reason: str) -> None:
        """Handle the failure of this part, which gets nothing from now on: end what waits for it, with the reason.

        By default it stops.
        """
        self.stop()


class AgentParts:
    """The parts of one group, by name. A part that fails is left out until the group is restarted."""

    def __init__(self, core: AgentCore, core_requests: Iterable[str] = ()) -> None:
        """`core_requests` are names of requests that no part may take."""
        self._group = core.group
        self._core = core
        self._core_requests = frozenset(core_requests)
        self._requests: dict[str, Mapping[str, RequestHandler]] = {}  # by part
        self._ways: dict[str, Mapping[str, WayToReplace]] = {}
        self._off: dict[str, str] = {}  # the parts that have failed, and why
        self._ends_at: float | None = None
        self._parts: parts.RunningParts[AgentPart] = parts.RunningParts(self._failed, (asyncio.CancelledError,))
        found = find_parts()
        if found.problems:
            self._group.add_note(" ".join(f"{problem}." for problem in found.problems))
        self._parts.begin(found.classes, self._begin)
        self._group.on_part = self._received
        self._group.on_nodes_end = self._nodes_end
        self._group.dispatcher.asked_by_parts = self._asked
        self._group.dispatcher.on_submit = partial(self.used, by_cell=True)

    def _begin(self, name: str, kind: type[AgentPart]) -> AgentPart:
        part = kind(replace(self._core, send=partial(_send, name), failed=partial(self._failed_later, name)))
        requests, ways = dict(part.requests()), dict(part.ways_to_replace())
        taken = self._core_requests.union(*(own for of, own in self._requests.items() if of != name))
        if doubled := taken.intersection(requests):
            raise ValueError(f"its requests {', '.join(sorted(doubled))} are answered already")
        if doubled := frozenset(ways) & {way for of, own in self._ways.items() if of != name for way in own}:
            raise ValueError(f"others replace ranks with {', '.join(sorted(doubled))} already")
        self._requests[name], self._ways[name] = requests, ways
        self._off.pop(name, None)
        return part

    @property
    def requests(self) -> dict[str, RequestHandler]:
        """Return the requests of all parts; a part that has failed refuses its requests."""
        return {
            request: partial(self._answer, name, request) for name, own in self._requests.items() for request in own
        }

    async def _answer(self, name: str, request: str, header: Header, payload: bytes) -> Answer:
        self._check_on(name)
        with _no_exit():
            return await self._requests[name][request](header, payload)

    def way_to_replace(self, state: str) -> WayToReplace | None:
        """Return the way to replace ranks with that `state`; None: no part has it."""
        name = next((name for name, own in self._ways.items() if state in own), None)
        return None if name is None else partial(self._replace, name, state)

    async def _replace(self, name: str, state: str, wanted: ReplaceSpec, begin: BeginReplacing) -> None:
        self._check_on(name)
        with _no_exit():
            await self._ways[name][state](wanted, begin)

    def _check_on(self, name: str) -> None:
        if name not in self._parts:
            raise JupyterDistError("internal", f"{self._off[name]}.", say("Restart the group to have it again."))

    def changed(self, execution: AgentExecution) -> None:
        """Handle a new state of an execution."""
        self._parts.each(lambda part: part.changed(execution))

    def ranks_changed(self) -> None:
        """Handle new states of ranks."""
        self._parts.each(lambda part: part.ranks_changed())

    def used(self, *, by_cell: bool = False) -> None:
        """Handle a use of the group."""
        self._parts.each(lambda part: part.used(by_cell=by_cell))

    def restarts(self) -> None:
        """Handle a restart of the group: parts that have failed begin again, too."""
        self._parts.each(lambda part: part.restarts())
        classes = find_parts().classes
        off = {name: classes[name] for name in self._requests if name not in self._parts}
        self._parts.begin(off, self._begin)
        for name in off:
            if (part := self._parts.get(name)) is not None and self._ends_at is not None:
                self._parts.safely(name, partial(part.ends, self._ends_at))

    def children(self) -> set[int]:
        """Return the processes that parts reap themselves."""
        return {pid for pids in self._parts.each(lambda part: set(part.children())).values() for pid in pids}

    def tick(self) -> None:
        """Give each part the time."""
        self._parts.each(lambda part: part.tick(time.monotonic()))

    def status(self) -> dict[str, dict[str, Any]]:
        """Return the status of each part that has one."""
        found = self._parts.each(lambda part: parts.in_json(part.status()))
        return {name: status for name, status in found.items() if status is not None}

    def group_fields(self) -> dict[str, Any]:
        """Return fields of the group's model."""
        found = self._parts.each(lambda part: parts.in_json(dict(part.group_fields()))).values()
        return {name: value for fields in found for name, value in fields.items()}

    def ends(self, at: float | None) -> None:
        """Take the end of the group's allocation."""
        self._ends_at = at
        self._parts.each(lambda part: part.ends(at))

    def interrupted(self, ranks: list[RankProcess]) -> list[RankProcess]:
        """Handle an interrupt; return the ranks that are to get it: all parts agree on these."""
        found = self._parts.each(lambda part: {id(rank) for rank in part.interrupted(ranks)}).values()
        return [rank for rank in ranks if all(id(rank) in kept for kept in found)]

    def stop(self) -> None:
        """Stop all parts."""
        self._parts.each(lambda part: part.stop())

    def _nodes_end(self) -> None:
        if not any(self._parts.each(lambda part: part.nodes_end()).values()):
            self._group.let_nodes_end()

    def _asked(self, execution: AgentExecution) -> dict[str, Any]:
        """Return the values for the parts of ranks with an execution, by part."""
        asked = self._parts.each(lambda part: parts.in_json(part.asked(execution)))
        return {name: content for name, content in asked.items() if content is not None}

    def _received(self, name: str, rank: RankProcess, content: dict[str, Any]) -> None:
        if (part := self._parts.get(name)) is not None:
            self._parts.safely(name, lambda: part.received(rank, content))

    def _failed_later(self, name: str, err: BaseException) -> None:
        """Handle the failure of a task of a part, which may have failed before."""
        if name in self._parts:
            self._parts.fail(name, err)

    def _failed(self, name: str, part: AgentPart | None, err: BaseException) -> None:
        log.error("The part '%s' failed", name, exc_info=err)
        self._off[name] = reason = f"The part '{name}' is off in this group, because it failed: {parts.failure_of(err)}"
        self._group.add_note(reason)
        if part is not None:
            try:
                part.failed(f"{reason}.")
            except Exception:  # what has failed once may fail again
                log.exception("The part '%s' has not ended what waits for it", name)
        for rank in self._group.living():
            rank.send({"t": "cut_off", "part": name}, f"{reason}.".encode())


@contextlib.contextmanager
def _no_exit() -> Iterator[None]:
    """Raise another exception in place of SystemExit, which would end the agent."""
    try:
        yield
    except SystemExit as err:
        raise RuntimeError(f"{err!r}") from err


def _send(name: str, rank: RankProcess, content: Mapping[str, Any]) -> None:
    rank.send({"t": "part", "part": name}, json.dumps(content).encode())


def find_parts() -> parts.PartClasses:
    """Return the parts that agents have. The first call imports them: a waiting agent makes it."""
    return parts.find_parts("agent", AgentPart)
