"""Passes questions about variables to ranks that run no cell, and their answers back."""

from __future__ import annotations

from collections.abc import Mapping

from jupyter_dist.agent.contact.server_link import Answer, RequestHandler, answer
from jupyter_dist.agent.part import AgentPart
from jupyter_dist.transport.frames import Header

ANSWER_SECONDS = 5.0


class VariablesAgent(AgentPart):
    """Answers `variables` of the server."""

    def requests(self) -> Mapping[str, RequestHandler]:
        """Return the handler of `variables`."""
        return {"variables": self._variables}

    async def _variables(self, header: Header, payload: bytes) -> Answer:
        rank = self.core.begun_rank(header["rank"])
        if rank.execution_id is not None:
            return answer(reply={"busy": True})
        return answer(reply=(await rank.request("variables", ANSWER_SECONDS, payload)).fields())
