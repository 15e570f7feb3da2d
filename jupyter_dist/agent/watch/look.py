"""One look at what the ranks of a group do: their side threads are asked, which costs a millisecond each."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from jupyter_dist.agent.group.cells.order import ExecutionQueue
from jupyter_dist.agent.group.group import AgentGroup
from jupyter_dist.agent.processes.rank_process import RankProcess
from jupyter_dist.agent.processes.starting.outside import SeenOutside
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import say, words_of
from jupyter_dist.protocol.ranks import RankSet
from jupyter_dist.protocol.wire.places import describe_line, is_library, name_of_file
from jupyter_dist.transport.frames import Header

from .facts import IN_DEBUGGER, BegunCollective, Fact, Facts, State, WaitedCall, silence, waits_in

if TYPE_CHECKING:
    from jupyter_dist.protocol.models import models

ANSWER_SECONDS = 2.0
MAX_MEMBERS = 8192
MAX_TEXT = 200
MAX_LINE = 500
MAX_NUMBER = 1 << 62
MAX_GROUPS = 256
MAX_RECORDS = 64

QUIET_SECONDS, QUIET_AGAIN_SECONDS = 0.4, 0.15  # without an answer: then a rank is looked at from outside


class RankAsked(NamedTuple):
    """What is known of a rank in a look."""

    execution_id: str | None
    answer: Header | None = None
    silent: SeenOutside | None = None  # why it does not answer


def finite(value: object) -> float | None:
    """Return a number from a rank's answer, which may contain anything."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and -MAX_NUMBER < value < MAX_NUMBER
    return cast("float", value) if is_number else None


async def look_at(group: AgentGroup) -> Facts:
    """Return the Fact of each rank; `unknown` for ranks that do not answer."""
    asked = await _ask_all(group)
    cells = _cells(group, asked)
    return {rank.rank: _fact(cells, rank, answer) for rank, answer in asked}


class Looks:
    """The looks at a group: parts that watch it take them."""

    def __init__(self, group: AgentGroup) -> None:
        self._group = group
        self.last: tuple[float, Facts] | None = None  # the time of the last look, and its facts

    async def take(self) -> Facts:
        """Look at all ranks; show which ones do not respond."""
        facts = await look_at(self._group)
        self.last = time.time(), facts
        for rank in self._group.living():
            fact = facts.get(rank.rank)
            if fact is not None and fact.silent and rank.state == "busy" and not rank.ignores_interrupt:
                rank.set_state("unresponsive", say("Not responding: it %1.", silence(fact)))
            elif fact is not None and fact.state != "unknown" and rank.state == "unresponsive":
                rank.set_state("busy" if rank.execution_id else "idle")
        return facts


async def stacks_of(group: AgentGroup) -> list[models.RankStack]:
    """Return the Python stacks of all ranks' main threads; ranks with equal ones share an entry."""
    found: dict[str, tuple[models.RankStack, list[int]]] = {}
    asked = await _ask_all(group)
    cells = _cells(group, asked)
    for rank, answer in asked:
        stack = _stack(_fact(cells, rank, answer), answer)
        found.setdefault(json.dumps(stack), (stack, []))[1].append(rank.rank)
    return [{**stack, "ranks": str(RankSet(ranks))} for stack, ranks in found.values()]


async def _ask_all(group: AgentGroup) -> list[tuple[RankProcess, RankAsked]]:
    ranks = list(group.ranks)
    return list(zip(ranks, await asyncio.gather(*map(_ask, ranks)), strict=True))


async def _ask(rank: RankProcess) -> RankAsked:
    """Return which execution a rank has, and its answer to `stack`, or what is seen of a rank that does not answer."""
    execution_id = rank.execution_id
    if rank.state == "dead":
        return RankAsked(execution_id)
    question = asyncio.ensure_future(rank.request("stack", ANSWER_SECONDS))
    silent = None
    try:
        await asyncio.wait({question}, timeout=QUIET_AGAIN_SECONDS if rank.is_silent else QUIET_SECONDS)
        while not question.done() and (silent := await rank.look()) is None:  # on a busy machine it may show later
            await asyncio.wait({question}, timeout=QUIET_AGAIN_SECONDS)
        return RankAsked(execution_id, None if silent is not None else await question, silent)
    except JupyterDistError:
        return RankAsked(execution_id)
    finally:
        question.cancel()


def _stack(fact: Fact, asked: RankAsked) -> models.RankStack:
    frames = asked.silent.frames if asked.silent is not None else frames_of(asked.answer or {})
    call = waits_in(fact)
    return {
        "ranks": "",
        "state": fact.state,
        "call": call,
        "call_words": words_of(call),
        "frames": [_frame(frame) for frame in frames],
    }


