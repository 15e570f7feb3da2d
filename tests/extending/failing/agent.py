"""The agent's side."""

from jupyter_dist.agent.contact.server_link import answer
from jupyter_dist.agent.group.cells.execution import AgentExecution
from jupyter_dist.agent.part import AgentPart
from jupyter_dist.protocol.wire.specs import ExecutionSpec

from . import begins, fail, hooked

NAMES = ("changed", "asked", "interrupted", "ranks_changed", "used", "restarts", "received", "tick", "status")


class FailingAgent(AgentPart):
    def requests(self):
        names = ("fail_in", "fail_on_rank", "fail_now", "ask_rank", "wait_on_ranks")
        begins("requests")
        return {name: getattr(self, f"_{name}") for name in names}

    def ways_to_replace(self):
        begins("ways_to_replace")
        return {}

    async def _fail_in(self, header, _):
        self.fault = header["hook"], header["how"]
        return answer()

    async def _fail_on_rank(self, header, _):
        self.core.send(self.core.group.ranks[1], {"fault": [header["hook"], header["how"]]})
        return answer()

    async def _fail_now(self, header, _):
        return fail(header["how"])

    async def _ask_rank(self, header, _):
        reply = await self.core.group.ranks[1].request(header["request"], 10.0, how=header.get("how"))
        return answer(reply=reply.fields())

    async def _wait_on_ranks(self, header, _):
        waiting = AgentExecution(
            ExecutionSpec(header["name"], [0, 1], silent=True, call={"do": "wait_long"}), b"# wait"
        )
        return answer(execution=self.core.group.dispatcher.submit(waiting).model())


for name in (*NAMES, "group_fields", "ends", "children", "failed"):
    setattr(FailingAgent, name, hooked(AgentPart, name))
