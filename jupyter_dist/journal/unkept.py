"""Records that the journal's disk did not take, on their way to the server that follows: shown once, kept nowhere."""

from __future__ import annotations

from collections import deque

from .record import Record

MAX_WAITING_BYTES = 4 << 20


class Unkept:
    """Bounded: no rank waits for a slow server, and what is not even shown is counted."""

    def __init__(self) -> None:
        self.num_bytes = 0  # of output that was not kept, since the disk is full
        self.dropped_bytes = 0  # of these, what the server was not sent either
        self._frames: deque[tuple[int, bytes]] = deque()
        self._waiting_bytes = 0
        self._is_followed = False

    def follow(self, is_followed: bool) -> None:
        """A server follows from now on, or none does; what waited for another one is not for it."""
        self._is_followed = is_followed
        self._frames.clear()
        self._waiting_bytes = 0

    def add(self, seq: int, frame: bytes, num_bytes: int) -> None:
        """Take the record of that number, with so many bytes of output; drop it when too much waits."""
        self.num_bytes += num_bytes
        if self._is_followed and self._waiting_bytes + len(frame) <= MAX_WAITING_BYTES:
            self._frames.append((seq, frame))
            self._waiting_bytes += len(frame)
        else:
            self.dropped_bytes += num_bytes

    def merge(self, records: list[Record]) -> list[bytes]:
        """The frames of these records, which were read last, with all that belongs before the last of them.

        When none was read, there is nothing in the journal before what waits: all of it.
        """
        if not self._frames:
            return [record.frame for record in records]
        frames = [(int(record.header["seq"]), record.frame) for record in records]
        last_seq = frames[-1][0] if frames else self._frames[-1][0]
        while self._frames and self._frames[0][0] <= last_seq:
            frames.append(self._frames.popleft())
            self._waiting_bytes -= len(frames[-1][1])
        return [frame for _, frame in sorted(frames)]

    def forget(self) -> None:
        """The count is in the journal: begin anew. What waits is still sent."""
        self.num_bytes = self.dropped_bytes = 0

    def __str__(self) -> str:
        dropped = f", {self.dropped_bytes} of them not shown either" if self.dropped_bytes else ""
        return f"{self.num_bytes} bytes of output{dropped}"
