"""Passes requests of debuggers to ranks, and their replies back."""

from __future__ import annotations

from collections.abc import Mapping

from jupyter_dist.agent.contact.server_link import Answer, RequestHandler, answer
from jupyter_dist.agent.part import AgentPart
from jupyter_dist.transport.frames import Header

DEBUG_SECONDS = 12.0  # it imports debugpy, or waits for events


class AgentDebugging(AgentPart):
    """Answers `debug` of the server."""

    def requests(self) -> Mapping[str, RequestHandler]:
        """Return the handler of `debug`."""
        return {"debug": self._debug}

    async def _debug(self, header: Header, payload: bytes) -> Answer:
        rank = self.core.begun_rank(header["rank"])
        return answer(reply=(await rank.request("debug", DEBUG_SECONDS, payload))["reply"])
