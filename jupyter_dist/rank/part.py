"""The seam for features on ranks: the events of a rank, and the requests that a part answers there."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from jupyter_dist.protocol import parts
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import say
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

_REFUSED = "refused"  # a call in place of one of a part that is off


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
    interrupt: Callable[[], None]  # the execution that runs (any thread)


class RankPart:
    """One feature on a rank, from its begin to its end. Override what the feature needs.

    What raises an exception ends the part, not the rank or its cell: the rank's log names it. Its calls, and its
    requests in the side thread, are refused then.
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

    def cut_off(self, reason: str) -> None:
        """Handle the failure of this part, or of the AgentPart of the same name (any thread).

        A call that waits for a message must end. By default the call of this part that runs is interrupted.
        """
        running = self.core.running()
        if running is not None and running.call is not None and running.call.get("do") in self.calls():
            self.core.interrupt()

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
        self._off: dict[str, str] = {}  # the parts that have failed here or in the agent, and why
        self._of_calls: dict[str, str] = {}  # the part of each call
        self.requests: dict[str, RankRequest] = {}
        self.idle_requests: dict[str, RankRequest] = {}
        self.busy_requests: dict[str, RankRequest] = {}
        self.later_requests: dict[str, LaterRequest] = {}
        self.cell_magics: dict[str, CellMagic] = {}
        self.calls: dict[str, RankCall] = {_REFUSED: _refuse}
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
        calls = part.calls()
        found: tuple[tuple[dict[str, Any], Mapping[str, Any]], ...] = (
            (self.requests, part.requests()),
            (self.idle_requests, part.idle_requests()),
            (self.busy_requests, part.busy_requests()),
            (self.later_requests, part.later_requests()),
            (self.cell_magics, part.cell_magics()),
            (self.calls, calls),
        )
        if doubled := {one for known, own in found for one in known.keys() & own.keys()}:
            raise ValueError(f"others have {', '.join(sorted(doubled))} already")
        for known, own in found:  # all of a part, or nothing
            known.update(own)
        self._of_calls.update(dict.fromkeys(calls, name))
        return part

    def checked(self, call: dict[str, Any]) -> dict[str, Any]:
        """Return the call; if its part has failed here or in the agent, a call that raises the reason."""
        reason = self._off.get(self._of_calls.get(str(call.get("do")), ""))
        return call if reason is None else {"do": _REFUSED, "reason": reason}

    def before(self, execution: CurrentExecution, code: str | None) -> None:
        """Prepare for a cell."""
        self._parts.each(lambda part: part.before(execution, code))

    def after(self) -> dict[str, Any]:
        """Return the field of the reply to a cell with what parts have added; empty if none has."""
        found = self._parts.each(lambda part: _in_json(part.after()))
        added = {name: content for name, content in found.items() if content is not None}
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
        wishes = self._parts.each(lambda part: None if (wish := part.timeout()) is None else float(wish)).values()
        return min((wish for wish in wishes if wish is not None), default=None)

    def tick(self) -> None:
        """Give each part its step."""
        self._parts.each(lambda part: part.tick())

    def cut_off(self, name: str, reason: str) -> None:
        """Handle the failure of the agent's part of this name: calls of it are refused from now on."""
        self._off.setdefault(name, reason)
        if (part := self._parts.get(name)) is not None:
            self._parts.safely(name, lambda: part.cut_off(reason))

    def _failed(self, name: str, part: RankPart | None, err: BaseException) -> None:
        reason = f"The part '{name}' is off on this rank, because it failed: {parts.failure_of(err)}"
        self._outbox.log(f"jupyter_dist: {reason}\n")
        self._off.setdefault(name, reason)
        if part is not None:
            with contextlib.suppress(Exception):  # what has failed once may fail again
                part.cut_off(reason)


def _refuse(call: dict[str, Any]) -> None:
    raise JupyterDistError("internal", str(call["reason"]), say("Restart the group to have it again."))


def _in_json(content: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    json.dumps(content)  # the reply could not be sent with anything else; by a json that no cell replaces
    return content


def find_parts() -> parts.PartClasses:
    """Return the parts that ranks have; called before ranks are forked, so that none imports them again."""
    return parts.find_parts("rank", RankPart)
