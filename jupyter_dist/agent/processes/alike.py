"""What ranks say of their cells, and cells for them: each in one step, whether it is one rank or a thousand."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jupyter_dist.protocol.ranks import format_ranks
from jupyter_dist.protocol.states import FINAL_EXECUTION_STATES
from jupyter_dist.transport.frames import Header

if TYPE_CHECKING:
    from jupyter_dist.protocol.memory import CellMemory

    from .rank_process import RankProcess

OUTPUT_KINDS = frozenset({"display_data", "update_display_data", "execute_result", "error", "clear_output", "profile"})
PROCESS_GROUPS = ("ok", "broken", "none", "lost")
MAX_ERROR = 200

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Said:
    """One message that ranks sent alike. Each has its own payload; of a reply, its own seconds and memory as well."""

    header: Header
    payloads: Sequence[bytes]
    seconds: Sequence[float | None] = ()
    memory: Sequence[Any] = ()

    @classmethod
    def by_one(cls, header: Header, payload: bytes) -> Said:
        """Return what one rank said. Raises KeyError: a reply without seconds."""
        if header["t"] != "reply":
            return cls(header, [payload])
        return cls(header, [payload], [header["seconds"]], [header.get("memory")])

    def only(self, indices: Sequence[int]) -> Said:
        """Return what the ranks at these places said."""
        if len(indices) == len(self.payloads):
            return self
        return Said(
            self.header,
            [self.payloads[index] for index in indices],
            [self.seconds[index] for index in indices] if self.seconds else (),
            [self.memory[index] for index in indices] if self.memory else (),
        )


def execute(ranks: Iterable[RankProcess], execution_id: str, frame: bytes) -> None:
    """Run a cell, given as an encoded `execute` message; its end is reported by `ranks_replied` or `rank_died`."""
    rank = None
    for rank in ranks:
        rank.begin(execution_id, frame)
    if rank is not None:
        rank.listener.ranks_changed()


def hear(ranks: Sequence[RankProcess], said: Said) -> None:
    """Take what these ranks of a group said.

    Raises:
        KeyError, ValueError: it is not sound.
    """
    HANDLERS[said.header["t"]](ranks, said)


def hear_together(ranks: Sequence[RankProcess], said: Said) -> None:
    """Take what these ranks of a node said; what is not sound costs each its channel, as it would have alone."""
    heard = [index for index, rank in enumerate(ranks) if not rank.is_mute]
    ranks, said = [ranks[index] for index in heard], said.only(heard)
    try:
        if ranks:
            hear(ranks, said)
    except Exception:  # as in RankProcess.hear
        log.exception("Ranks %s sent an invalid message", format_ranks(rank.rank for rank in ranks))
        for rank in ranks:
            rank.lost_channel()


def _on_stream(ranks: Sequence[RankProcess], said: Said) -> None:
    name = said.header["name"]
    _keep(ranks, "stream", said, {"name": name})
    if name == "stderr":
        for rank, payload in zip(ranks, said.payloads, strict=True):
            rank.last_words.add(payload)


def _on_output(ranks: Sequence[RankProcess], said: Said) -> None:
    if (kind := said.header["msg_type"]) in OUTPUT_KINDS:
        _keep(ranks, kind, said, {})


def _on_reply(ranks: Sequence[RankProcess], said: Said) -> None:
    reply = said.header
    indices = [index for index, rank in enumerate(ranks) if rank.execution_id == reply["execution_id"]]
    if not indices:
        return
    if reply["status"] not in FINAL_EXECUTION_STATES or reply.get("process_group", "ok") not in PROCESS_GROUPS:
        raise ValueError("an invalid reply")
    ranks, said = [ranks[index] for index in indices], said.only(indices)
    _keep(ranks, "rank_end", said, {"status": reply["status"]}, said.seconds)
    kinds = reply.get("kinds")
    kinds = {str(name): str(kind) for name, kind in kinds.items()} if isinstance(kinds, dict) else {}
    for index, rank in enumerate(ranks):
        rank.cell_error = _error_of(reply)
        rank.ended_part(reply, kinds, _cell_memory(said.memory[index]) if said.memory else None)
    listener = ranks[0].listener
    listener.ranks_changed()
    listener.ranks_replied(ranks, reply, said.seconds)


def _keep(
    ranks: Sequence[RankProcess], kind: str, said: Said, fields: Header, seconds: Sequence[float | None] | None = None
) -> None:
    """Append records to the journal. Raises ValueError if readers would reject them."""
    numbers = [rank.rank for rank in ranks]
    fields = {"execution_id": said.header["execution_id"], **fields}
    ranks[0].journal.append_of_all(numbers, kind, said.payloads, fields, seconds)


def _cell_memory(told: Any) -> CellMemory | None:
    """Return what a cell changed in the memory of its rank, as far as the rank tells it in the right form."""
    if not isinstance(told, dict) or told.get("kind") not in ("allocated", "resident"):
        return None
    added, peak = told.get("added_bytes"), told.get("peak_bytes")
    if not isinstance(added, int) or not isinstance(peak, int | None):
        return None
    return {"kind": told["kind"], "added_bytes": added, "peak_bytes": peak}


def _error_of(reply: Header) -> str | None:
    """Return what ended a cell, as tracebacks end: "ValueError: no data"."""
    if not reply.get("ename"):
        return None
    return f"{reply['ename']}: {reply.get('evalue') or ''}".rstrip(": ").partition("\n")[0][:MAX_ERROR]


HANDLERS = {"stream": _on_stream, "output": _on_output, "reply": _on_reply}