def _frame(frame: dict[str, Any]) -> models.StackFrame:
    file, line = str(frame.get("file")), frame.get("line")
    return {
        "file": file[:MAX_LINE],
        "name": name_of_file(file),
        "line": line if isinstance(line, int) else 0,
        "function": str(frame.get("function"))[:MAX_TEXT],
        "code": str(frame.get("code") or "")[:MAX_LINE],
        "is_library": is_library(file),
    }


class _Cells(NamedTuple):
    """What a look needs of a group's cells: found once for all ranks, because thousands of cells are kept."""

    queue: ExecutionQueue
    last: Mapping[int, int]  # the number of the last cell of each idle rank
    queued: frozenset[int]  # ranks for which a cell is queued that waits for no cell that hangs


def _cells(group: AgentGroup, found: Iterable[tuple[RankProcess, RankAsked]]) -> _Cells:
    idle = {rank.rank for rank, asked in found if asked.execution_id is None}
    queue = group.dispatcher.queue
    queued = frozenset[int]().union(*(execution.spec.ranks for execution in queue.startable()))
    return _Cells(queue, last_cells(queue, idle), queued)


def last_cells(queue: ExecutionQueue, ranks: Collection[int]) -> dict[int, int]:
    """Return the number of the last cell of each of these ranks; ranks without a cell are left out."""
    found: dict[int, int] = {}
    missing = set(ranks)
    for execution in reversed(list(queue)):
        if not missing:
            break
        if execution.execution_count:
            here = missing.intersection(execution.spec.ranks)
            found.update(dict.fromkeys(here, execution.execution_count))
            missing -= here
    return found


def _fact(cells: _Cells, rank: RankProcess, asked: RankAsked) -> Fact:
    execution_id, answer, silent = asked
    if rank.state == "dead":
        return Fact(rank.rank, "dead")
    if answer is None:
        place, does = (place_of({"stack": silent.frames}), silent.does) if silent is not None else ("", "")
        return Fact(rank.rank, "unknown", place=place, execution_id=execution_id, silent=does)
    if rank.execution_id != execution_id:  # it went on while it answered
        return Fact(rank.rank, "runs")
    comes, left_over = _text(answer.get("comes")), _left_over(answer)
    known: dict[str, Any] = {
        "begun": answer.get("begun"),
        "cpu_seconds": finite(answer.get("cpu_seconds")) or 0.0,
        "counts": _counts(answer.get("counts")),
        "records": _records(answer.get("records")),
        "left_over": left_over,
    }
    if execution_id is None:
        comes = comes or ("a cell that is queued for it" if rank.rank in cells.queued else None)
        return Fact(rank.rank, "idle", None, _last_cell(cells, rank), comes=comes, error=rank.cell_error, **known)
    known.update(execution_id=execution_id, at=finite(answer.get("at")), sleeps=bool(answer.get("sleeps")))
    if _asks(cells, rank, execution_id) or any(_is_debuggers(frame) for frame in frames_of(answer)):
        return Fact(rank.rank, "runs", None, _asking_place(answer), comes="the user", **known)
    call = _call(answer.get("wait"), answer)
    state: State = "runs" if call is None or comes is not None else "waits"
    return Fact(rank.rank, state, call, place_of(answer), comes=comes, **known)


def _asking_place(answer: Header) -> str:
    """Return where a rank waits for a user: for a command of a debugger, or for input."""
    place = place_of(answer)
    if any(_is_debuggers(frame) for frame in frames_of(answer)):
        return f"{IN_DEBUGGER}{place}"
    return say("%1, where it asks for input", place) if place else say("it asks for input")


def _is_debuggers(frame: dict[str, Any]) -> bool:
    name, file = str(frame.get("function")), str(frame.get("file"))
    return (name == "interaction" and file.endswith("/pdb.py")) or (
        name in ("do_wait_suspend", "_do_wait_suspend") and file.endswith("/pydevd.py")
    )


def _asks(cells: _Cells, rank: RankProcess, execution_id: str) -> bool:
    execution = cells.queue.find(execution_id)
    return execution is not None and execution.asking is not None and rank.rank in execution.asking


def _last_cell(cells: _Cells, rank: RankProcess) -> str:
    return say("since cell [%1]", cells.last[rank.rank]) if rank.rank in cells.last else ""


def silence_of(seen: SeenOutside | None) -> str:
    """Return a sentence about a rank that does not answer."""
    if seen is None:
        return say("Not responding, and its process shows no reason.")
    place = place_of({"stack": seen.frames})
    return say("Not responding: it %1.", say("%1, at %2", seen.does, place) if place else seen.does)


