"""A conversation that outlives its connections: lost messages are sent again, and none arrives twice.

Every message has a number. The sender keeps it until the other side has acknowledged that number; after a new
connection it sends all kept messages again, and the receiver drops duplicates. Every message acknowledges, and there is
one at least every few moments, so only a flood needs some that do nothing else.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from .frames import FrameError, Header, encode_frame

MAX_NUMBER = 1 << 62
MAX_UNACKNOWLEDGED_BYTES = 1 << 20  # then they are acknowledged at once, or the other side would stop for want of room

Transmit = Callable[[bytes], None]


class LostError(FrameError):
    """A message was lost on this connection; the next connection brings it."""


class Conversation:
    """One side of a conversation."""

    def __init__(self, max_bytes: int, on_room: Callable[[], None] = lambda: None) -> None:
        """Begin a conversation without a connection.

        Args:
            max_bytes: how much may wait for an acknowledgement before `is_full`.
            on_room: called when it is not full any more.
        """
        self.received = 0  # number of the last message that was taken; acknowledged with every frame that is sent
        self._unacknowledged = 0  # bytes that were taken since
        self._sent_at = 0.0  # monotonic time of the last frame that was sent
        self._max_bytes = max_bytes
        self._on_room = on_room
        self._transmit: Transmit | None = None
        self._kept: deque[tuple[int, Header, bytes]] = deque()
        self._kept_bytes = 0
        self._last = 0

    @property
    def is_full(self) -> bool:
        """Whether the source of messages should pause: `send` still takes them."""
        return self._kept_bytes >= self._max_bytes

    @property
    def kept_bytes(self) -> int:
        """Return how many bytes are not acknowledged."""
        return self._kept_bytes

    def is_due(self, seconds: float) -> bool:
        """Whether to acknowledge: much was taken, or nothing was sent to the other side for so many seconds."""
        is_late = time.monotonic() - self._sent_at >= seconds
        return is_late or self._unacknowledged >= MAX_UNACKNOWLEDGED_BYTES

    def take(self, header: Header, payload: bytes) -> bool:
        """Take a message; return whether it is the next one, and not a duplicate.

        Raises:
            LostError: an earlier message is missing, or its numbers are invalid.
        """
        number, acknowledged = _number(header, "n"), _number(header, "ack")
        self.acknowledged(acknowledged)
        if number > self.received + 1:
            raise LostError(f"message {number} follows message {self.received}")
        if number != self.received + 1:
            return False
        self.received += 1
        self._unacknowledged += len(payload)
        return True

    def send(self, header: Header, payload: bytes = b"") -> None:
        """Send a message, now or as soon as there is a connection."""
        self._last += 1
        self._kept.append((self._last, header, payload))
        self._kept_bytes += len(payload)
        self._send(self._last, header, payload)

    def acknowledge(self) -> None:
        """Acknowledge all taken messages, which also shows the other side that this side lives."""
        self._send(0, {"t": "heard"}, b"")

    def connected(self, transmit: Transmit, their_received: int) -> None:
        """Continue over a new connection: send the messages that the other side has not taken."""
        self._transmit = transmit
        self.acknowledged(their_received)
        for kept in list(self._kept):
            self._send(*kept)

    def disconnected(self) -> None:
        """Handle the loss of the connection: messages are kept until the next one."""
        self._transmit = None

    def acknowledged(self, number: int) -> None:
        """Drop the messages that the other side has taken."""
        was_full = self.is_full
        while self._kept and self._kept[0][0] <= number:
            self._kept_bytes -= len(self._kept.popleft()[2])
        if was_full and not self.is_full:
            self._on_room()

    def _send(self, number: int, header: Header, payload: bytes) -> None:
        if self._transmit is not None:
            self._sent_at, self._unacknowledged = time.monotonic(), 0
            self._transmit(encode_frame({**header, "n": number, "ack": self.received}, payload))


def _number(header: Header, name: str) -> int:
    number = header.get(name, 0)
    if type(number) is not int or not 0 <= number <= MAX_NUMBER:
        raise LostError(f"'{name}' is not a number of a message: {number!r:.80}")
    return number
