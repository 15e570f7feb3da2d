"""One look at what the ranks of a group do: their side threads are asked, which costs a millisecond each."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from jupyter_dist.agent.group.execution import ExecutionQueue
from jupyter_dist.agent.group.group import Group
from jupyter_dist.agent.processes.rank_process import RankProcess
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.ranks import format_ranks
from jupyter_dist.transport.frames import Header

from .verdict import IN_DEBUGGER, Call, Fact, Facts, State, waits_in

if TYPE_CHECKING:
    from jupyter_dist.protocol import models

ANSWER_SECONDS = 2.0
MAX_MEMBERS = 8192
MAX_TEXT = 200
MAX_LINE = 500
MAX_NUMBER = 1 << 62

Asked = tuple[str | None, Header | None]  # which execution a rank has, and its answer

_CELL = re.compile(r"<ipython-input-(\d+)-")
_DEBUGGED_CELL = re.compile(r"/cells/\d+\.py$")  # rank/cells/debugging/dap.py
_LIBRARIES = ("site-packages", "dist-packages", "/lib/python", "<frozen", "jupyter_dist/")


def finite(value: object) -> float | None:
    """Return a number that a rank has told, which may be anything."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and -MAX_NUMBER < value < MAX_NUMBER
    return cast("float", value) if is_number else None


async def look_at(group: Group) -> Facts:
    """Return what each rank does now; `unknown` for one that does not answer."""
    asked = await _ask_all(group)
    cells = _cells(group, asked)
    return {rank.rank: _fact(cells, rank, answer) for rank, answer in asked}


async def stacks_of(group: Group) -> list[models.RankStack]:
    """Return the Python stacks of all ranks' main threads; ranks with equal ones share an entry."""
    found: dict[str, tuple[models.RankStack, list[int]]] = {}
    asked = await _ask_all(group)
    cells = _cells(group, asked)
    for rank, answer in asked:
        stack = _stack(_fact(cells, rank, answer), answer)
        found.setdefault(json.dumps(stack), (stack, []))[1].append(rank.rank)
    return [{**stack, "ranks": format_ranks(ranks)} for stack, ranks in found.values()]


async def _ask_all(group: Group) -> list[tuple[RankProcess, Asked]]:
    ranks = list(group.ranks)
    return list(zip(ranks, await asyncio.gather(*map(_ask, ranks)), strict=True))


async def _ask(rank: RankProcess) -> Asked:
    """Return which execution a rank has, and its answer to `stack`; None for one that is dead or does not answer."""
    execution_id = rank.execution_id
    if rank.state == "dead":
        return execution_id, None
    try:
        return execution_id, await rank.request("stack", ANSWER_SECONDS)
    except JupyterDistError:
        return execution_id, None


def _stack(fact: Fact, asked: Asked) -> models.RankStack:
    _, answer = asked
    return {
        "ranks": "",
        "state": fact.state,
        "call": waits_in(fact),
        "frames": [_frame(frame) for frame in frames_of(answer or {})],
    }


def _frame(frame: dict[str, Any]) -> models.StackFrame:
    file, line = str(frame.get("file")), frame.get("line")
    return {
        "file": file[:MAX_LINE],
        "name": _name(file),
        "line": line if isinstance(line, int) else 0,
        "function": str(frame.get("function"))[:MAX_TEXT],
        "code": str(frame.get("code") or "")[:MAX_LINE],
        "is_library": _is_library(file),
    }


class _Cells(NamedTuple):
    """What a look needs of a group's cells: found once for all ranks, because thousands of cells are kept."""

    queue: ExecutionQueue
    last: Mapping[int, int]  # the number of the last cell of each idle rank
    queued: frozenset[int]  # ranks for which a cell is queued that waits for no cell that hangs


def _cells(group: Group, asked: Iterable[tuple[RankProcess, Asked]]) -> _Cells:
    idle = {rank.rank for rank, (execution_id, _) in asked if execution_id is None}
    queue = group.dispatcher.queue
    queued = frozenset[int]().union(*(execution.spec.ranks for execution in queue.startable()))
    return _Cells(queue, last_cells(queue, idle), queued)


def last_cells(queue: ExecutionQueue, ranks: Collection[int]) -> dict[int, int]:
    """Return the number of the last cell of each of these ranks; those that had none are left out."""
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


