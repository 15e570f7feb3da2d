"""Finds the line at which a thread spends its time.

CPython lets another thread look only where a loop jumps back, where a Python function begins, and after some calls:
what took long before that, such as `x in long_list`, is found there. And the jump of a loop may have no line. Where
several lines may have taken the time, all of them are named: the agent finds out which by looks from outside.
"""

from __future__ import annotations

import dis
import functools
from bisect import bisect_right
from types import CodeType, FrameType
from typing import NamedTuple

from jupyter_dist.protocol.wire.places import is_library
from jupyter_dist.rank.guard import folders

_JUMPS = ("JUMP_BACKWARD", "JUMP_ABSOLUTE")
_LEAVES = (*_JUMPS, "JUMP_FORWARD", "RETURN", "RAISE", "RERAISE")
_LOOKS = (*_JUMPS, "RESUME", "CALL", "YIELD", "SEND")  # an earlier one was passed when another thread asked
# What may take long without a call that Python sees.
_WORKS = (
    *("BINARY", "INPLACE", "COMPARE", "CONTAINS", "UNARY", "UNPACK", "LIST_EXTEND", "SET_UPDATE", "DICT_UPDATE"),
    *("STORE_SUBSCR", "DELETE_SUBSCR", "GET_ITER", "FOR_ITER", "FORMAT"),
)
MAX_CODES = 1000
MAX_FILES = 20_000  # cells may make code
MAX_LINES = 20  # that may have taken the time of one


class _Instructions(NamedTuple):
    """The instructions of a code, in order."""

    names: list[str]
    offsets: list[int]
    lines: list[int | None]
    jumps: dict[int, int]  # by the offset of their target: the last jump to there


def line_of(frame: FrameType) -> int:
    """Return the line of a frame: the line of its last instruction with a line."""
    number: int | None = frame.f_lineno  # typeshed declares int
    if number is not None:
        return number
    code = _instructions(frame.f_code)
    before = code.lines[: bisect_right(code.offsets, frame.f_lasti)]
    return next((line for line in reversed(before) if line is not None), frame.f_code.co_firstlineno)


def users_frame(frame: FrameType | None) -> FrameType | None:
    """Return the innermost frame of the user's code among a frame and its callers; None if there is none."""
    while frame is not None and not is_users(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


@functools.lru_cache(MAX_FILES)
def is_users(file: str) -> bool:
    """Return whether the code of a file is the user's, and of no library."""
    return not is_library(file) and not file.startswith(folders.ON_RANKS)


def spends(frame: FrameType) -> tuple[FrameType, int]:
    """Return the frame, this one or its caller, and the line that the thread was busy with when another one looked."""
    at, caller = frame.f_lasti, frame.f_back  # at once: the thread runs meanwhile
    called_at = caller.f_lasti if caller is not None else -1
    name = _name_at(frame.f_code, at)
    if name.startswith(_JUMPS) and (line := work_before(frame.f_code, at)) is not None:
        return frame, line
    if name == "RESUME" and caller is not None and (line := work_before(caller.f_code, called_at)) is not None:
        return caller, line
    return frame, line_of(frame)


def may_have_spent(frame: FrameType, number: int) -> list[int]:
    """Return the other lines, nearest first, that may have taken the time before this one, while the GIL was held."""
    code = _instructions(frame.f_code)
    found: dict[int, None] = {}
    for index in range(bisect_right(code.offsets, frame.f_lasti) - 1, 0, -1):
        name, line = code.names[index], code.lines[index]
        if name.startswith((*_JUMPS, "RESUME")) and code.offsets[index] != frame.f_lasti:
            break
        if name.startswith((*_WORKS, "CALL", "PRECALL")) and line not in (None, number):
            found[line] = None
    return list(found)[:MAX_LINES]


def is_in_call(frame: FrameType) -> bool:
    """Whether a frame is in a call."""
    return _name_at(frame.f_code, frame.f_lasti).startswith(("CALL", "PRECALL", "FOR_ITER", "SEND"))


def _name_at(code: CodeType, at: int) -> str:
    """Return the name of the instruction at this offset; a generator's that has not begun has none."""
    return dis.opname[code.co_code[at]] if 0 <= at < len(code.co_code) else ""


def work_before(code: CodeType, at: int) -> int | None:
    """Return the line of what may have taken long since other threads could look before; None if nothing could."""
    found, instructions = None, _instructions(code)
    now = bisect_right(instructions.offsets, at)  # the number of the instruction after it
    index = now - 2
    while index > 0:
        name = instructions.names[index]
        if name.startswith(_LEAVES):  # what follows it was jumped to
            index = instructions.jumps.get(instructions.offsets[index + 1], now)
            if index >= now:
                break
            continue
        if name.startswith(_LOOKS):
            break
        if name.startswith(_WORKS):
            if instructions.names[index - 1] != "LOAD_CONST":  # not `k % 7 == 3`, the test of a counter
                return instructions.lines[index]
            found = found or instructions.lines[index]
        index -= 1
    return found


@functools.lru_cache(MAX_CODES)
def _instructions(code: CodeType) -> _Instructions:
    spans = [(begin, line) for begin, _, line in code.co_lines()]
    begins = [begin for begin, _ in spans]
    every = list(dis.get_instructions(code))
    return _Instructions(
        [one.opname for one in every],
        [one.offset for one in every],
        [spans[bisect_right(begins, one.offset) - 1][1] if spans else None for one in every],
        {
            one.argval: index
            for index, one in enumerate(every)
            if one.opname.startswith(("POP_JUMP", "JUMP_F", "JUMP_IF"))
        },
    )
