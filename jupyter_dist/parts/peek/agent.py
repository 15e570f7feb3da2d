"""Asks ranks for the values of names; of ranks that do not answer, the reason is seen from outside."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from jupyter_dist.agent.contact.server_link import Answer, RequestHandler, answer
from jupyter_dist.agent.part import AgentPart
from jupyter_dist.agent.processes.rank_process import RankProcess
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import say, words_of
from jupyter_dist.transport.frames import Header

ANSWER_SECONDS = 2.0


class AgentPeek(AgentPart):
    """Answers `peek` of the server."""

    def requests(self) -> Mapping[str, RequestHandler]:
        """Return the handler of `peek`."""
        return {"peek": self._peek}

    async def _peek(self, header: Header, _: bytes) -> Answer:
        names = [str(name) for name in header["names"]]
        asked = [rank for rank in self.core.group.ranks if rank.rank in header["ranks"]]
        found = await asyncio.gather(*(self._ask(rank, names) for rank in asked))
        return answer(found=[{"rank": rank.rank, **one} for rank, one in zip(asked, found, strict=True)])

    async def _ask(self, rank: RankProcess, names: list[str]) -> dict[str, Any]:
        try:
            return {"values": (await rank.request("peek", ANSWER_SECONDS, names=names))["values"]}
        except JupyterDistError as err:
            seen = await rank.look() if err.code == "timed_out" else None
            why = say("it %1.", seen.does) if seen is not None else str(err)
            return {"why": why, "why_words": words_of(why)}
