"""Requests with a key: a retry after a lost answer is not carried out again."""

from __future__ import annotations

from collections.abc import Callable

from jupyter_dist.transport.frames import Header

from .server_link import Answer, RequestHandler

MAX_KEYS = 1000


class KeyedRequests:
    """Knows the keys of requests, newest last; the oldest of many are forgotten."""

    def __init__(self, group_answer: Callable[[], Answer]) -> None:
        """`group_answer` answers a retry: it has the group as it is."""
        self._group_answer = group_answer
        self._done: dict[tuple[str, str], None] = {}  # (request, key)

    def once(self, handler: RequestHandler) -> RequestHandler:
        """Carry out a request with a key only once; a retry is answered with the group as it is."""

        async def handle(header: Header, payload: bytes) -> Answer:
            if not (key := header.get("key")):
                return await handler(header, payload)
            asked = (str(header["t"]), str(key))
            if asked in self._done:
                return self._group_answer()
            self._done[asked] = None
            while len(self._done) > MAX_KEYS:
                del self._done[next(iter(self._done))]
            try:
                return await handler(header, payload)
            except Exception:  # it was not carried out; the next try must be
                self._done.pop(asked, None)
                raise

        return handle
