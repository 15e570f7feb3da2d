"""The code of functions as text, for tracebacks: each function's file, and the lines of files that are cells.

They are beside the streams: ranks that have run different numbers of cells have equal functions in cells
with different names.
"""

from __future__ import annotations

import types
from collections.abc import Sequence
from typing import Any

from jupyter_dist.rank.guard.own import linecache
from jupyter_dist.rank.ipython import cellnames


def take(definitions: Sequence[Any]) -> dict[str, dict[str, str]]:
    """Return the file of each function, by its number as text, and the lines of each file that is not on the disk."""
    files = {
        str(number): one.__code__.co_filename
        for number, one in enumerate(definitions)
        if type(one) is types.FunctionType
    }
    lines = {file: "".join(found) for file in set(files.values()) if (found := _lines_of(file))}
    return {"files": files, "lines": lines}


def name_file(function: Any, file: str | None) -> None:
    """Give a function that was read its file; the stream has none."""
    if file is not None and type(function) is types.FunctionType:
        function.__code__ = _in_file(function.__code__, file)


def put_back(lines: dict[str, str], compiler: Any) -> None:
    """Let tracebacks and `inspect` find the lines, and call cells as they were called where they ran."""
    for file, text in lines.items():
        linecache.cache.setdefault(file, (len(text), None, text.splitlines(keepends=True), file))
        cellnames.adopt(compiler, file)


def _lines_of(file: str) -> list[str]:
    """Return the lines of a file that is a cell, or other text that was compiled; none of a file on the disk."""
    entry = linecache.cache.get(file, ())
    return entry[2] if len(entry) == 4 and entry[1] is None else []


def _in_file(code: types.CodeType, file: str) -> types.CodeType:
    inner = tuple(_in_file(one, file) if isinstance(one, types.CodeType) else one for one in code.co_consts)
    return code.replace(co_filename=file, co_consts=inner)
