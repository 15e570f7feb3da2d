"""Outputs of ranks, and their replies to cells, as journal records; each step is one for a rank or a thousand.

An agent makes a record of a message of one rank. Node agents join the records of their ranks before they send them, so
the head of a group handles records of many ranks.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from jupyter_dist.journal.records.wide import split, split_list
from jupyter_dist.protocol.parts import declared
from jupyter_dist.protocol.ranks import RankSet
from jupyter_dist.protocol.states import FINAL_EXECUTION_STATES
from jupyter_dist.protocol.wire.places import cut
from jupyter_dist.transport.frames import Header

from .rank_process import RankProcess

if TYPE_CHECKING:
    from jupyter_dist.protocol.models.memory import CellMemory

OUTPUT_KINDS = frozenset(
    ("display_data", "update_display_data", "execute_result", "error", "clear_output", *declared("OUTPUT_KINDS"))
)
PROCESS_GROUPS = ("ok", "broken", "none", "lost")
_KINDS = OUTPUT_KINDS | {"stream", "rank_end"}
COMMON_FIELDS = ("execution_id", "name", "status")  # of a record, which its ranks have alike
OWN_FIELDS = ("seconds", "memory", "parts")  # of the record of a reply, which each rank has for itself
REPLY_FIELDS = ("process_group", "collective_seq", "kinds", "ename", "evalue")  # which are not in the journal
MAX_ERROR = 200

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RankRecord:
    """A record of one or more ranks, before it is in the journal: alike but for the payloads and the own fields."""

    kind: str
    fields: Header
    payloads: Sequence[bytes]
    own: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    reply: Header | None = None  # of a `rank_end`: the fields of the reply that the journal does not have

    def of(self, indices: Sequence[int]) -> RankRecord:
        """Return the record of the ranks at these places alone."""
        if len(indices) == len(self.payloads):
            return self
        own = {name: [values[index] for index in indices] for name, values in self.own.items()}
        return replace(self, payloads=[self.payloads[index] for index in indices], own=own)

    @property
    def num_bytes(self) -> int:
        """Return the size of the payloads."""
        return sum(map(len, self.payloads))


_Arrived = tuple[Sequence[RankProcess], RankRecord]  # a record and its ranks


def is_record(header: Header) -> bool:
    """Whether a record is made of a rank's message."""
    return header.get("t") in _FROM_MESSAGES


def from_message(header: Header, payload: bytes) -> RankRecord | None:
    """Return the record of a rank's message for which `is_record` holds; None if its kind of output is unknown.

    Raises:
        KeyError, ValueError: the message is invalid.
    """
    return _FROM_MESSAGES[header["t"]](header, payload)


def from_node(header: Header, payload: bytes) -> tuple[tuple[int, ...], RankRecord]:
    """Return the ranks of a record that a node agent has joined, and the record.

    Raises:
        KeyError, ValueError: header and payload do not fit together.
    """
    if header["kind"] not in _KINDS:
        raise ValueError("not a record of ranks")
    ranks, payloads = split(header, payload)
    own = {}
    for name in OWN_FIELDS:
        if (values := split_list(header, name, len(ranks))) is not None:
            own[name] = values
    fields = {name: header[name] for name in COMMON_FIELDS if name in header}
    return ranks, RankRecord(header["kind"], fields, payloads, own, header.get("reply"))


def for_link(record: RankRecord) -> Header:
    """Return the fields of a record that a node agent sends to the head."""
    return record.fields if record.reply is None else {**record.fields, "reply": record.reply}


def execute(ranks: Iterable[RankProcess], execution_id: str, frame: bytes) -> None:
    """Run a cell, given as an encoded `execute` message; its end is reported by `ranks_replied` or `rank_died`."""
    rank = None
    for rank in ranks:
        rank.begin(execution_id, frame)
    if rank is not None:
        rank.listener.ranks_changed()


