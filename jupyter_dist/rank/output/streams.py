"""sys.stdout and sys.stderr of a rank: as fast as a pipe, in order, restored before every cell."""

from __future__ import annotations

import contextlib
import fcntl
import io
import sys
from collections.abc import Callable
from typing import Any

from jupyter_dist.rank.guard import usercode
from jupyter_dist.rank.guard.own import os, threading

from .outbox import BATCH_BYTES, STREAM_FDS, Outbox

_FIRST_PRIVATE_FD = 100  # above the descriptors that cells get or dup to by number


class StreamWriter(io.BufferedIOBase):
    """The binary layer of a stream: passes bytes to the outbox."""

    mode = "wb"
    is_only_ordering = False  # flushed only to keep the order of the two streams; need not be sent now

    def __init__(self, outbox: Outbox, name: str, before: Callable[[], None], after: Callable[[], None]) -> None:
        self.name = f"<{name}>"
        self._outbox = outbox
        self._stream = name
        self._before = before
        self._after = after

    def write(self, data: Any, /) -> int:
        """Write bytes, after the other stream's pending text."""
        block = data if type(data) is bytes else bytes(data)
        order = self._outbox.order
        if order.acquire(blocking=self._outbox.may_wait):
            try:
                self._before()
            finally:  # an interrupt must not lose the text
                try:
                    if block:
                        self._outbox.write(self._stream, block)
                finally:
                    order.release()
        elif block:  # a finalizer: its text may come before another thread's text
            self._outbox.write(self._stream, block)
        self._after()
        return len(block)

    def flush(self) -> None:
        """Send the text written so far: the process may be about to die."""
        super().flush()
        if not self.is_only_ordering:
            self._outbox.flush_text()
            self._after()

    def writable(self) -> bool:
        """Return True."""
        return True

    def fileno(self) -> int:
        """Return the descriptor of the pipe, for `subprocess.run(stdout=sys.stdout)` and faulthandler."""
        return STREAM_FDS[self._stream]


class Streams:
    """Owns sys.stdout, sys.stderr, and the pipes at fd 1 and 2."""

    def __init__(self, outbox: Outbox, after_write: Callable[[], None]) -> None:
        self._outbox = outbox
        self._after_write = after_write
        self._pipes = {fd: _private_dup(fd) for fd in STREAM_FDS.values()}
        self._identities = {fd: _identity(fd) for fd in self._pipes}
        self.stdout = self._open_stdout()
        self.stderr = self._open_stderr()
        self._put_in_place()
        # A child's buffer is not flushed on a timer; line buffering, because several children share the pipes.
        os.register_at_fork(after_in_child=self._write_lines)

    def flush(self, wait: bool = True) -> None:
        """Pass buffered text to the outbox.

        The buffer is taken before `write` is called, so a flush keeps later text out until it is written. The side
        thread does not wait for a writer, which may be waiting for room.
        """
        if not self._outbox.order.acquire(blocking=wait and self._outbox.may_wait):
            return  # another thread is writing the buffer
        try:
            for stream in (self.stdout, self.stderr):
                _flush(stream)
        finally:
            self._outbox.order.release()

    def keep_order(self) -> None:
        """Pass buffered text to the outbox, to be sent later."""
        if not self._outbox.order.acquire(blocking=self._outbox.may_wait):
            return
        writers = [stream.buffer for stream in (self.stdout, self.stderr) if _is_usable(stream)]
        try:
            for writer in writers:
                writer.is_only_ordering = True  # type: ignore[attr-defined]
            self.flush()
        finally:
            for writer in writers:
                writer.is_only_ordering = False  # type: ignore[attr-defined]
            self._outbox.order.release()

    def begin_cell(self) -> None:
        """Restore the streams that the last cell closed or replaced, then buffer for speed."""
        for fd, pipe in self._pipes.items():
            if _identity(fd) != self._identities[fd]:
                os.dup2(pipe, fd)
        if not _is_usable(self.stdout):
            self.stdout = self._open_stdout()
        if not _is_usable(self.stderr):
            self.stderr = self._open_stderr()
        self._put_in_place()
        self.stdout.reconfigure(write_through=False)

    def flush_replaced(self) -> None:
        """Flush the streams with which a cell has replaced ours: their text belongs to the cell."""
        for stream in (sys.stdout, sys.stderr):
            if stream is not self.stdout and stream is not self.stderr:
                with contextlib.suppress(Exception):  # a class of the user's
                    usercode.call(stream.flush)

    def end_cell(self) -> None:
        """Send every write at once between cells, so that no timer is needed."""
        self._write_through()

    def _write_through(self) -> None:
        if _is_usable(self.stdout):
            self.stdout.reconfigure(write_through=True)

    def _write_lines(self) -> None:
        self._outbox.order = threading.RLock()  # a thread that does not exist in the child may have held it
        for stream in (self.stdout, self.stderr):
            if _is_usable(stream):
                stream.reconfigure(write_through=False, line_buffering=True)

    def _put_in_place(self) -> None:
        for name, stream in (("stdout", self.stdout), ("stderr", self.stderr)):
            if not _is_usable(getattr(sys, name, None)):
                setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)
        if getattr(sys.stdin, "closed", True):
            sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 (kept open on purpose)

    def take_over(self) -> None:
        """Replace the process's streams."""
        sys.stdout, sys.stderr = self.stdout, self.stderr
        self._put_in_place()

    def _open_stdout(self) -> io.TextIOWrapper:
        return _text_stream(StreamWriter(self._outbox, "stdout", lambda: None, self._after_write))

    def _open_stderr(self) -> io.TextIOWrapper:
        return _text_stream(StreamWriter(self._outbox, "stderr", self._flush_stdout, self._after_write))

    def _flush_stdout(self) -> None:
        if _is_usable(self.stdout):
            writer = self.stdout.buffer
            assert isinstance(writer, StreamWriter)
            writer.is_only_ordering = True
            try:
                self.stdout.flush()
            finally:
                writer.is_only_ordering = False


def _text_stream(writer: StreamWriter) -> io.TextIOWrapper:
    stream = io.TextIOWrapper(writer, "utf-8", "backslashreplace", newline="\n", write_through=True)
    # C code buffers this much before it calls us.
    stream._CHUNK_SIZE = BATCH_BYTES  # type: ignore[attr-defined]
    return stream


def _flush(stream: io.TextIOWrapper) -> None:
    if _is_usable(stream):
        stream.flush()


def _is_usable(stream: Any) -> bool:
    try:
        return callable(getattr(stream, "write", None)) and not getattr(stream, "closed", False)
    except Exception:  # its buffer was detached, or a class of the user's raises it
        return False


def _private_dup(fd: int) -> int:
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _FIRST_PRIVATE_FD)


def _identity(fd: int) -> tuple[int, int] | None:
    try:
        status = os.fstat(fd)
    except OSError:
        return None
    return status.st_dev, status.st_ino
