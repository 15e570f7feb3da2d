"""Frames: two lengths, a JSON header, a payload (docs/messaging.md, Frames)."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import Any

Header = dict[str, Any]

_encode = json.JSONEncoder(separators=(",", ":")).encode
# NaN is not valid JSON: a browser would reject the whole answer.
_decode = json.JSONDecoder(parse_constant=lambda _: None).decode

LENGTHS = struct.Struct("!II")
MAX_HEADER_BYTES = 1 << 20
MAX_PAYLOAD_BYTES = 1 << 28


class FrameError(ValueError):
    """The peer does not use our framing; the connection must be closed."""


def encode_frame(header: Header, payload: bytes | memoryview = b"") -> bytes:
    """Return an encoded frame. Raises FrameError if a part is over its limit."""
    head = _encode(header).encode()
    check_lengths(len(head), len(payload))
    return b"".join((LENGTHS.pack(len(head), len(payload)), head, payload))


def pack(header: Header, fields: Header, payload: bytes = b"") -> tuple[Header, bytes]:
    """Put the fields of a message before its payload, because the size of a header is limited."""
    content = _encode(fields).encode()
    return {**header, "json": len(content)}, content + payload


def unpack(header: Header, payload: bytes) -> tuple[Header, bytes]:
    """Return a message with all its fields, and its payload without them; unchanged if it was not packed.

    Raises:
        FrameError: the payload does not begin with a JSON object of the length in the header.
    """
    if "json" not in header:
        return header, payload
    length = header["json"]
    if not isinstance(length, int) or not 0 < length <= len(payload):
        raise FrameError(f"the payload has no {length!r} bytes of JSON")
    own = {name: value for name, value in header.items() if name != "json"}
    return {**decode_header(payload[:length]), **own}, payload[length:]


def decode_frame(frame: bytes) -> tuple[Header, bytes]:
    """Return header and payload of one whole frame. Raises FrameError if the header is invalid."""
    header_length, _ = LENGTHS.unpack_from(frame)
    body = LENGTHS.size + header_length
    return decode_header(frame[LENGTHS.size : body]), frame[body:]


def check_lengths(header_length: int, payload_length: int) -> None:
    """Raise FrameError if a length is over its limit."""
    if header_length > MAX_HEADER_BYTES or payload_length > MAX_PAYLOAD_BYTES:
        raise FrameError(f"frame too large: header {header_length} bytes, payload {payload_length} bytes")


def decode_header(data: bytes) -> Header:
    """Parse a header; raises FrameError unless it is a JSON object."""
    try:
        header = _decode(data.decode())
    except (ValueError, RecursionError) as err:
        raise FrameError(f"header is not JSON: {data[:80]!r}") from err
    if not isinstance(header, dict):
        raise FrameError(f"header is not an object: {data[:80]!r}")
    return header


class FrameDecoder:
    """Bytes in, frames out; keeps an unfinished frame for the next feed."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    @property
    def pending_bytes(self) -> int:
        """Return how many bytes of an unfinished frame are kept."""
        return len(self._buffer)

    def feed(self, data: bytes) -> Iterator[tuple[Header, bytes]]:
        """Yield every complete frame. Raises FrameError on an invalid stream."""
        self._buffer += data
        start = 0
        try:
            while len(self._buffer) - start >= LENGTHS.size:
                header_length, payload_length = LENGTHS.unpack_from(self._buffer, start)
                check_lengths(header_length, payload_length)
                body = start + LENGTHS.size
                end = body + header_length + payload_length
                if len(self._buffer) < end:
                    break
                header = decode_header(bytes(self._buffer[body : body + header_length]))
                payload = bytes(self._buffer[body + header_length : end])
                start = end
                yield header, payload
        finally:
            del self._buffer[:start]


class FrameSplitter:
    """Divides bytes into frames. Long frames are not kept until they are complete, but passed on in parts."""

    def __init__(self, max_bytes: int) -> None:
        """`max_bytes` is the length of the longest frame that is passed on as a whole."""
        self._max_bytes = max_bytes
        self._buffer = bytearray()
        self._left = 0  # of a long frame, of which a part was passed on

    def feed(self, data: bytes) -> Iterator[tuple[bytes, bool]]:
        """Yield bytes, and whether they are one whole frame. A short frame waits until it is complete."""
        self._buffer += data
        while self._buffer:
            if not self._left:
                if len(self._buffer) < LENGTHS.size:
                    return
                length = LENGTHS.size + sum(LENGTHS.unpack_from(self._buffer))
                if length <= self._max_bytes:
                    if len(self._buffer) < length:
                        return
                    yield self._take(length), True
                    continue
                self._left = length
            part = self._take(min(self._left, len(self._buffer)))
            self._left -= len(part)
            yield part, False

    def _take(self, length: int) -> bytes:
        taken = bytes(self._buffer[:length])
        del self._buffer[:length]
        return taken
