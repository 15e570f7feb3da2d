"""The sending side of a rank's socket: frames in order, sent at once if the agent reads, otherwise when it can."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from select import POLLOUT, poll

from jupyter_dist.rank.guard.own import os, socket, threading, time

MAX_WAITING_BYTES = 4 << 20  # above this, writers wait for the agent
ROOM_SECONDS = 0.1  # how often a waiting writer checks for other work
BETWEEN_SECONDS = 0.001  # while another thread sends


class FrameSender:
    """Any thread adds frames and sends what the socket takes; the side thread sends the rest."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        sock.setblocking(False)
        self.wakeup = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self.side_thread: int | None = None
        self._frames: deque[bytes] = deque()
        self._unsent: memoryview | None = None  # rest of the frame being sent
        self._num_bytes = 0
        self._num_sent = 0
        self._closed = False
        self._sending = threading.Lock()
        self._sender: int | None = None  # the thread that holds it

    def put(self, frame: bytes) -> None:
        """Add a frame; callers hold the outbox's lock."""
        size = len(frame)  # first: a finalizer may run in a call, and put a frame
        self._num_bytes += size
        self._frames.append(frame)

    def send(self) -> None:
        """Send as many bytes as the socket takes now. If another thread is sending, leave them to the side thread."""
        if not self._sending.acquire(blocking=False):
            self.wake()
            return
        self._sender = threading.get_ident()
        try:
            self._send_frames()
        except BlockingIOError:
            self._wake_side_thread()
        except OSError:  # the agent is gone: the side thread notices when it reads
            self._wake_side_thread()
        finally:
            self._sender = None
            self._sending.release()

    def _send_frames(self) -> None:
        while self._unsent is not None or self._frames:
            if self._unsent is None:
                self._unsent = memoryview(self._frames.popleft())
            num_sent = self.sock.send(self._unsent)
            self._unsent = self._unsent[num_sent:] if num_sent < len(self._unsent) else None
            self._num_sent += num_sent

    def wait_for_room(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Send until the agent has read enough. The side thread never waits, nor a finalizer in a thread that sends.

        The bytes are not left to the side thread, which may wait in a finalizer for a lock of this thread, such as one
        of `logging`. `meanwhile` is called from time to time; an exception of `meanwhile` ends the wait.
        """
        while self._is_full() and not self._closed and threading.get_ident() not in (self.side_thread, self._sender):
            meanwhile()
            writable = poll()
            writable.register(self.sock, POLLOUT)
            num_sent = self._num_sent
            if writable.poll(ROOM_SECONDS * 1000):
                self.send()
                if self._num_sent == num_sent:
                    time.sleep(BETWEEN_SECONDS)

    def _is_full(self) -> bool:
        return self._num_bytes - self._num_sent > MAX_WAITING_BYTES

    def wake(self) -> None:
        """Wake the side thread."""
        os.eventfd_write(self.wakeup, 1)

    def awake(self) -> None:
        """Clear the wake-up (side thread)."""
        os.eventfd_read(self.wakeup)

    def _wake_side_thread(self) -> None:
        if threading.get_ident() != self.side_thread:
            self.wake()

    @property
    def is_blocked(self) -> bool:
        """Whether frames wait for the agent to read."""
        return self._unsent is not None or bool(self._frames)

    def close(self) -> None:
        """Stop sending, and let waiting writers continue."""
        self._closed = True
