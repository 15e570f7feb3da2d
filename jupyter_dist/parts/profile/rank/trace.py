"""Reads the trace that torch's profiler exports, event by event, and writes the part of one rank in a merged trace.

A long trace has more text than a rank should hold in memory, so it is never held as a whole.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Any

from jupyter_dist.rank.guard.own import json, os

Event = dict[str, Any]

READ_CHARS = 1 << 20
MAX_EVENT_CHARS = 8 << 20  # of a damaged file: torch writes no event that long
PART_BYTES = 1 << 18
# Times are microseconds since then, so that a number with a point has room for nanoseconds.
EPOCH_MICROSECONDS = 1_735_689_600 * 1_000_000

_BASE = re.compile(r'"baseTimeNanoseconds"\s*:\s*(\d+)')
_HEAD = re.compile(r'"traceEvents"\s*:\s*\[')
_HEAD_BYTES = 1 << 16
_SPACE = re.compile(r"[\s,]*")
# Complete events, instants, flows between threads and devices, names of threads.
_KEPT = frozenset("XiIstfM")
_FLOW_STEP = 1 << 32


def read_events(path: str) -> Iterator[Event]:
    """Yield the events of a trace, in the order of the file, with times in microseconds since EPOCH_MICROSECONDS."""
    with open(path, encoding="utf-8", errors="replace") as file:
        base = _base(path)
        for event in _events(file):
            if isinstance(event.get("ts"), (int, float)):
                event["ts"] = event["ts"] + base
            yield event


def _base(path: str) -> float:
    """Return the offset of the times in a file: since torch 2.4 they are relative to a number in its head or foot."""
    with open(path, "rb") as file:
        head = file.read(_HEAD_BYTES)
        file.seek(max(0, os.path.getsize(path) - _HEAD_BYTES))
        found = _BASE.search((head + file.read()).decode("utf-8", "replace"))
    # Whole microseconds first: so many nanoseconds do not fit into a float.
    return (int(found[1]) // 1000 if found else 0) - EPOCH_MICROSECONDS + (int(found[1]) % 1000 / 1000 if found else 0)


def _events(file: IO[str]) -> Iterator[Event]:
    decode = json.JSONDecoder().raw_decode
    text = _after_head(file)
    while text and len(text) < MAX_EVENT_CHARS:
        position = 0
        while True:
            start = _SPACE.match(text, position).end()  # type: ignore[union-attr]
            if text[start : start + 1] == "]":
                return
            try:
                event, position = decode(text, start)
            except ValueError:  # its rest has not been read yet
                break
            if isinstance(event, dict):
                yield event
        more = file.read(READ_CHARS)
        text = text[position:] + more if more else ""


def _after_head(file: IO[str]) -> str:
    text = ""
    while more := file.read(READ_CHARS):
        text += more
        head = _HEAD.search(text)
        if head:
            return text[head.end() :] or file.read(READ_CHARS)
    return ""


def ours(event: Event, rank: int) -> Event | None:
    """Return the event as it is in the merged trace, where a rank is a process; None if it is left out."""
    kind = event.get("ph")
    # Its own notes on the recording have a text as their process.
    if kind not in _KEPT or not isinstance(event.get("pid"), int) or "ts" not in event:
        return None
    if kind == "M" and event.get("name") != "thread_name":
        return None
    changed = {"ts": round(event["ts"], 3), "pid": rank}
    if isinstance(event.get("id"), int):  # a flow: ranks use the same numbers
        changed["id"] = event["id"] + rank * _FLOW_STEP
    return {**changed, **{name: value for name, value in event.items() if name not in changed}}


class TraceWriter:
    """Sends events compressed, a line each, in parts."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._packer = zlib.compressobj(6)
        self._waiting = bytearray()

    def add(self, event: Event) -> None:
        """Add an event."""
        line = json.dumps(event, separators=(",", ":")) + "\n"
        self._waiting += self._packer.compress(line.encode("utf-8", "replace"))
        if len(self._waiting) >= PART_BYTES:
            self._flush()

    def close(self) -> None:
        """Send the remaining events."""
        self._waiting += self._packer.flush()
        self._flush()

    def _flush(self) -> None:
        self._send(bytes(self._waiting))
        self._waiting.clear()


def lane(rank: int) -> list[Event]:
    """Return the events that name the lane of a rank, and put the lanes in order."""
    common = {"ts": 0, "pid": rank, "tid": 0, "ph": "M"}
    return [
        {**common, "name": "process_name", "args": {"name": f"rank {rank}"}},
        {**common, "name": "process_sort_index", "args": {"sort_index": rank}},
    ]