def receive(rank: RankProcess, header: Header, payload: bytes) -> None:
    """Handle a message of a rank. Raises any exception if it is invalid; the channel is lost then."""
    if not is_record(header):
        rank.receive(header, payload)
    elif (record := from_message(header, payload)) is not None:
        handle([rank], record)


def receive_text(rank: RankProcess, name: str, data: bytes) -> None:
    """Handle output on the file descriptors 1 and 2 of a rank's process: `stdout` or `stderr`."""
    handle([rank], RankRecord("stream", {"name": name}, [data]))


def write(rank: RankProcess, text: str) -> None:
    """Add a line of jupyter_dist's own to the output of the rank's last cell."""
    receive_text(rank, "stderr", f"jupyter_dist: {text}\n".encode())


def handle(ranks: Sequence[RankProcess], record: RankRecord) -> None:
    """Write a record of these ranks to the journal; of a reply, end their part of the cell.

    Raises:
        KeyError, ValueError: the record is invalid.
    """
    if record.kind == "rank_end":
        _end_parts(ranks, record)
    elif "execution_id" not in record.fields:  # output on file descriptors, of which the rank knows no more
        _keep_text(ranks, record)
    else:
        _keep(ranks, record)


class ArrivedRecords:
    """Joins the records of nodes that are read at the same moment: records that are alike cost as much as one.

    The records of each node stay in order.
    """

    def __init__(self) -> None:
        self._alike: list[list[_Arrived]] = []
        self._latest: dict[Hashable, int] = {}  # the last ones with these fields
        self._latest_of: dict[int, int] = {}  # the last ones with a record of that node

    def add(self, node: int, ranks: Sequence[RankProcess], record: RankRecord) -> None:
        """Add a record of these ranks, which are on a node; the caller calls `handle` soon."""
        key = record.kind, repr(record.fields), repr(record.reply), *record.own
        index = self._latest.get(key, -1)
        if index <= self._latest_of.get(node, -1):
            index = self._latest[key] = len(self._alike)
            self._alike.append([])
        self._alike[index].append((ranks, record))
        self._latest_of[node] = index

    def handle(self) -> None:
        """Handle the records. If one is invalid, its ranks lose their channels, and no others."""
        if not self._alike:
            return
        arrived, self._alike = self._alike, []
        self._latest.clear()
        self._latest_of.clear()
        for alike in arrived:
            try:
                if len(alike) > 1:
                    handle(*_joined(alike))
                    continue
            except Exception:  # one of them is invalid
                log.debug("Records that were joined are handled one by one", exc_info=True)
            for ranks, record in alike:
                handle_or_lose(ranks, record)


def _joined(alike: Sequence[_Arrived]) -> _Arrived:
    """Return the ranks of all records that have a channel, and their record."""
    alike = [_connected(*one) for one in alike]
    ranks = [rank for ranks, _ in alike for rank in ranks]
    payloads = [payload for _, record in alike for payload in record.payloads]
    own = {name: [value for _, record in alike for value in record.own[name]] for name in alike[0][1].own}
    return ranks, replace(alike[0][1], payloads=payloads, own=own)


def _connected(ranks: Sequence[RankProcess], record: RankRecord) -> _Arrived:
    if not any(rank.is_mute for rank in ranks):
        return ranks, record
    connected = [index for index, rank in enumerate(ranks) if not rank.is_mute]
    return [ranks[index] for index in connected], record.of(connected)


def handle_or_lose(ranks: Sequence[RankProcess], record: RankRecord) -> None:
    """Handle a record of ranks on a node. If it is invalid, they lose their channels, as a local rank would."""
    ranks, record = _connected(ranks, record)
    try:
        if ranks:
            handle(ranks, record)
    except Exception:  # whatever a node sends, only these ranks are affected
        log.exception("Ranks %s sent an invalid message", RankSet(rank.rank for rank in ranks))
        for rank in ranks:
            rank.lost_channel()


