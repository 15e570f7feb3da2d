"""Appends to the journal; the agent is the only writer."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from jupyter_dist.system.files.private import make_folder
from jupyter_dist.transport.frames import Header, encode_frame

from .blocks import BlockWriter, index_path
from .overflow import Overflow
from .quota import Quota
from .records.record import PREFIX_BYTES, record_prefix
from .records.wide import RecordJoiner, each_rank

SEGMENT_BYTES = 16 << 20
TELL_SECONDS = 1.0
LOOK_SECONDS = 5.0
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_DIGITS = re.compile(r"[\d.]+")

log = logging.getLogger(__name__)


class JournalWriter:
    """One group's journal, in segments named by their first sequence number.

    No failure of the file system ever raises, least of all in housekeeping: cells and deaths must be handled whatever
    the disk does. Records that cannot be kept are counted and passed to the connected server; the count is written as a
    note as soon as there is space again. Numbers of such records are missing in the journal.
    """

    def __init__(
        self,
        directory: Path,
        on_append: Callable[[], None] = lambda: None,
        on_disk: Callable[[], None] = lambda: None,
        max_bytes: int = 0,
        user_bytes: int = 0,
    ) -> None:
        """`max_bytes` limits this journal, `user_bytes` all journals of this user's groups; 0: the default of Quota."""
        self.directory = directory
        self._on_append = on_append
        self._on_disk = on_disk  # called when `disk` changes
        self._is_full = False
        self._trouble = ""  # why it is
        self._told_at = 0.0
        self._last_trouble = ""
        self._last_seq = 0
        self._soon: Callable[[Callable[[], None]], object] = lambda flush: flush()  # at once, until `join_records`
        self._joiner = RecordJoiner()
        self.overflow = Overflow()
        self._segments: list[tuple[int, int]] = []  # (first seq, bytes), oldest first
        self._fd = -1
        self._blocks: BlockWriter | None = None  # of the current segment
        make_folder(directory)
        self._quota = Quota(directory, max_bytes, user_bytes)
        self._allowed = self._quota.allowed()
        self._warning = ""
        self._is_cut = False  # segments were removed because of the quota
        self._looked_at = 0.0
        self._looked_bytes = 0  # written since the last check of free space
        self._output_bytes: dict[str, int] = {}  # bytes of output by execution, of executions that have begun

    @property
    def disk(self) -> str:
        """Return the warning about the disk; empty while there is space and it was never full."""
        if self._is_full:
            return f"{self._trouble}: {self.overflow.in_all()} were not kept so far."
        return " ".join(filter(None, (self._last_trouble, self._warning)))

    @property
    def num_bytes(self) -> int:
        """Return the journal's size on disk."""
        return sum(size for _, size in self._segments)

    @property
    def last_seq(self) -> int:
        """Return the number of the last record, after the records that are being joined were written."""
        self.flush()
        return self._last_seq

    @property
    def written_seq(self) -> int:
        """Return the number of the last record that was written: records that are being joined have no numbers yet."""
        return self._last_seq

    @property
    def is_full(self) -> bool:
        """Whether the disk did not take the last record."""
        return self._is_full

    def take_output_bytes(self, execution_id: str) -> int | None:
        """Return the bytes of output of an execution since it began, and count no further; None if not counted."""
        self.flush()
        return self._output_bytes.pop(execution_id, None)

    def join_records(self, soon: Callable[[Callable[[], None]], object]) -> None:
        """Let ranks share records from now on; `soon` calls a function in the next turn of the event loop."""
        self._soon = soon

    def append_of(self, rank: int, kind: str, payload: bytes = b"", **fields: Any) -> None:
        """Write a record of a rank, joined with other ranks' records in this turn of the event loop (wide.py).

        Raises:
            ValueError: a field is not as readers need it.
        """
        own = {"seconds": [fields.pop("seconds")]} if "seconds" in fields else None
        self.append_of_all([rank], kind, [payload], fields, own)

    def append_of_all(
        self,
        ranks: Sequence[int],
        kind: str,
        payloads: Sequence[bytes],
        fields: Header,
        own: Mapping[str, Sequence[Any]] | None = None,
    ) -> None:
        """Write a record of several ranks. Each has its payload and its `own` fields, such as seconds.

        Raises:
            ValueError: a field is not as readers need it.
        """
        is_first = not self._joiner
        self._joiner.add(ranks, kind, payloads, fields, own)
        if is_first:
            self._soon(self.flush)

    def flush(self) -> None:
        """Write the records of ranks that are being joined. Idempotent."""
        if self._joiner:
            for kind, payload, fields in self._joiner.take():
                self._append(kind, payload, fields)

    def append(self, kind: str, payload: bytes = b"", **fields: Any) -> int:
        """Write a record and return its `seq`; 0 if the disk is full."""
        self.flush()
        return self._append(kind, payload, fields)

    def _append(self, kind: str, payload: bytes, fields: Header) -> int:
        if self._is_full and kind != "note":
            self._note_overflow()
        header = {"t": "record", "seq": self._last_seq + 1, "at": time.time(), "kind": kind, **fields}
        frame = encode_frame(header, payload)
        if self._write(frame):
            assert self._blocks is not None
            self._blocks.add(header, PREFIX_BYTES + len(frame))
            self._count(header, len(payload))
            self._last_seq += 1
            self._looked_bytes += len(frame)
            self._on_append()
            seq = self._last_seq
            self._look_now_and_then()
            return seq
        if kind != "note":
            self._hand_over(header, payload)
        self._report_full()
        return 0

    def _count(self, header: Header, num_bytes: int) -> None:
        execution_id = header.get("execution_id")
        if header["kind"] == "begin":
            self._output_bytes.setdefault(header["execution_id"], 0)
        elif execution_id in self._output_bytes:
            self._output_bytes[execution_id] += num_bytes

    def begin_again(self) -> None:
        """Continue in a new folder, because another program has removed the old one."""
        self.flush()
        self._close_segment()
        self._segments.clear()
        self.directory.mkdir(mode=0o700, exist_ok=True)

    def close(self) -> None:
        """Write the records that are being joined, and close the current segment."""
        self.flush()
        self._close_segment()

    def _close_segment(self) -> None:
        if self._blocks is not None:
            self._blocks.close()
            self._blocks = None
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            with contextlib.suppress(OSError):  # a network file system reports lost data here
                os.close(fd)

    def _hand_over(self, header: Header, payload: bytes) -> None:
        self._last_seq += 1
        is_code = header["kind"] == "begin"  # which does not count as output
        num_bytes = 0 if is_code else sum(len(part) for _, part in each_rank(header, payload))
        self.overflow.add(self._last_seq, encode_frame({**header, "kept": False}, payload), num_bytes)
        self._on_append()

    def _report_full(self) -> None:
        if not self._is_full or time.monotonic() - self._told_at > TELL_SECONDS:
            self._is_full, self._told_at = True, time.monotonic()
            self._on_disk()

    def _note_overflow(self) -> None:
        was = self._trouble.replace(" is ", " was ").replace(" cannot ", " could not ")
        text = f"{was}: {self.overflow} were not kept."
        if self._append("note", text.encode(), {"rank": None, "execution_id": None}):
            self._is_full = False
            self._last_trouble = f"{was}: {self.overflow.in_all()} were not kept."
            self.overflow.forget()
            self._on_disk()

    def _look_now_and_then(self) -> None:
        now = time.monotonic()
        if self._looked_bytes < self._quota.look_bytes and (
            now - self._looked_at < LOOK_SECONDS or not self._looked_bytes
        ):
            return
        self._looked_at, self._looked_bytes = now, 0
        try:
            self._look()
        except OSError:  # no descriptors are left, or the disk fails: looked at again later
            log.warning("Cannot look at the disk of the journal", exc_info=True)

    def _look(self) -> None:
        """Check the free space; write new warnings to the journal, and report them."""
        self._allowed = self._quota.allowed()
        self._drop_oldest()
        before, self._warning = self._warning, self._quota.warning(self.num_bytes, self._allowed, self._is_cut)
        if self._warning != before:
            # The numbers change all the time; write each warning to the log once.
            if _DIGITS.sub("", self._warning) not in ("", _DIGITS.sub("", before)):
                self._append("note", self._warning.encode(), {"rank": None, "execution_id": None})
            self._on_disk()

    def _write(self, frame: bytes) -> bool:
        try:
            if self._fd < 0 or self._segments[-1][1] >= min(SEGMENT_BYTES, self._quota.group_bytes // 4):
                self._open_segment()
            written = os.writev(self._fd, [record_prefix(frame), frame])
            first_seq, size = self._segments[-1]
            if written < PREFIX_BYTES + len(frame):
                # A partial record would hide the start of the next one from readers that trust offsets.
                os.ftruncate(self._fd, size)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as err:
            self._name_trouble(err)
            return False
        self._segments[-1] = (first_seq, size + written)
        return True

    def _name_trouble(self, err: OSError) -> None:
        if err.errno in _FULL:
            self._trouble = "The journal's disk is full"
            return
        self._trouble = f"The journal cannot be written ({err.strerror})"
        self._close_segment()  # a file that a network file system has lost stays lost: the next record begins another

    def _open_segment(self) -> None:
        self._close_segment()
        first_seq = self._last_seq + 1
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        path = segment_path(self.directory, first_seq)
        self._fd = os.open(path, flags, 0o600)
        size = os.fstat(self._fd).st_size
        if self._segments and self._segments[-1][0] == first_seq:  # nothing could be written to it
            self._segments.pop()
        self._segments.append((first_seq, size))
        self._blocks = BlockWriter(path, size)
        self._drop_oldest()

    def _drop_oldest(self) -> None:
        while len(self._segments) > 1 and self.num_bytes > self._allowed:
            first_seq, _ = self._segments.pop(0)
            for path in (segment := segment_path(self.directory, first_seq), index_path(segment)):
                with contextlib.suppress(OSError):  # gone, or the disk does not let it go
                    path.unlink()
            self._is_cut = True


def segment_path(directory: Path, first_seq: int) -> Path:
    """Return the file of the segment that starts with `first_seq`."""
    return directory / f"{first_seq:020d}.jd"
