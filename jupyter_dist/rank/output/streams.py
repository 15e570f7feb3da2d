"""sys.stdout and sys.stderr of a rank: as cheap as a pipe, in one order, restored before every cell."""

from __future__ import annotations

import fcntl
import io
import sys
from collections.abc import Callable
from typing import Any

from jupyter_dist.rank.guard.own import os, threading

from .outbox import BATCH_BYTES, STREAM_FDS, Outbox

_FIRST_PRIVATE_FD = 100  # above what a cell gets when it opens or dups by number


class StreamWriter(io.BufferedIOBase):
    """The binary half of a stream: hands bytes to the outbox."""

    mode = "wb"
    is_only_ordering = False  # flushed to keep the order of the two streams, which need not be sent now

    def __init__(self, outbox: Outbox, name: str, before: Callable[[], None], after: Callable[[], None]) -> None:
        self.name = f"<{name}>"
        self._outbox = outbox
        self._stream = name
        self._before = before
        self._after = after

    def write(self, data: Any, /) -> int:
        """Take bytes; the other stream's pending text goes first."""
        block = data if type(data) is bytes else bytes(data)
        with self._outbox.order:
            try:
                self._before()
            finally:  # an interrupt must not lose the text
                if block:
                    self._outbox.write(self._stream, block)
        self._after()
        return len(block)

    def flush(self) -> None:
        """Send what was written: the process may be about to die."""
        super().flush()
        if not self.is_only_ordering:
            self._outbox.flush_text()

    def writable(self) -> bool:
        """Always."""
        return True

    def fileno(self) -> int:
        """The number of the pipe beside it, for `subprocess.run(stdout=sys.stdout)` and faulthandler."""
        return STREAM_FDS[self._stream]


class Streams:
    """Owns sys.stdout, sys.stderr, and the pipes that fd 1 and 2 must be."""

    def __init__(self, outbox: Outbox, after_write: Callable[[], None]) -> None:
        self._outbox = outbox
        self._after_write = after_write
        self._pipes = {fd: _private_dup(fd) for fd in STREAM_FDS.values()}
        self._identities = {fd: _identity(fd) for fd in self._pipes}
        self.stdout = self._open_stdout()
        self.stderr = self._open_stderr()
        self._put_in_place()
        # Nobody flushes a child's buffer on a timer; whole lines, because several children share the pipes.
        os.register_at_fork(after_in_child=self._write_lines)

    def flush(self, wait: bool = True) -> None:
        """Hand what Python buffers to the outbox.

        The buffer is taken before `write` is called: whoever flushes keeps later text out until it is written.
        The side thread does not wait for a writer, which may wait for the side thread to make room.
        """
        if not self._outbox.order.acquire(blocking=wait):
            return  # somebody writes just now, the buffer is on its way
        try:
            for stream in (self.stdout, self.stderr):
                _flush(stream)
        finally:
            self._outbox.order.release()

    def keep_order(self) -> None:
        """Hand what Python buffers to the outbox, which need not be sent now."""
        with self._outbox.order:
            writers = [stream.buffer for stream in (self.stdout, self.stderr) if _is_usable(stream)]
            for writer in writers:
                writer.is_only_ordering = True  # type: ignore[attr-defined]
            try:
                self.flush()
            finally:
                for writer in writers:
                    writer.is_only_ordering = False  # type: ignore[attr-defined]

    def begin_cell(self) -> None:
        """Put back what the last cell closed or lost, then buffer for speed."""
        for fd, pipe in self._pipes.items():
            if _identity(fd) != self._identities[fd]:
                os.dup2(pipe, fd)
        if not _is_usable(self.stdout):
            self.stdout = self._open_stdout()
        if not _is_usable(self.stderr):
            self.stderr = self._open_stderr()
        self._put_in_place()
        self.stdout.reconfigure(write_through=False)

    def end_cell(self) -> None:
        """Between cells every write arrives at once, so that nothing needs a timer."""
        self._write_through()

    def _write_through(self) -> None:
        if _is_usable(self.stdout):
            self.stdout.reconfigure(write_through=True)

    def _write_lines(self) -> None:
        self._outbox.order = threading.RLock()  # a thread that is not in the child may have held it
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
        """Replace whatever streams the process had."""
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
    # C code collects this much before it calls us.
    stream._CHUNK_SIZE = BATCH_BYTES  # type: ignore[attr-defined]
    return stream


def _flush(stream: io.TextIOWrapper) -> None:
    if _is_usable(stream):
        stream.flush()


def _is_usable(stream: Any) -> bool:
    try:
        return stream is not None and not stream.closed and callable(stream.write)
    except (AttributeError, ValueError):  # not a stream at all, or one whose buffer was detached
        return False


def _private_dup(fd: int) -> int:
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _FIRST_PRIVATE_FD)


def _identity(fd: int) -> tuple[int, int] | None:
    try:
        status = os.fstat(fd)
    except OSError:
        return None
    return status.st_dev, status.st_ino
