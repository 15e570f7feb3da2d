"""Journal records for tests, as an agent would write them."""

from __future__ import annotations

import json
import re
from typing import Any

from jupyter_dist.protocol.ranks import RankSet
from jupyter_dist.server.folding.snapshots import Item, Snapshot
from jupyter_dist.server.folding.views import View

Record = tuple[dict[str, Any], bytes]
# What a terminal says instead of lines that came too fast to be shown.
LEFT_OUT = re.compile(r"\.\.\. (\d+) more lines in the log of the rank")


class Recorder:
    """Numbers records."""

    def __init__(self, num_ranks: int) -> None:
        self.num_ranks = num_ranks
        self.records: list[Record] = []
        self._add("begin", b"code", ranks=f"0-{num_ranks - 1}" if num_ranks > 1 else "0")

    def stream(self, rank: int, text: str | bytes, name: str = "stdout") -> None:
        self._add("stream", text if isinstance(text, bytes) else text.encode(), rank=rank, name=name)

    def rich(self, rank: int, kind: str, **content: Any) -> None:
        self._add(kind, json.dumps(content).encode(), rank=rank)

    def display(self, rank: int, text: str, display_id: str | None = None, kind: str = "display_data") -> None:
        transient = {"display_id": display_id} if display_id else {}
        self.rich(rank, kind, data={"text/plain": text}, metadata={}, transient=transient)

    def clear(self, rank: int, wait: bool = False) -> None:
        self.rich(rank, "clear_output", wait=wait)

    def end(self) -> None:
        for rank in range(self.num_ranks):
            self._add("rank_end", rank=rank, status="ok", seconds=0.1)
        self._add("end", state="ok")

    def view(self) -> View:
        return make_view(self.num_ranks, self.records)

    def _add(self, kind: str, payload: bytes = b"", **fields: Any) -> None:
        seq = len(self.records) + 1
        self.records.append(({"seq": seq, "at": 0.0, "kind": kind, "execution_id": "e-1", **fields}, payload))


def make_view(num_ranks: int, records: list[Record]) -> View:
    view = View("e-1", tuple(range(num_ranks)))
    for record, payload in records:
        view.feed(record, payload)
    return view


def shown(snapshot: Snapshot) -> list[tuple[str, str]]:
    """(ranks, text) of every item."""
    return [(item.ranks, item_text(item)) for item in snapshot.items]


def item_text(item: Item) -> str:
    content = item.content()
    if "elided" in content:
        return f"<{content['elided']['lines']} lines, {content['elided']['bytes']} bytes>"
    output = content["output"]
    return output["text"] if output["output_type"] == "stream" else output.get("data", {}).get("text/plain", "")


def of_rank(snapshot: Snapshot, rank: int) -> list[tuple[str, str]]:
    """What the view says that a rank said: (kind, text), same streams joined."""
    said: list[tuple[str, str]] = []
    for item in snapshot.items:
        if rank not in RankSet.from_text(item.ranks):
            continue
        if said and said[-1][0] == item.kind and item.kind in ("stdout", "stderr"):
            said[-1] = (item.kind, said[-1][1] + item.text)
        else:
            said.append((item.kind, item_text(item)))
    return said


def counted(lines: list[str], word: str) -> int:
    """How many lines `lines` shows or names as left out; each in its place, and once."""
    number = 0
    for line in lines:
        if (left_out := LEFT_OUT.fullmatch(line)) is not None:
            number += int(left_out[1])
        else:
            assert line == f"{word} {number}", line
            number += 1
    return number