def _fact(cells: _Cells, rank: RankProcess, asked: Asked) -> Fact:
    execution_id, answer = asked
    if rank.state == "dead":
        return Fact(rank.rank, "dead")
    if answer is None:
        return Fact(rank.rank, "unknown")
    if rank.execution_id != execution_id:  # it went on while it answered
        return Fact(rank.rank, "runs")
    threads = bool(answer.get("threads"))
    begun, cpu_seconds = answer.get("begun"), finite(answer.get("cpu_seconds")) or 0.0
    if execution_id is None:
        may_start = threads or rank.rank in cells.queued
        return Fact(rank.rank, "idle", None, _last_cell(cells, rank), begun, None, cpu_seconds, may_start)
    if _asks(cells, rank, execution_id) or any(_is_debuggers(frame) for frame in frames_of(answer)):
        place = _asking_place(answer)
        return Fact(rank.rank, "runs", None, place, begun, execution_id, cpu_seconds)
    call = _call(answer.get("wait"))
    state: State = "runs" if call is None or threads else "waits"
    return Fact(rank.rank, state, call, place_of(answer), begun, execution_id, cpu_seconds)


def _asking_place(answer: Header) -> str:
    """Return where a rank waits for a user: for a command of a debugger, or for input."""
    place = place_of(answer)
    if any(_is_debuggers(frame) for frame in frames_of(answer)):
        return f"{IN_DEBUGGER}{place}"
    return f"{place}, where it asks for input".removeprefix(", where ")


def _is_debuggers(frame: dict[str, Any]) -> bool:
    name, file = str(frame.get("function")), str(frame.get("file"))
    return (name == "interaction" and file.endswith("/pdb.py")) or (
        name in ("do_wait_suspend", "_do_wait_suspend") and file.endswith("/pydevd.py")
    )


def _asks(cells: _Cells, rank: RankProcess, execution_id: str) -> bool:
    execution = cells.queue.find(execution_id)
    return execution is not None and execution.asking is not None and rank.rank in execution.asking


def _last_cell(cells: _Cells, rank: RankProcess) -> str:
    return f"since cell [{cells.last[rank.rank]}]" if rank.rank in cells.last else ""


def frames_of(answer: Header) -> list[dict[str, Any]]:
    """Return the frames of an answer to `stack`, outermost first."""
    return [frame for frame in answer.get("stack") or () if isinstance(frame, dict)]


def _is_library(file: str) -> bool:
    return any(part in file for part in _LIBRARIES)


def _name(file: str) -> str:
    """Return what users call a file: "cell [5]", "model.py"."""
    cell = _CELL.match(file)
    if _DEBUGGED_CELL.search(file):
        return "the cell"
    return f"cell [{cell[1]}]" if cell else file.rpartition("/")[2][:MAX_TEXT]


def place_of(answer: Header) -> str:
    """Return the user's line that a rank is at, from its answer to `stack`: the innermost that is no library's."""
    own = [frame for frame in frames_of(answer) if not _is_library(str(frame.get("file")))]
    if not own:
        return ""
    frame = own[-1]
    code = str(frame.get("code") or "")
    return f"line {frame.get('line')} of {_name(str(frame.get('file')))}{f': {code[:MAX_TEXT]}' if code else ''}"


def _call(wait: Any) -> Call | None:
    """Return what a rank says that it waits in; None if that is nothing, or not what a rank would say."""
    if not isinstance(wait, dict) or not isinstance(wait.get("members"), list):
        return None
    members = frozenset(rank for rank in wait["members"][:MAX_MEMBERS] if isinstance(rank, int))
    peer, seq = wait.get("peer"), wait.get("seq")
    return Call(
        str(wait.get("name"))[:MAX_TEXT],
        str(wait.get("group"))[:MAX_TEXT],
        members,
        peer if isinstance(peer, int) else None,
        bool(wait.get("is_p2p")),
        seq if isinstance(seq, int) else None,
        _shape(wait.get("sizes"), wait.get("dtypes")),
    )


def _shape(sizes: Any, dtypes: Any) -> str:
    """Return shapes and types of its tensors: "float [4, 3]"."""
    if not isinstance(sizes, list) or not isinstance(dtypes, list):
        return ""
    kinds = [*map(str, dtypes), *([""] * len(sizes))]
    pairs = zip(sizes, kinds, strict=False)
    return ", ".join(f"{kind.lower()} {json.dumps(size)}".strip() for size, kind in pairs)[:MAX_TEXT]
