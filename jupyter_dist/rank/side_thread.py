"""The thread that reads the rank's socket, flushes text and repeats interrupts; it never needs the main thread."""

from __future__ import annotations

import contextlib
import errno
import select
from collections.abc import Callable
from os import _exit as exit_now  # not the wrapped one: see spawning.py

from jupyter_dist.protocol.wire.specs import EXIT_DESCRIPTORS_CLOSED, EXIT_MAIN_ENDED, SIDE_THREAD
from jupyter_dist.rank.cells.interrupt import Interrupter
from jupyter_dist.rank.guard.own import threading, time
from jupyter_dist.rank.output.outbox import Outbox
from jupyter_dist.rank.output.streams import Streams
from jupyter_dist.rank.output.wire import FrameSender
from jupyter_dist.transport.frames import FrameDecoder, FrameError

from .control import Control, MainThreadEnded, complain

FLUSH_SECONDS = 0.05
RECV_BYTES = 1 << 18


class SideThread(threading.Thread):
    """Runs from the first step of the start until the process ends."""

    def __init__(
        self, wire: FrameSender, outbox: Outbox, streams: Streams, interrupter: Interrupter, control: Control
    ) -> None:
        super().__init__(name="jupyter_dist side thread", daemon=True)
        self.pydev_do_not_trace = self.is_pydev_daemon_thread = True  # debugpy stops all other threads
        self._wire = wire
        self._outbox = outbox
        self._streams = streams
        self._interrupter = interrupter
        self._control = control
        self._decoder = FrameDecoder()
        self._flushed_at = 0.0
        self._leave_by: float | None = None
        self._poll = select.poll()
        self._poll.register(wire.wakeup, select.POLLIN)

    def leave_within(self, seconds: float) -> None:
        """End the process after this time if the main thread has not ended it."""
        self._leave_by = time.monotonic() + seconds

    def run(self) -> None:
        """Run until the process ends or the agent is gone."""
        self._wire.side_thread = threading.get_ident()
        with contextlib.suppress(OSError), open(f"/proc/self/task/{threading.get_native_id()}/comm", "w") as comm:
            comm.write(SIDE_THREAD)  # for the agent, should this rank not answer
        code = 1
        try:
            while True:
                self._step_surely()
        except (OSError, EOFError) as err:  # the agent is gone, so this rank can no longer be used
            if isinstance(err, OSError) and err.errno == errno.EBADF:
                code = EXIT_DESCRIPTORS_CLOSED
        except MainThreadEnded:
            self._flush()
            self._wire.send()
            code = EXIT_MAIN_ENDED
        except BaseException:  # an internal error: a rank that cannot be reached must not seem alive
            complain()
        self._wire.close()
        exit_now(code)

    def _step_surely(self) -> None:
        try:
            self._step()
        except (OSError, EOFError, FrameError):
            raise
        except Exception:  # a cell broke code that all threads need; only the loss of the agent may end this thread
            self._control.surroundings.restore()
            with contextlib.suppress(Exception):
                complain()
            time.sleep(FLUSH_SECONDS)

    def _step(self) -> None:
        writing = select.POLLOUT if self._wire.is_blocked else 0
        self._poll.register(self._wire.sock, select.POLLIN | writing)
        timeout = self._timeout()
        for fd, event in self._poll.poll(None if timeout is None else timeout * 1000):
            if fd == self._wire.wakeup:
                self._wire.awake()
            elif event & ~select.POLLOUT:
                self._receive()
        self._guard(self._interrupter.tick)
        self._guard(self._control.parts.tick)
        if time.monotonic() - self._flushed_at >= FLUSH_SECONDS:
            self._guard(self._flush)
        self._wire.send()
        if self._leave_by is not None and time.monotonic() > self._leave_by:
            exit_now(1)

    def _timeout(self) -> float | None:
        """Return the poll timeout; None (no polling) while the rank is idle."""
        wishes = [self._interrupter.timeout(), self._control.parts.timeout()]
        if self._outbox.busy or self._outbox.has_text:
            wishes.append(FLUSH_SECONDS)
        if self._leave_by is not None:
            wishes.append(max(0.0, self._leave_by - time.monotonic()))
        return min((wish for wish in wishes if wish is not None), default=None)

    def _flush(self) -> None:
        self._flushed_at = time.monotonic()
        self._streams.flush(wait=False)
        self._outbox.flush_on_timer()

    def _receive(self) -> None:
        try:
            data = self._wire.sock.recv(RECV_BYTES)
        except BlockingIOError:
            return
        if not data:
            raise EOFError
        for header, payload in self._decoder.feed(data):
            self._control.handle(header, payload)

    @staticmethod
    def _guard(step: Callable[[], None]) -> None:
        try:
            step()
        except Exception:  # only the loss of the channel may end this thread
            complain()