def _from_stream(header: Header, payload: bytes) -> RankRecord:
    return RankRecord("stream", {"execution_id": header["execution_id"], "name": header["name"]}, [payload])


def _from_output(header: Header, payload: bytes) -> RankRecord | None:
    kind = header["msg_type"]
    return RankRecord(kind, {"execution_id": header["execution_id"]}, [payload]) if kind in OUTPUT_KINDS else None


def _from_reply(header: Header, payload: bytes) -> RankRecord:
    fields = {"execution_id": header["execution_id"], "status": header["status"]}
    reply = {name: header[name] for name in REPLY_FIELDS if name in header}
    own = {"seconds": [header["seconds"]], "memory": [header.get("memory")]}
    if "parts" in header:
        own["parts"] = [header["parts"]]
    return RankRecord("rank_end", fields, [payload], own, reply)


_FROM_MESSAGES = {"stream": _from_stream, "output": _from_output, "reply": _from_reply}


def _keep_text(ranks: Sequence[RankProcess], record: RankRecord) -> None:
    """Write output to the journal, as output of each rank's last cell."""
    cells: dict[str | None, list[int]] = {}
    for index, rank in enumerate(ranks):
        cells.setdefault(rank.last_execution_id, []).append(index)
    for execution_id, indices in cells.items():
        part = replace(record.of(indices), fields={**record.fields, "execution_id": execution_id})
        _keep([ranks[index] for index in indices], part)


def _keep(ranks: Sequence[RankProcess], record: RankRecord) -> None:
    numbers = [rank.rank for rank in ranks]
    own = {name: values for name, values in record.own.items() if name == "seconds"}
    ranks[0].journal.append_of_all(numbers, record.kind, record.payloads, record.fields, own)
    if record.kind == "stream" and record.fields["name"] == "stderr":
        for rank, payload in zip(ranks, record.payloads, strict=True):
            rank.last_words.add(payload)


def _end_parts(ranks: Sequence[RankProcess], record: RankRecord) -> None:
    fields = record.fields
    indices = [index for index, rank in enumerate(ranks) if rank.execution_id == fields["execution_id"]]
    if not indices:
        return
    reply = {"process_group": "ok", **(record.reply or {}), **fields}
    if reply["status"] not in FINAL_EXECUTION_STATES or reply["process_group"] not in PROCESS_GROUPS:
        raise ValueError("an invalid reply")
    ranks, record = [ranks[index] for index in indices], record.of(indices)
    seconds, memory = record.own["seconds"], record.own["memory"]
    _keep(ranks, record)
    kinds = reply.get("kinds")
    kinds = {str(name): str(kind) for name, kind in kinds.items()} if isinstance(kinds, dict) else {}
    error = _error_of(reply)
    for rank, used in zip(ranks, memory, strict=True):
        rank.cell_error = error
        rank.ended_part(reply, kinds, _cell_memory(used) if used is not None else None)
    for rank, added in zip(ranks, record.own.get("parts") or (), strict=False):
        rank.received_of_parts(added)
    listener = ranks[0].listener
    listener.ranks_changed()
    listener.ranks_replied(ranks, reply, seconds)


def _cell_memory(sent: Any) -> CellMemory | None:
    """Return the change that a cell made in the memory of its rank, if the rank has sent one in the right form."""
    if not isinstance(sent, dict) or sent.get("kind") not in ("allocated", "resident"):
        return None
    added, peak = sent.get("added_bytes"), sent.get("peak_bytes")
    if not isinstance(added, int) or not isinstance(peak, int | None):
        return None
    return {"kind": sent["kind"], "added_bytes": added, "peak_bytes": peak}


def _error_of(reply: Header) -> str | None:
    """Return the error that ended a cell, as tracebacks end: "ValueError: no data"."""
    if not reply.get("ename"):
        return None
    return cut(f"{reply['ename']}: {reply.get('evalue') or ''}".rstrip(": ").partition("\n")[0], MAX_ERROR)
