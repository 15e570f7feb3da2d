"""The agent's side: counts cells, and asks its ranks."""

import asyncio

from jupyter_dist.agent.contact.server_link import answer
from jupyter_dist.agent.group.cells.execution import AgentExecution
from jupyter_dist.agent.part import AgentPart
from jupyter_dist.protocol.wire.specs import ExecutionSpec

from .options import CountingOptions


class CountingAgent(AgentPart):
    def __init__(self, core):
        super().__init__(core)
        self.ended, self.ticks, self.rank_changes = self.options(CountingOptions).counting_from, 0, 0
        self.from_ranks = {}
        self.ends_at, self.uses, self.restarted, self.waits = [], [], 0, False

    def changed(self, execution):
        if "fail_in_agent" in execution.line:
            raise RuntimeError("as the test wants")
        if execution.is_final:
            self.ended += 1
            execution.add("counted", self.ended)

    def asked(self, execution):
        return {"line": execution.line, **execution.spec.options} if "asks" in execution.line else None

    def ranks_changed(self):
        self.rank_changes += 1

    def received(self, rank, content):
        self.from_ranks.setdefault(rank.rank, []).append(content)

    def tick(self, now):
        self.ticks += 1
        self.core.status_changed()

    def status(self):
        return {"ended": self.ended, "ticks": self.ticks, "rank_changes": self.rank_changes > 0}

    def used(self, *, by_cell):
        self.uses.append(by_cell)

    def restarts(self):
        self.restarted += 1

    def ends(self, at):
        self.ends_at.append(at)

    def group_fields(self):
        return {"known_ends": self.ends_at, "uses": self.uses, "restarted": self.restarted}

    def requests(self):
        return {"count": self._count, "call": self._call, "use": self._use, "typed": self._typed, "wait": self._wait}

    async def _use(self, header, _):
        """Count as used; `key` makes a retry harmless."""
        self.uses.append(header["as_what"])
        return self.core.group_answer()

    async def _typed(self, _header, _):
        self.core.used()
        return answer()

    def interrupted(self, ranks):
        """Let the last rank go that waits, in place of an interrupt."""
        waiting = [rank for rank in ranks if self.waits and rank.rank == 1]
        for rank in waiting:
            self.core.send(rank, {"go": "on"})
        return [rank for rank in ranks if rank not in waiting]

    async def _wait(self, _header, _):
        """Have the ranks wait in a call for a message of this part."""
        self.waits = True
        spec = ExecutionSpec("wait", [0, 1], silent=True, call={"do": "count_until_told"})
        waiting = AgentExecution(spec, b"# wait")
        waiting.title = "the count until it is told"
        return answer(execution=self.core.group.dispatcher.submit(waiting).model())

    async def _call(self, header, _):
        """Carry out a call on all ranks, and one behind it, which is not carried out if that is refused."""
        core, call = self.core.group.dispatcher, {"do": "count_by", "number": header["number"], "refused": "bad_count"}
        first = ExecutionSpec("first", [0, 1], silent=True, call=call)
        second = ExecutionSpec("second", [0, 1], silent=True, call={**call, "number": 0}, after="first")
        core.submit(AgentExecution(first, b"# first"))
        return answer(execution=core.submit(AgentExecution(second, b"# second")).model())

    async def _count(self, header, _):
        ranks = self.core.group.ranks
        answers = await asyncio.gather(*(rank.request(header["ask"], 10.0, b"", more=header["more"]) for rank in ranks))
        return answer(ranks=[reply["cells"] for reply in answers], received=self.from_ranks)
