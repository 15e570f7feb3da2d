"""The moment at which all ranks are idle, and what ends in it."""

from __future__ import annotations

import os
import signal
from contextlib import closing

from jupyter_dist.agent.agent import Agent
from jupyter_dist.agent.group.group import AgentGroup
from jupyter_dist.agent.group.starts import GroupStarts
from jupyter_dist.agent.processes.death import Ending
from jupyter_dist.agent.processes.starters import LocalStarter
from jupyter_dist.agent.processes.starting.process import ProcessHandle
from jupyter_dist.agent.requests import handlers_of
from jupyter_dist.protocol.wire.specs import GroupSpec

SURVIVOR_DIED = Ending(None, signal.SIGTERM)


class Starter:
    """Starts no process. The rank is idle, and at once a survivor dies, before anything else of the agent runs."""

    def __init__(self, group: AgentGroup) -> None:
        self._group = group

    async def prepare(self, _): ...

    async def settle(self): ...

    async def start(self, spec, fds):
        self._group.ranks[1].set_state("idle")
        await self._group.ranks[0].ended(SURVIVOR_DIED)
        return ProcessHandle(os.getpid(), 0)


async def test_a_survivor_that_dies_when_a_replacement_is_ready_costs_no_healthy_rank(tmp_path, monkeypatch):
    killed: list[ProcessHandle] = []

    def kill(process):
        killed.append(process)

    monkeypatch.setattr(ProcessHandle, "kill", kill)
    agent = Agent(tmp_path, handlers_of)
    group = agent.group = AgentGroup(
        GroupSpec("g-1", "g", 2, "cpu", "gloo", str(tmp_path)),
        tmp_path,
        lambda: None,
        agent._group_changed,
        lambda _: None,
    )
    with closing(group):
        group.prepare()
        group.ranks[0].set_state("idle")
        await group.ranks[1].ended(SURVIVOR_DIED)
        group.set_state("ready")
        group.set_state("degraded")
        starts = GroupStarts(group, LocalStarter(Starter(group)), lambda _: None)
        starts.replace_dead()
        await starts.work
        assert [rank.state for rank in group.ranks] == ["dead", "idle"]
        assert group.state == "degraded"
        assert group.note.startswith("Rank 1 was replaced")
        assert not killed
        group.ranks[1].release()
