"""The output of a rank, in order: text of both streams, and frames."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from jupyter_dist.rank.guard.own import os, threading
from jupyter_dist.transport.frames import Header, encode_frame

from .capture import Capture
from .wire import FrameSender

BATCH_BYTES = 1 << 16  # this much text is sent without waiting for the flush timer
FRAME_TEXT_BYTES = 1 << 20  # longer text is split into frames of this size
PROMPT_LINES = 100  # this many lines of stderr between two flushes are sent at once
PROMPT_OUTPUTS = 4  # this many displays between two flushes are sent at once
OUTPUT_BYTES = 1 << 20  # this many bytes of displays are sent without waiting for the flush timer
STREAM_FDS = {"stdout": 1, "stderr": 2}


class PendingOutput(NamedTuple):
    """A display, an update of one, or a clear_output that waits for the flush timer; or any other frame."""

    kind: str  # of message; empty: no output
    key: str | None  # for an update: the display that it changes
    waits: bool  # for clear_output: whether it waits for the next output
    frame: bytes


class CapturedOutput(NamedTuple):
    """A display for an Output widget."""

    capture: Capture
    msg_type: str
    content: dict[str, Any]


Segment = tuple[str, bytes | memoryview] | PendingOutput | CapturedOutput


class Outbox:
    """Collects output; any thread may write.

    Text is kept as segments in the order in which it was written to either stream, and every frame is
    preceded by the text that was written before it.

    Finalizers write, too, and Python runs them in any thread, at any time. So a thread waits for `order` before it
    waits for the lock below, never the other way around, and the side thread waits for neither.
    """

    def __init__(self, wire: FrameSender) -> None:
        self.execution_id: str | None = None  # the running execution, or the last one
        self.order = threading.RLock()  # held from reading a stream's buffer until its text was passed to `write`
        self.busy = False  # a cell runs: the side thread flushes on a timer and need not be woken
        self.capture: Capture | None = None  # the Output widget that receives the output
        self.safe_point: Callable[[], None] = lambda: None  # runs handlers of cells, and raises interrupts, that wait
        self._wire = wire
        self._pid = os.getpid()
        self._segments: deque[Segment] = deque()
        self._output_bytes = 0
        self._num_prompt_outputs = PROMPT_OUTPUTS
        self._segment_bytes = 0
        self._num_prompt = PROMPT_LINES
        # Reentrant: a finalizer that prints may run while this thread holds it.
        self._lock = threading.RLock()
        self._mover: int | None = None  # the thread that holds it
        self._sync_ids = itertools.count(1)
        self._syncs: dict[int, threading.Event] = {}
        self._unsynced = False

    @property
    def in_child(self) -> bool:
        """Whether this is a forked child of the rank, which must not use its socket."""
        return os.getpid() != self._pid

    @property
    def may_wait(self) -> bool:
        """Whether this thread may wait for `order`."""
        return threading.get_ident() not in (self._wire.side_thread, self._mover)

    # -- writing ------------------------------------------------------------------------------------

    def write(self, name: str, data: bytes) -> None:
        """Add text of a stream. In a forked child it is written directly to the pipe at fd 1 or 2."""
        if self.in_child:
            write_all(STREAM_FDS[name], data)
            return
        if len(data) > FRAME_TEXT_BYTES:
            self._write_long(name, data)
            return
        first = not self._segments
        self._segments.append((name, data))
        self._segment_bytes += len(data)
        if self._segment_bytes >= BATCH_BYTES:
            self.flush_text()
        elif name == "stderr" and self._num_prompt and data.endswith(b"\n"):
            self._num_prompt -= 1
            self.flush_text()  # it may be the last line before the process dies
        elif first and not self.busy:
            self._wire.wake()

    def _write_long(self, name: str, data: bytes) -> None:
        view = memoryview(data)
        for start in range(0, len(view), FRAME_TEXT_BYTES):
            self._segments.append((name, view[start : start + FRAME_TEXT_BYTES]))
            self.flush_text()

    def send(self, header: Header, payload: bytes = b"") -> None:
        """Add a frame after all text that was written before. Raises FrameError if it is too large."""
        if self.in_child:
            return
        self._segments.append(PendingOutput("", None, False, encode_frame(header, payload)))
        self._flush()

    def show(self, header: Header, payload: bytes, key: str | None = None, waits: bool = False) -> None:
        """Add a display, an update or a clear_output; if many come in a short time, replaced ones are left out."""
        if self._num_prompt_outputs or self.in_child:
            self._num_prompt_outputs -= 1
            self.send(header, payload)
            return
        frame = encode_frame(header, payload)
        first = not self._segments
        self._segments.append(PendingOutput(header["msg_type"], key, waits, frame))
        self._output_bytes += len(frame)
        if self._output_bytes >= OUTPUT_BYTES:
            self.flush_text()
        elif first and not self.busy:
            self._wire.wake()

    def show_captured(self, capture: Capture, msg_type: str, content: dict[str, Any]) -> None:
        """Add a display to an Output widget, after the text that was written before it."""
        self._segments.append(CapturedOutput(capture, msg_type, content))
        self._flush()

    def log(self, line: str) -> None:
        """Add a line to the rank's log that is not part of any cell's output."""
        self.send({"t": "stream", "execution_id": None, "name": "stderr"}, line.encode("utf-8", "backslashreplace"))

    def flush_text(self) -> None:
        """Send the text written so far."""
        if (self._segments or self._mover is not None) and not self.in_child:
            self._flush(self.safe_point)

    def _flush(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        is_side = threading.get_ident() == self._wire.side_thread
        if not self._lock.acquire(blocking=not is_side):
            return  # the side thread comes again, as long as there are segments
        outer, self._mover = self._mover, threading.get_ident()
        try:
            self._move_text()
        finally:
            self._mover = outer
            self._lock.release()
        self._wire.send()
        self._wire.wait_for_room(meanwhile)

    def flush_on_timer(self) -> None:
        """Send the text written so far (side thread)."""
        self._num_prompt, self._num_prompt_outputs = PROMPT_LINES, PROMPT_OUTPUTS
        self.flush_text()

    @property
    def has_text(self) -> bool:
        """Whether text is waiting to be sent."""
        return bool(self._segments)

    def _move_text(self) -> None:
        self._segment_bytes = self._output_bytes = 0
        run: list[bytes | memoryview] = []
        run_name, run_bytes = "", 0
        for segment in _without_replaced([self._segments.popleft() for _ in range(len(self._segments))]):
            if isinstance(segment, (PendingOutput, CapturedOutput)):
                if run:
                    self._append_text(run_name, run)
                    run, run_bytes = [], 0
                self._wire.put(_frame_of(segment))
                continue
            name, data = segment
            if run and (name != run_name or run_bytes + len(data) > FRAME_TEXT_BYTES):
                self._append_text(run_name, run)
                run, run_bytes = [], 0
            run_name = name
            run.append(data)
            run_bytes += len(data)
        if run:
            self._append_text(run_name, run)

    def _append_text(self, name: str, parts: list[bytes | memoryview]) -> None:
        header = {"t": "stream", "execution_id": self.execution_id, "name": name}
        text = parts[0] if len(parts) == 1 else b"".join(parts)
        if self.capture is not None:
            self._wire.put(self.capture.text(name, bytes(text)))
            return
        self._wire.put(encode_frame(header, text))
        self._unsynced = True

    # -- agreeing with the agent --------------------------------------------------------------------

    def sync(self, timeout_seconds: float = 0.2) -> None:
        """Wait until the agent has written all text so far to the journal (docs/messaging.md, `sync`)."""
        self.flush_text()
        if not self._unsynced or self.in_child or threading.get_ident() == self._wire.side_thread:
            return
        self._unsynced = False
        number = next(self._sync_ids)
        done = self._syncs[number] = threading.Event()
        self.send({"t": "sync", "id": number})
        done.wait(timeout_seconds)
        del self._syncs[number]

    def synced(self, number: int) -> None:
        """Handle the answer to a `sync`."""
        waiting = self._syncs.get(number)
        if waiting is not None:
            waiting.set()


def _frame_of(segment: PendingOutput | CapturedOutput) -> bytes:
    if isinstance(segment, PendingOutput):
        return segment.frame
    return segment.capture.output(segment.msg_type, segment.content)


def _without_replaced(segments: list[Segment]) -> list[Segment]:
    """Drop updates that a later one replaces, and displays that were cleared meanwhile; nothing else."""
    if not any(isinstance(segment, PendingOutput) and segment.kind for segment in segments):
        return segments
    kept: list[Segment] = []
    updated: set[str | None] = set()
    is_cleared = is_followed = False
    for segment in reversed(segments):
        kind = segment.kind if isinstance(segment, PendingOutput) else "text"
        if not kind or isinstance(segment, CapturedOutput):
            kept.append(segment)
            continue
        if isinstance(segment, PendingOutput) and kind == "update_display_data":
            if segment.key is not None and segment.key in updated:
                continue
            updated.add(segment.key)
        elif isinstance(segment, PendingOutput) and is_cleared:
            continue
        elif isinstance(segment, PendingOutput) and kind == "clear_output":
            is_cleared = is_followed or not segment.waits
        else:
            is_followed = True
        kept.append(segment)
    return kept[::-1]


def write_all(fd: int, data: bytes) -> None:
    """Write all data to a descriptor."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
