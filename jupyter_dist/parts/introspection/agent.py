"""Passes the user's cursor to a rank, and the rank's answer back."""

from __future__ import annotations

from collections.abc import Mapping

from jupyter_dist.agent.contact.server_link import Answer, RequestHandler, answer
from jupyter_dist.agent.part import AgentPart
from jupyter_dist.transport.frames import Header

ANSWER_SECONDS = 0.5
_COMPLETION = ("matches", "cursor_start", "cursor_end", "types", "signatures")
_INSPECTION = ("found", "data", "busy")


class AgentIntrospection(AgentPart):
    """Answers `complete` and `inspect` of the server, which had these names before it was a part."""

    def requests(self) -> Mapping[str, RequestHandler]:
        """Return the handlers."""
        return {"complete": self._complete, "inspect": self._inspect}

    async def _complete(self, header: Header, payload: bytes) -> Answer:
        return await self._ask("complete", header, payload, ("cursor_pos",), _COMPLETION)

    async def _inspect(self, header: Header, payload: bytes) -> Answer:
        return await self._ask("inspect", header, payload, ("cursor_pos", "detail"), _INSPECTION)

    async def _ask(
        self, request: str, header: Header, payload: bytes, passed: tuple[str, ...], fields: tuple[str, ...]
    ) -> Answer:
        rank = self.core.begun_rank(header["rank"], may_be_away=True)
        self.core.used()  # its user types
        reply = await rank.request(request, ANSWER_SECONDS, payload, **{name: header[name] for name in passed})
        return answer(**{name: reply[name] for name in fields if name in reply})
