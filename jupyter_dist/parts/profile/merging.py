"""The merged trace of a profiled cell: from the files of its ranks, a piece at a time.

Ranks write these files, so nothing about them is trusted: neither that they are files, nor their length.
"""

from __future__ import annotations

import os
import re
import stat
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models import models
from jupyter_dist.protocol.models.sentences import say

from .models import MAX_RANK_TRACE_BYTES, PROFILE_MIME, TRACES

READ_BYTES = 1 << 18
MAX_TRACE_BYTES = 1 << 30  # of all ranks together, as text
MAX_LINE_BYTES = 1 << 24

_IS_RANK = re.compile(r"[0-9]{1,7}")
_TIME = re.compile(rb'\{"ts":([0-9.]+)')
# The last event: the others end with a comma.
_FOOT = b'{"name":"process_labels","ph":"M","ts":0,"pid":0,"tid":0,"args":{"labels":""}}\n]}\n'


def find_trace(directory: Path, execution_id: str) -> list[Path]:
    """Return the files of a cell's trace, by rank.

    Raises:
        JupyterDistError: `not_found`, if it was not profiled, or its trace is no longer kept.
    """
    folder = directory / TRACES / execution_id
    try:
        names = [name for name in os.listdir(folder) if _IS_RANK.fullmatch(name)]
    except OSError:
        names = []
    if not names:
        hint = say("Begin the cell with %%profile. The oldest traces of a group are removed when they are many.")
        raise JupyterDistError("not_found", say("There is no trace of this cell."), hint)
    return [folder / name for name in sorted(names, key=int)]


def trace_chunks(files: list[Path], shifts: Mapping[int, float]) -> Iterator[bytes]:
    """Yield a Chrome trace with a process for each rank. Reads files: call it in a thread.

    Args:
        files: of `find_trace`.
        shifts: what to add to the times of a rank, in microseconds, if clocks differ.
    """
    yield b'{"displayTimeUnit":"ms","traceEvents":[\n'
    left = MAX_TRACE_BYTES
    for path in files:
        shift = shifts.get(int(path.name), 0.0)
        for lines in _lines(path):
            left -= len(lines)
            if left < 0:
                break
            moved = _TIME.sub(lambda found, by=shift: _moved(found, by), lines) if shift else lines  # type: ignore[misc]
            yield moved.replace(b"\n", b",\n")
    yield _FOOT


def _moved(found: re.Match[bytes], shift: float) -> bytes:
    time = float(found[1])
    return b'{"ts":%.3f' % (time + shift if time else 0.0)


def _lines(path: Path) -> Iterator[bytes]:
    """Yield the complete lines of a file; of a damaged or unfinished file, the lines before the damage."""
    unpacker, rest = zlib.decompressobj(), b""
    try:
        # Non-blocking: opening a pipe would block the thread forever.
        with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_RANK_TRACE_BYTES:
                return
            while packed := unpacker.unconsumed_tail or file.read(READ_BYTES):
                rest += unpacker.decompress(packed, READ_BYTES)
                lines, end, rest = rest.rpartition(b"\n")
                if lines:
                    yield lines + end
                if len(rest) > MAX_LINE_BYTES:
                    return
    except (OSError, zlib.error):
        return


def clock_shifts(items: Iterable[models.ViewItem]) -> dict[int, float]:
    """Return the differences between the clocks of ranks, in microseconds, from the profile in a cell's outputs."""
    for item in reversed(list(items)):
        output = item.get("output")
        if output is not None and output["output_type"] == "display_data" and PROFILE_MIME in output["data"]:
            rows = output["data"][PROFILE_MIME]["ranks"]
            return {int(row["rank"]): float(row["shift_seconds"]) * 1e6 for row in rows}
    return {}
