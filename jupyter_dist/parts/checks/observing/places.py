"""The line of the user's code that has called torch."""

from __future__ import annotations

from types import FrameType
from typing import Any

from jupyter_dist.protocol.wire.places import is_library
from jupyter_dist.rank.guard import folders
from jupyter_dist.rank.guard.own import linecache

MAX_FRAMES = 200

Place = list[Any]  # file, line, function, code


def place_of(frame: FrameType | None, namespace: dict[str, Any]) -> Place | None:
    """Return the innermost line of the user below a frame; None if no code of a cell runs."""
    found: FrameType | None = None
    for _ in range(MAX_FRAMES):
        if frame is None:
            return None
        if found is None and _is_users(frame.f_code.co_filename):
            found = frame
        if found is not None and frame.f_globals is namespace:
            break
        frame = frame.f_back
    if found is None:
        return None
    number: int | None = found.f_lineno  # typeshed declares int
    code = found.f_code
    line = code.co_firstlineno if number is None else number
    text = linecache.getline(code.co_filename, line).strip()[:200]
    return [code.co_filename, line, code.co_name, text]


def _is_users(file: str) -> bool:
    return not is_library(file) and not file.startswith(folders.ON_RANKS)
