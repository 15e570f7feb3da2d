"""What the main thread is doing: its stack, and the call of the cell that it is in. Any thread may ask."""

from __future__ import annotations

import ast
from itertools import islice
from types import FrameType
from typing import Any

from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.rank.collectives.diagnosis.lines import line_of
from jupyter_dist.rank.guard.frames import of_main_thread
from jupyter_dist.rank.guard.own import linecache

MAX_STACK = 50
_LONGEST_CALL = 60
_POSITIONS = (1 << 52) - 1  # JSON keeps it whole


def user_stack(namespace: dict[str, Any], awaiting: list[FrameType]) -> list[dict[str, Any]]:
    """Return the frames from the cell's code inwards, outermost first; `awaiting`: the frames of a cell that awaits."""
    for frames in (_frames(of_main_thread()), awaiting):
        for first, frame in enumerate(frames):
            if frame.f_globals is namespace:
                return [_describe(one) for one in frames[first:][-MAX_STACK:]]
    return []


def position(ours: str) -> int:
    """Return a number for the instructions that the main thread's functions are at; it changes when they get further.

    Functions in files below `ours` do not count: they wait in slices.
    """
    frames = [frame for frame in _frames(of_main_thread()) if not frame.f_code.co_filename.startswith(ours)]
    return hash(tuple((id(frame), frame.f_lasti) for frame in frames)) & _POSITIONS


def current_call(namespace: dict[str, Any]) -> str | None:
    """Return the innermost call of a cell's code, with its line: "time.sleep (cell line 3)"; None if no cell runs."""
    frame = of_main_thread()
    while frame is not None and frame.f_globals is not namespace:
        frame = frame.f_back
    if frame is None:
        return None
    try:
        what = _call(frame)
    except (SyntaxError, ValueError, IndexError, TypeError, StopIteration):  # no source: report the line only
        what = _line(frame).strip()
    if len(what) > _LONGEST_CALL:
        what = f"{what[:_LONGEST_CALL]}..."
    return say("%1 (cell line %2)", what, line_of(frame))


def _call(frame: FrameType) -> str:
    """Return the expression that the frame evaluates; for a call, the function."""
    positions = getattr(frame.f_code, "co_positions", None)
    if positions is None:  # Python 3.10
        return _line(frame).strip()
    first, last, start, end = next(islice(positions(), frame.f_lasti // 2, None))
    lines = [_line(frame, number).encode() for number in range(first, last + 1)]
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][start:]
    node = ast.parse(b"".join(lines).decode(), mode="eval").body
    return ast.unparse(node.func if isinstance(node, ast.Call) else node)


def _frames(frame: FrameType | None) -> list[FrameType]:
    found = []
    while frame is not None:
        found.append(frame)
        frame = frame.f_back
    return found[::-1]


def _describe(frame: FrameType) -> dict[str, Any]:
    return {
        "file": frame.f_code.co_filename,
        "line": line_of(frame),
        "function": frame.f_code.co_name,
        "code": _line(frame).strip()[:500],
    }


def _line(frame: FrameType, number: int | None = None) -> str:
    return linecache.getline(frame.f_code.co_filename, number or line_of(frame), frame.f_globals)
