"""What the ranks of a node say, on its way to the head: what several say alike is told once.

Ranks that run the same cell send the same messages, but for the seconds that it took and, often, for what they print.
So the head has one thing to do for each node, not for each rank. What is not a short, whole message of a kind that
ranks send alike passes as it is: bytes of a rank's channel or pipes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from jupyter_dist.agent.processes.alike import HANDLERS, Said
from jupyter_dist.journal.sound import is_time
from jupyter_dist.journal.wide import MAX_PART_BYTES
from jupyter_dist.transport.frames import FrameBounds, FrameDecoder, FrameError, Header, encode_frame, pack

MAX_ALIKE_BYTES = 4 * MAX_PART_BYTES  # what a rank says at once; more is a flood, which is not looked into

Bytes = tuple[str, bytes]  # `channel`, `stdout` or `stderr`, and data; no data: the rank closed its channel


class _Message(NamedTuple):
    """A message of a rank, taken apart into what others say too and what is its own."""

    header: Header
    payload: bytes
    seconds: float | None
    memory: Any


@dataclass
class _Part:
    """What some ranks say in one message of the link."""

    common: Header
    numbers: list[int] = field(default_factory=list)
    payloads: list[bytes] = field(default_factory=list)
    seconds: list[float | None] = field(default_factory=list)
    memory: list[Any] = field(default_factory=list)

    def add(self, number: int, message: _Message) -> None:
        self.numbers.append(number)
        self.payloads.append(message.payload)
        self.seconds.append(message.seconds)
        self.memory.append(message.memory)

    def told(self) -> tuple[Header, bytes]:
        """Return what the head must know to take it apart, and the payload: once, if all have the same."""
        lists = {"seconds": self.seconds, "memory": self.memory}
        own = {name: values for name, values in lists.items() if any(value is not None for value in values)}
        if len(set(self.payloads)) == 1:
            self.payloads = self.payloads[:1]
        told = {**self.common, "ps": self.numbers, "sizes": [len(payload) for payload in self.payloads], **own}
        return told, b"".join(self.payloads)


class Sayings:
    """What the ranks of a node say in one turn of the event loop. What one rank says stays in its order."""

    def __init__(self, send: Callable[[Header, bytes], None]) -> None:
        self._send = send
        self._bounds: dict[int, FrameBounds] = {}  # of the channel of each rank
        self._parts: list[_Part] = []
        self._alike: dict[bytes, int] = {}  # the last part with each message
        self._last: dict[int, int] = {}  # the last part of each rank
        self.num_bytes = 0

    def __bool__(self) -> bool:
        return bool(self._parts)

    def add(self, number: int, name: str, data: bytes) -> None:
        """Add what a rank said."""
        self.num_bytes += len(data)
        messages = self._messages(number, data) if name == "channel" else None
        if messages is None:
            self._last[number] = len(self._parts)
            self._parts.append(_Part({"name": name}, [number], [data]))
        else:
            for message in messages:
                self._add(number, message)

    def forget(self, number: int) -> None:
        """Handle that a rank has ended."""
        self._bounds.pop(number, None)

    def flush(self) -> None:
        """Send what was added. Idempotent."""
        if self._parts:
            told = [part.told() for part in self._parts]
            self._parts, self.num_bytes = [], 0
            self._alike.clear()
            self._last.clear()
            self._send(
                *pack({"t": "out"}, {"parts": [header for header, _ in told]}, b"".join(data for _, data in told))
            )

    def _add(self, number: int, message: _Message) -> None:
        key = encode_frame(message.header)
        index = self._alike.get(key, -1)
        if index <= self._last.get(number, -1):
            index = self._alike[key] = len(self._parts)
            self._parts.append(_Part({"said": message.header}))
        self._parts[index].add(number, message)
        self._last[number] = index

    def _messages(self, number: int, data: bytes) -> list[_Message] | None:
        """Return the messages that these bytes are; None if they are something else, too."""
        bounds = self._bounds.setdefault(number, FrameBounds())
        if not bounds.feed(data) or not 0 < len(data) <= MAX_ALIKE_BYTES:
            return None
        try:
            messages = [_message(*frame) for frame in FrameDecoder().feed(data)]
        except FrameError:  # the head says what is wrong with it
            return None
        return None if None in messages else [message for message in messages if message is not None]


def _message(header: Header, payload: bytes) -> _Message | None:
    if header.get("t") not in HANDLERS or len(payload) > MAX_PART_BYTES:
        return None
    if header["t"] != "reply":
        return _Message(header, payload, None, None)
    common = {name: value for name, value in header.items() if name not in ("seconds", "memory")}
    is_sound = is_time(header.get("seconds"))
    return _Message(common, payload, header["seconds"], header.get("memory")) if is_sound else None


def each_said(header: Header, payload: bytes) -> Iterator[tuple[list[int], Bytes | Said]]:
    """Yield what a message of a node says, in order, and the numbers of the ranks that said it."""
    start = 0
    for told in header["parts"]:
        payloads = []
        for size in told["sizes"]:
            payloads.append(payload[start : start + size])
            start += size
        numbers = told["ps"]
        if "name" in told:
            yield numbers, (told["name"], payloads[0])
        else:
            if len(payloads) == 1:
                payloads *= len(numbers)
            yield numbers, Said(told["said"], payloads, told.get("seconds", ()), told.get("memory", ()))