def frames_of(answer: Header) -> list[dict[str, Any]]:
    """Return the frames of an answer to `stack`, outermost first."""
    return [frame for frame in answer.get("stack") or () if isinstance(frame, dict)]


def place_of(answer: Header) -> str:
    """Return the user's line that a rank is at, from its answer to `stack`: the innermost that is no library's.

    Code in a text that `exec` runs has no lines that anybody can look up.
    """
    own = [frame for frame in frames_of(answer) if not is_library(str(frame.get("file")))]
    if not own:
        return ""
    frame = ([frame for frame in own if frame.get("file") != "<string>"] or own)[-1]
    line = frame.get("line")
    return describe_line(str(frame.get("file")), line if isinstance(line, int) else 0, str(frame.get("code") or ""))


def _call(wait: Any, answer: Header) -> WaitedCall | None:
    """Return the call that a rank reports to wait in; None if there is none, or if the report is invalid."""
    if not isinstance(wait, dict) or not isinstance(wait.get("members"), list):
        return None
    return WaitedCall(
        str(wait.get("name"))[:MAX_TEXT],
        str(wait.get("group"))[:MAX_TEXT],
        frozenset(rank for rank in wait["members"][:MAX_MEMBERS] if isinstance(rank, int)),
        _number(wait.get("peer")),
        bool(wait.get("is_p2p")),
        _number(wait.get("seq")),
        _shape(wait.get("sizes"), wait.get("dtypes")),
        key=_text(wait.get("key")) or "",
        counter=_text(wait.get("counter")) or "",
        operation=_text(wait.get("operation")),
        tag=_number(wait.get("tag")),
        inside=_text(wait.get("inside")),
        cell=_cell_of(wait, answer.get("left_over")),
        is_clear=wait.get("is_clear") is not False,
        is_polled=wait.get("is_polled") is True,
        also=tuple(_also(wait.get("also"))),
        limit=finite(wait.get("limit")),
    )


def _also(told: Any) -> Iterator[WaitedCall]:
    """Yield the collectives of other process groups that a rank may be waiting for."""
    for one in told[:MAX_GROUPS] if isinstance(told, list) else ():
        call = _call({**one, "also": None}, {}) if isinstance(one, dict) else None
        if call is not None and call.seq is not None:
            yield call


def _cell_of(wait: dict[str, Any], left_over: Any) -> int | None:
    """Return the earlier cell that has begun what a rank waits for."""
    if not isinstance(left_over, dict) or (left_over.get("name"), left_over.get("seq")) != (
        wait.get("operation"),
        wait.get("seq"),
    ):
        return None
    return _number(left_over.get("cell"))


def _left_over(answer: Header) -> str:
    """Return a phrase about the work of an earlier cell on a rank's device."""
    found = answer.get("left_over")
    if not isinstance(found, dict):
        return ""
    cell, call = _number(found.get("cell")), (str(found.get("name"))[:MAX_TEXT], _number(found.get("seq")))
    if cell is None:
        return say("%1, number %2, of an earlier cell has not completed", *call)
    return say("%1, number %2, of cell [%3] has not completed", *call, cell)


def _counts(told: Any) -> dict[str, int]:
    items = list(told.items())[:MAX_GROUPS] if isinstance(told, dict) else []
    return {str(key)[:MAX_TEXT]: value for key, value in items if _number(value) is not None}


def _records(told: Any) -> dict[tuple[str, int], BegunCollective]:
    """Return the collectives that a rank has begun last, by counter and number."""
    found = {}
    for record in told[:MAX_RECORDS] if isinstance(told, list) else ():
        if isinstance(record, dict) and (seq := _number(record.get("seq"))) is not None:
            shape = _shape(record.get("sizes"), record.get("dtypes"))
            found[str(record.get("counter"))[:MAX_TEXT], seq] = BegunCollective(
                str(record.get("name"))[:MAX_TEXT], shape
            )
    return found


def _text(value: Any) -> str | None:
    return value[:MAX_TEXT] if isinstance(value, str) and value else None


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and finite(value) is not None else None


def _shape(sizes: Any, dtypes: Any) -> str:
    """Return shapes and types of its tensors: "float [4, 3]"."""
    if not isinstance(sizes, list) or not isinstance(dtypes, list):
        return ""
    kinds = [*map(str, dtypes), *([""] * len(sizes))]
    pairs = zip(sizes, kinds, strict=False)
    return ", ".join(f"{kind.lower()} {json.dumps(size)}".strip() for size, kind in pairs)[:MAX_TEXT]
