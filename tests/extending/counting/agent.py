"""The agent's side: counts cells, and asks its ranks."""

import asyncio

from jupyter_dist.agent.contact.server_link import answer
from jupyter_dist.agent.part import AgentPart


class CountingAgent(AgentPart):
    def __init__(self, core):
        super().__init__(core)
        self.ended = self.ticks = self.rank_changes = 0
        self.from_ranks = {}
        self.ends_at = []

    def changed(self, execution):
        if "fail_in_agent" in execution.line:
            raise RuntimeError("as the test wants")
        if execution.is_final:
            self.ended += 1
            execution.add("counted", self.ended)

    def ranks_changed(self):
        self.rank_changes += 1

    def received(self, rank, content):
        self.from_ranks.setdefault(rank.rank, []).append(content)

    def tick(self, now):
        self.ticks += 1
        self.core.status_changed()

    def status(self):
        return {"ended": self.ended, "ticks": self.ticks, "rank_changes": self.rank_changes > 0}

    def ends(self, at):
        self.ends_at.append(at)

    def group_fields(self):
        return {"known_ends": self.ends_at}

    def requests(self):
        return {"count": self._count}

    async def _count(self, header, _):
        ranks = self.core.group.ranks
        answers = await asyncio.gather(*(rank.request(header["ask"], 10.0, b"", more=header["more"]) for rank in ranks))
        return answer(ranks=[reply["cells"] for reply in answers], received=self.from_ranks)
