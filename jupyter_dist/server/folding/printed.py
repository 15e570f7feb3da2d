"""All lines that an execution printed, from its records: also the lines that its view leaves out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from jupyter_dist.journal.records.wide import each_rank

from .feeding.lines import LineBuffer
from .feeding.rankfeed import Decoders


def printed_lines(records: Iterable[tuple[dict[str, Any], bytes]]) -> Iterator[tuple[tuple[int, ...], str]]:
    """Yield each complete line, without its newline, and the rank that wrote it."""
    decoders: dict[int, Decoders] = {}
    buffers: dict[tuple[int, str], LineBuffer] = {}
    for header, payload in records:
        for said, part in each_rank(header, payload) if header["kind"] == "stream" else ():
            rank, name = said["rank"], said["name"]
            text = decoders.setdefault(rank, Decoders()).decode(name, part)
            for line in buffers.setdefault((rank, name), LineBuffer()).feed(text):
                if line.endswith("\n"):  # else a piece of a line without end
                    yield (rank,), line[:-1]
