"""Records that did not fit on the journal's disk: sent to the connected server, but not stored."""

from __future__ import annotations

from collections import deque

from .records.record import Record

MAX_WAITING_BYTES = 4 << 20


class Overflow:
    """Holds a limited amount, so that no rank waits for a slow server; counts what is not even shown."""

    def __init__(self) -> None:
        self.num_bytes = 0  # bytes of output that were not kept since the disk was full
        self.dropped_bytes = 0  # of these, the bytes that were not sent to the server, either
        self._earlier = (0, 0)  # both, of the times before
        self._frames: deque[tuple[int, bytes]] = deque()
        self._waiting_bytes = 0
        self._is_followed = False

    def follow(self, is_followed: bool) -> None:
        """Set whether a server follows; records that waited for another one are dropped."""
        self._is_followed = is_followed
        self._frames.clear()
        self._waiting_bytes = 0

    def add(self, seq: int, frame: bytes, num_bytes: int) -> None:
        """Add the record with that number and that many bytes of output; drop it if too much is waiting."""
        self.num_bytes += num_bytes
        if self._is_followed and self._waiting_bytes + len(frame) <= MAX_WAITING_BYTES:
            self._frames.append((seq, frame))
            self._waiting_bytes += len(frame)
        else:
            self.dropped_bytes += num_bytes

    def merge(self, records: list[Record]) -> list[bytes]:
        """Return the frames of these records, which were read last, merged with the waiting ones before the last.

        If none was read, the journal has nothing before the waiting records: return all of them.
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
        """Reset the count after it was written to the journal. Waiting records are still sent."""
        self._earlier = self._earlier[0] + self.num_bytes, self._earlier[1] + self.dropped_bytes
        self.num_bytes = self.dropped_bytes = 0

    def __str__(self) -> str:
        return _words(self.num_bytes, self.dropped_bytes)

    def in_all(self) -> str:
        """Return the count since the journal began."""
        return _words(self._earlier[0] + self.num_bytes, self._earlier[1] + self.dropped_bytes)


def _words(num_bytes: int, dropped_bytes: int) -> str:
    dropped = f", {dropped_bytes} of them not shown either" if dropped_bytes else ""
    return f"{num_bytes} bytes of output{dropped}"
