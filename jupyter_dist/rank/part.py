"""The seam for features on ranks: the events of a rank, and the requests that a part answers there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from jupyter_dist.protocol import parts
from jupyter_dist.protocol.wire.road import Stop
from jupyter_dist.protocol.wire.specs import RankSpec
from jupyter_dist.rank.cells.interrupt import CurrentExecution
from jupyter_dist.rank.guard.own import json
from jupyter_dist.transport.frames import Header

from .memory import MemoryCounters
from .output.outbox import Outbox

Reply = Callable[[Mapping[str, Any]], None]  # sends the fields of an answer, once (any thread)
LaterRequest = Callable[[Header, bytes, Reply], None]
CellMagic = Callable[[str, str], None]  # gets the rest of its line, and the cell below
RankRequest = Callable[[Header, bytes], Mapping[str, Any]]  # returns the fields of the answer
RankCall = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class RankCore:
    """What a part has of its rank."""

    spec: RankSpec  # as it was when the rank began: `take_place` has later ones
    shell: Any  # IPython's, of the cells
    namespace: dict[str, Any]  # of the cells
    place: str  # the group's folder, on this machine
    memory: MemoryCounters
    running: Callable[[], CurrentExecution | None]  # the execution that runs (any thread)
    when_idle: Callable[[Callable[[], None]], None]  # calls a function in the main thread while no cell runs
    may_run: Callable[[], str | None]  # what of earlier cells may run code between cells; None: nothing (main thread)
    leave_groups: Callable[[], None]  # all process groups, until the agent's group has the ranks join again
    # Reports where a debugger has stopped the cell; None: it has gone on (any thread).
    stopped: Callable[[Stop | None], None]
    send: Callable[[Mapping[str, Any]], None]  # sends a message to the AgentPart of the same name (any thread)
    emit: Callable[[str, dict[str, Any]], None]  # sends an output of the running cell, of a kind in OUTPUT_KINDS
    log: Callable[[str], None]  # adds a line to the rank's log


class RankPart:
    """One feature on a rank, from its begin to its end. Override what the feature needs.

    What raises an exception ends the part, not the rank or its cell: the rank's log names it.
    """

    comes_first = False  # whether it acts before and after a cell ahead of the other parts

    def __init__(self, core: RankCore) -> None:
        self.core = core

    def before(self, execution: CurrentExecution, code: str | None) -> None:
        """Prepare for a cell, in the main thread. The code is without magics; None if it is not known.

        `execution.asked` has what the AgentPart of the same name has sent with it, by that name.
        """

    def after(self) -> Mapping[str, Any] | None:
        """Return a message for the AgentPart of the same name, which receives it with the end of the cell."""
        return None

    def requests(self) -> Mapping[str, RankRequest]:
        """Return the requests of the agent that are answered at once, in the side thread, while a cell runs, too."""
        return {}

    def idle_requests(self) -> Mapping[str, RankRequest]:
        """Return the requests of the agent that are answered in the main thread, while no cell runs."""
        return {}

    def busy_requests(self) -> Mapping[str, RankRequest]:
        """Return other handlers of `idle_requests`, which answer at once, in the side thread, while a cell runs.

        So do they while the values of cells are away.
        """
        return {}

    def later_requests(self) -> Mapping[str, LaterRequest]:
        """Return the requests of the agent that come in the side thread and are answered later, from any thread."""
        return {}

    def interrupted(self) -> None:
        """Handle an interrupt of the running cell, in the side thread."""

    def cell_magics(self) -> Mapping[str, CellMagic]:
        """Return the functions that run cells, by magic in CELL_MAGICS."""
        return {}

    def calls(self) -> Mapping[str, RankCall]:
        """Return functions for the main thread, which the AgentPart calls by an execution (`do` of its call)."""
        return {}

    def received(self, content: dict[str, Any]) -> None:
        """Handle a message of the AgentPart of the same name (`send` there), in the side thread."""

    def take_place(self, spec: RankSpec) -> None:
        """Take another number, or another size of the group, after a resize."""

    def timeout(self) -> float | None:
        """Return after how many seconds the side thread must call `tick`; None: not for this part."""
        return None

    def tick(self) -> None:
        """Do a short step of work in the side thread, without waiting."""


class RankParts:
    """The parts of a rank, by name. A part that fails is left out from then on."""

    def __init__(self, core: RankCore, outbox: Outbox) -> None:
        self._outbox = outbox
        self._parts: parts.RunningParts[RankPart] = parts.RunningParts(self._failed)
        self.requests: dict[str, RankRequest] = {}
        self.idle_requests: dict[str, RankRequest] = {}
        self.busy_requests: dict[str, RankRequest] = {}
        self.later_requests: dict[str, LaterRequest] = {}
        self.cell_magics: dict[str, CellMagic] = {}
        self.calls: dict[str, RankCall] = {}
        found = find_parts()
        for sentence in found.problems:
            outbox.log(f"jupyter_dist: {sentence}\n")
        self._parts.begin(
            dict(sorted(found.classes.items(), key=lambda found: not found[1].comes_first)), partial(self._begin, core)
        )

    def _begin(self, core: RankCore, name: str, kind: type[RankPart]) -> RankPart:
        def send(content: Mapping[str, Any]) -> None:
            self._outbox.send({"t": "part", "part": name}, json.dumps(content).encode())

        part = kind(replace(core, send=send))
        self.requests.update(part.requests())
        self.idle_requests.update(part.idle_requests())
        self.busy_requests.update(part.busy_requests())
        self.later_requests.update(part.later_requests())
        self.cell_magics.update(part.cell_magics())
        self.calls.update(part.calls())
        return part

    def before(self, execution: CurrentExecution, code: str | None) -> None:
        """Prepare for a cell."""
        self._parts.each(lambda part: part.before(execution, code))

    def after(self) -> dict[str, Any]:
        """Return the field of the reply to a cell with what parts have added; empty if none has."""
        added = {
            name: content
            for name, content in self._parts.each(lambda part: part.after()).items()
            if content is not None
        }
        return {"parts": added} if added else {}

    def interrupted(self) -> None:
        """Handle an interrupt."""
        self._parts.each(lambda part: part.interrupted())

    def received(self, name: str, content: dict[str, Any]) -> None:
        """Handle a message of the agent's part of this name."""
        if (part := self._parts.get(name)) is not None:
            self._parts.safely(name, lambda: part.received(content))

    def take_place(self, spec: RankSpec) -> None:
        """Take another place."""
        self._parts.each(lambda part: part.take_place(spec))

    def timeout(self) -> float | None:
        """Return after how many seconds a part has something to do; None: no part has."""
        wishes = self._parts.each(lambda part: part.timeout()).values()
        return min((wish for wish in wishes if wish is not None), default=None)

    def tick(self) -> None:
        """Give each part its step."""
        self._parts.each(lambda part: part.tick())

    def _failed(self, name: str, err: Exception) -> None:
        self._outbox.log(f"jupyter_dist: The part '{name}' is off on this rank, because it failed: {err!r:.300}\n")


def find_parts() -> parts.PartClasses:
    """Return the parts that ranks have; called before ranks are forked, so that none imports them again."""
    return parts.find_parts("rank", RankPart)
