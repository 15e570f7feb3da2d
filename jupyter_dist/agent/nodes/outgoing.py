"""Messages and output of a node's ranks on the way to the head: as joined records, or as bytes.

Output and replies are records, joined by the code that also joins the records of ranks of one machine. They wait a
moment for the other ranks that run the cell: ranks do not answer in one instant, and each message costs the head the
same, whatever it has. The more nodes there are, the longer that moment is. All else passes at once, as bytes of the
rank's channel: messages of other kinds, long ones, and invalid ones, which the head refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from jupyter_dist.agent.processes import records
from jupyter_dist.journal.records.wide import RecordJoiner
from jupyter_dist.transport.frames import FrameSplitter, Header, decode_frame, pack

GATHER_SECONDS, MOST_GATHER_SECONDS = 0.02, 0.1  # for output of the other ranks that run a cell
MESSAGES_PER_SECOND = 2000  # that the head gets of all nodes together while all of their ranks print
MAX_BYTES = 256 << 10  # of a message that is made a record, and of records that wait to be sent


def gather_seconds(num_nodes: int) -> float:
    """Return how long a node waits for output of its other ranks, so that the head can take what all nodes send."""
    return min(MOST_GATHER_SECONDS, max(GATHER_SECONDS, num_nodes / MESSAGES_PER_SECOND))


class OutgoingRecords:
    """Sends the output of a node's ranks. The output of each rank stays in order."""

    def __init__(self, send: Callable[[Header, bytes], None]) -> None:
        self._send = send
        self._joiner = RecordJoiner()
        self._num_bytes = 0
        self._splitters: dict[int, FrameSplitter] = {}  # by process
        self._busy: set[int] = set()  # ranks that run a cell and have not replied

    def __bool__(self) -> bool:
        return bool(self._joiner)

    @property
    def is_complete(self) -> bool:
        """Whether each rank that still runs a cell has output here: nothing is gained by waiting for more."""
        return all(map(self._joiner.has, self._busy))

    def begin(self, ranks: Iterable[int]) -> None:
        """Expect output and a reply of these ranks: they are about to run a cell."""
        self._busy.update(ranks)

    def renumber(self, ranks: Mapping[int, int]) -> None:
        """Have other numbers for ranks."""
        self._busy = {ranks.get(rank, rank) for rank in self._busy}

    def add_text(self, rank: int, name: str, data: bytes) -> None:
        """Add output of a rank on a file descriptor: `stdout` or `stderr`."""
        self._add(rank, records.RankRecord("stream", {"name": name}, [data]))

    def add_bytes(self, process: int, rank: int, data: bytes) -> None:
        """Add bytes that a rank's process has sent on its channel; none: it has closed it."""
        splitter = self._splitters.setdefault(process, FrameSplitter(MAX_BYTES))
        others: list[bytes] = []
        for part, is_frame in splitter.feed(data):
            record = _record_of(part) if is_frame else None
            if record is not None and others:
                self._send_bytes(process, rank, b"".join(others))
                others.clear()
            if record is None or not self._add(rank, record):
                others.append(part)
        if not data:
            self._busy.discard(rank)
        if others or not data:
            self._send_bytes(process, rank, b"".join(others))

    def forget(self, process: int, rank: int) -> None:
        """Handle the end of a process."""
        self._splitters.pop(process, None)
        self._busy.discard(rank)

    def flush(self) -> None:
        """Send the records that are being joined. Idempotent."""
        if self._joiner:
            joined, self._num_bytes = self._joiner.take(), 0
            headers = [{**fields, "kind": kind, "bytes": len(payload)} for kind, payload, fields in joined]
            payloads = b"".join(payload for _, payload, _ in joined)
            self._send(*pack({"t": "records"}, {"records": headers}, payloads))

    def _add(self, rank: int, record: records.RankRecord) -> bool:
        """Add a record; return whether it is valid."""
        try:
            self._joiner.add([rank], record.kind, record.payloads, records.for_link(record), record.own)
        except ValueError:
            return False
        if record.kind == "rank_end":
            self._busy.discard(rank)
        self._num_bytes += record.num_bytes
        if self._num_bytes >= MAX_BYTES:
            self.flush()
        return True

    def _send_bytes(self, process: int, rank: int, data: bytes) -> None:
        if self._joiner.has(rank):
            self.flush()
        self._send({"t": "channel", "p": process}, data)


def _record_of(frame: bytes) -> records.RankRecord | None:
    """Return the record of a rank's message; None if none is made of it, or it is invalid."""
    try:
        header, payload = decode_frame(frame)
        return records.from_message(header, payload) if records.is_record(header) else None
    except (KeyError, TypeError, ValueError):
        return None
